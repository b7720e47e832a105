// Is what C records in the file that it was told, also if the process is killed, and is every wrong
// call refused?
#include <csignal>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include "engine/flight/ring_reader.hpp"

#include "bus/bus.hpp"

#include "events/collective.hpp"

#include "tests/bindings/c/c_support.hpp"
#include "tests/process/sanitized.hpp"

namespace ringmain::tests {
namespace {

namespace fs = std::filesystem;
using engine::flight::FlightRead;

class CRecordTest : public CBusTest {
 protected:
  CRecordTest() {
    std::string made = (fs::temp_directory_path() / "c-record-XXXXXX").string();
    folder_ = ::mkdtemp(made.data());
    options_.bytes = sizeof options_;
    options_.folder = folder_.c_str();
    options_.file_bytes = 1u << 20;
    options_.ring_bytes = 4096;
  }
  ~CRecordTest() override {
    ringmain_recording_close(recording_);
    fs::remove_all(folder_);
  }
  void record(const char* patterns = "c.*") {
    expect_ok(ringmain_record(bus_, patterns, &options_, &recording_));
  }
  [[nodiscard]] std::string path() const { return ringmain_recording_path(recording_); }
  static FlightRead read(const std::string& file) {
    FlightRead read = engine::flight::read_flight(file);
    EXPECT_EQ(read.refusal + read.damage, "");
    return read;
  }
  /// The numbers of all ticks, ring by ring.
  static std::vector<std::uint64_t> ticks_in(const FlightRead& read) {
    std::vector<std::uint64_t> found;
    for (const auto& ring : read.rings) {
      for (const auto& record : ring.ring.records) {
        CTick tick{};
        if (record.payload_bytes == sizeof tick)
          std::memcpy(&tick, ring.ring.payloads.data() + record.payload_at, sizeof tick);
        found.push_back(tick.n);
      }
    }
    return found;
  }

  std::string folder_;
  ringmain_record_options options_{};
  ringmain_recording* recording_ = nullptr;
};

using Numbers = std::vector<std::uint64_t>;

TEST_F(CRecordTest, WhatIsPublishedIsInTheFileUntilItIsClosed) {
  EXPECT_FALSE(ringmain_wanted(ticks_));
  record();
  EXPECT_TRUE(ringmain_wanted(ticks_));
  EXPECT_EQ(publish(1), RINGMAIN_OK);
  EXPECT_EQ(publish(2), RINGMAIN_OK);
  const std::string file = path();
  EXPECT_EQ(file.find(folder_ + "/flight-"), 0u) << file;
  EXPECT_EQ(fs::file_size(file), 1u << 20);
  EXPECT_STREQ(ringmain_recording_complaint(recording_), "");
  EXPECT_FALSE(read(file).counts.closed == 1);
  ringmain_recording_close(std::exchange(recording_, nullptr));
  EXPECT_EQ(publish(3), RINGMAIN_UNHEARD);
  const FlightRead after = read(file);
  EXPECT_TRUE(after.counts.closed == 1);
  EXPECT_EQ(ticks_in(after), (Numbers{1, 2}));
}

TEST_F(CRecordTest, AProcessThatIsKilledLeavesIt) {
  if (is_watched_by_tsan()) GTEST_SKIP() << "ThreadSanitizer lets no forked child have threads";
  const pid_t child = ::fork();
  if (child == 0) {
    ringmain_bus* bus = nullptr;
    ringmain_channel* ticks = nullptr;
    const auto type = tick_type("c.killed");
    if (ringmain_open(nullptr, &bus) != RINGMAIN_OK ||
        ringmain_define(bus, &type, &ticks) != RINGMAIN_OK ||
        ringmain_record(bus, "c.killed", &options_, &recording_) != RINGMAIN_OK)
      ::_exit(1);
    for (std::uint64_t n = 1; n <= 5; ++n) {
      const CTick tick{n, 0, 0};
      (void)ringmain_publish(ticks, &tick, sizeof tick);
    }
    (void)::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;
  const FlightRead left = read(fs::directory_iterator(folder_)->path().string());
  EXPECT_EQ(ticks_in(left), (Numbers{1, 2, 3, 4, 5}));
  EXPECT_FALSE(left.counts.closed == 1);
}

TEST_F(CRecordTest, CollectivesThatAreOpenAreInTheTable) {
  ringmain_bus* process = nullptr;
  expect_ok(ringmain_open_process(&process));
  expect_ok(ringmain_record(process, "collective.>", &options_, &recording_));
  collective::Issued begin;
  begin.op_id = ringmain_new_op_id();
  begin.sequence = 7;
  Bus::process().channel<collective::Issued>().post(begin);
  const FlightRead now = read(path());
  ASSERT_EQ(now.operations.size(), 1u);
  EXPECT_EQ(now.operations[0].id, begin.op_id);
  EXPECT_EQ(now.operations[0].sequence, 7u);
  expect_ok(ringmain_close(process, -1));
}

TEST_F(CRecordTest, AForkedChildRecordsNothingAndClosesNothing) {
  record();
  EXPECT_EQ(publish(1), RINGMAIN_OK);
  const pid_t child = ::fork();
  if (child == 0) {
    ringmain_recording* more = nullptr;
    const bool refused = ringmain_record(bus_, "c.*", &options_, &more) == RINGMAIN_FORKED;
    ringmain_recording_close(recording_);
    ::_exit(refused && publish(2) == RINGMAIN_FORKED ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(publish(3), RINGMAIN_OK);
  EXPECT_EQ(ticks_in(read(path())), (Numbers{1, 3}));
}

TEST_F(CRecordTest, ItMayBeClosedBehindItsBusAndInsideACallback) {
  record();
  ringmain_subscription* seen = nullptr;
  const auto close = [](void* user, const ringmain_event*) {
    ringmain_recording_close(std::exchange(*static_cast<ringmain_recording**>(user), nullptr));
  };
  expect_ok(ringmain_subscribe(ticks_, close, &recording_, nullptr, nullptr, &seen));
  EXPECT_EQ(publish(1), RINGMAIN_OK);
  expect_ok(ringmain_flush(bus_, -1));
  ringmain_subscription_free(seen);
  EXPECT_EQ(recording_, nullptr);
  record();
  const std::string file = path();
  expect_ok(ringmain_close(std::exchange(bus_, nullptr), -1));
  ringmain_recording_close(std::exchange(recording_, nullptr));
  EXPECT_TRUE(read(file).counts.closed == 1);
}

TEST_F(CRecordTest, WhereNoFileCanBeHadItIsInMemoryAndSaysWhy) {
  const std::string nowhere = "/proc/no/such";
  options_.folder = nowhere.c_str();
  record();
  EXPECT_EQ(path(), "");
  EXPECT_NE(std::string(ringmain_recording_complaint(recording_)).find("memory"), std::string::npos)
      << ringmain_recording_complaint(recording_);
  EXPECT_EQ(publish(1), RINGMAIN_OK);
}

TEST_F(CRecordTest, OfDeadProcessesAsManyFilesStayAsWereAskedFor) {
  for (int i = 0; i < 2; ++i) {
    record();
    ringmain_recording_close(std::exchange(recording_, nullptr));
  }
  options_.files_kept = RINGMAIN_FILES_ALL;
  record();
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator{}), 3);
}

TEST_F(CRecordTest, WhatIsWrongIsSaidInASentence) {
  const auto with = [this](const char* patterns, const ringmain_record_options& options) {
    return ringmain_record(bus_, patterns, &options, &recording_);
  };
  expect_error(ringmain_record(nullptr, "c.*", &options_, &recording_), RINGMAIN_REFUSED,
               "bus is NULL");
  expect_error(ringmain_record(bus_, nullptr, &options_, &recording_), RINGMAIN_REFUSED,
               "patterns is NULL");
  expect_error(ringmain_record(bus_, "c.*", &options_, nullptr), RINGMAIN_REFUSED,
               "recording is NULL");
  expect_error(with("", options_), RINGMAIN_REFUSED, "empty");
  expect_error(with("c..x", options_), RINGMAIN_REFUSED, "c..x");
  ringmain_record_options wrong = options_;
  wrong.ring_bytes = 5000;
  expect_error(with("c.*", wrong), RINGMAIN_REFUSED, "power of two");
  wrong.bytes = 0;
  expect_error(with("c.*", wrong), RINGMAIN_REFUSED, "sizeof(ringmain_record_options)");
  EXPECT_EQ(recording_, nullptr);
  EXPECT_TRUE(fs::is_empty(folder_));
  EXPECT_STREQ(ringmain_recording_path(nullptr), "");
  EXPECT_STREQ(ringmain_recording_complaint(nullptr), "");
  ringmain_recording_close(nullptr);
  std::vector<ringmain_recording*> four(4);
  for (auto& one : four) expect_ok(ringmain_record(bus_, "c.*", &options_, &one));
  expect_error(with("c.*", options_), RINGMAIN_REFUSED, "4 recordings at most");
  for (auto* one : four) ringmain_recording_close(one);
}

TEST_F(CRecordTest, AShorterStructOfAnOlderProgramIsTaken) {
  options_.bytes = offsetof(ringmain_record_options, file_bytes);
  record();
  EXPECT_EQ(fs::file_size(path()), 8u << 20);
}

}  // namespace
}  // namespace ringmain::tests
