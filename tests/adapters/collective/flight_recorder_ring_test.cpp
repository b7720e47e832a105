// What does a recorder's ring hold when one of its rooms is full?
#include "adapters/sources/collective/flight_recorder_ring.hpp"

#include <array>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>

#include "bus/bus.hpp"

#include "adapters/flight/dump.hpp"
#include "adapters/flight/json_reader.hpp"
#include "adapters/sources/collective/communicator.hpp"
#include "adapters/sources/collective/flight_recorder_hook.hpp"
#include "adapters/sources/collective/flight_recorder_open.hpp"

namespace ringmain::tests {
namespace {

using collective::Communicator;
using collective::FlightRecorderHook;
using collective::Tensor;

class FlightRingTest : public testing::Test {
 protected:
  /// So many tensors, of sizes that differ, from `first` on.
  void gather(std::int64_t tensors, std::int64_t first) {
    std::vector<std::int64_t> sizes(static_cast<std::size_t>(tensors));
    std::vector<Tensor> outputs;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      sizes[i] = first + static_cast<std::int64_t>(i);
      outputs.push_back({&sizes, {&sizes[i], 1}, Name("float32"), 4});
    }
    const Tensor input{&sizes, {sizes.data(), 1}, Name("float32"), 4};
    auto issuing = comm_.issue(collective::AllGather{input, outputs});
    const auto operation = issuing.operation();
    issuing.returned();
    (void)operation.completed();
  }
  flight::Dump dump(const FlightRecorderHook& recorder) {
    const auto document = flight::read_document(recorder.dump_json());
    return flight::read_dump(document.value(), kept_).value();
  }
  std::string sizes(const flight::Entry& entry) {
    return std::string(kept_.texts.of(entry.outputs.sizes));
  }

  Bus bus_;
  Communicator comm_ =
      Communicator::make(bus_, {.name = "dp", .backend = "own", .rank = 0, .size = 2}).value();
  flight::Kept kept_;
};

TEST_F(FlightRingTest, WhereTheirSizesHaveNoRoomTheOldestGoAndAreCounted) {
  FlightRecorderHook recorder({.max_entries = 10, .isolated = true});
  ASSERT_TRUE(recorder.register_with_comm(comm_));
  for (int i = 0; i < 7; ++i) gather(3000, 100'000 * (i + 1));  // two and a half fit
  EXPECT_EQ(recorder.size(), 2u);
  const flight::Dump left = dump(recorder);
  ASSERT_EQ(left.entries.size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    const flight::Entry& entry = left.entries[i];
    EXPECT_EQ(entry.record_id, static_cast<std::int64_t>(5 + i));
    EXPECT_TRUE(sizes(entry).starts_with("[[" + std::to_string(600'000 + 100'000 * i) + "],["));
    EXPECT_TRUE(sizes(entry).ends_with("],[" + std::to_string(602'999 + 100'000 * i) + "]]"));
    EXPECT_TRUE(entry.retired);
  }
  EXPECT_NE(recorder.dump_json().find("\"dropped_entries\":\"5\",\"whole_from_collective\":\"6\""),
            std::string::npos);
}

TEST_F(FlightRingTest, AnOperationOfMoreSizesThanThereIsRoomForIsThereWithoutThem) {
  FlightRecorderHook recorder({.max_entries = 10, .isolated = true});
  ASSERT_TRUE(recorder.register_with_comm(comm_));
  gather(3, 7);
  gather(20'000, 1);
  gather(2, 5);
  const flight::Dump all = dump(recorder);
  ASSERT_EQ(all.entries.size(), 3u);
  EXPECT_EQ(sizes(all.entries[0]), "[[7],[8],[9]]");
  EXPECT_EQ(sizes(all.entries[1]), "[]");
  EXPECT_EQ(sizes(all.entries[2]), "[[5],[6]]");
}

TEST_F(FlightRingTest, OneThatIsMadeLargerKeepsWhatItHas) {
  FlightRecorderHook small({.max_entries = 3});  // of the process's own ring
  ASSERT_TRUE(small.register_with_comm(comm_));
  small.reset();
  for (int i = 0; i < 5; ++i) gather(2, 10 * i);
  auto open = comm_.issue(collective::Barrier{});
  const auto operation = open.operation();
  open.returned();
  const std::string before = small.dump_json();
  const FlightRecorderHook large({.max_entries = 5000});
  EXPECT_EQ(large.dump_json(), before);
  for (int i = 5; i < 10; ++i) gather(2, 10 * i);
  (void)operation.completed();
  const flight::Dump all = dump(large);
  ASSERT_EQ(all.entries.size(), 8u);
  EXPECT_TRUE(all.entries[2].retired);  // the one that was open
  EXPECT_EQ(sizes(all.entries[0]), "[[30],[31]]");
  EXPECT_EQ(sizes(all.entries[7]), "[[90],[91]]");
}

TEST(OpenOperationsTest, EachIsFoundAsLongAsItIsThere) {
  std::mt19937 random(1);
  collective::detail::OpenOperations open(100);
  std::map<std::uint64_t, std::uint64_t> expected;
  for (int i = 0; i < 100'000; ++i) {
    const std::uint64_t id = random() % 300;
    const auto found = open.find(id);
    ASSERT_EQ(found.has_value(), expected.contains(id)) << i;
    if (found) {
      ASSERT_EQ(found->first, expected[id]);
      open.remove(id);
      expected.erase(id);
    } else if (expected.size() < 100) {
      open.add(id, {static_cast<std::uint64_t>(i), 0});
      expected[id] = static_cast<std::uint64_t>(i);
    }
  }
  std::size_t count = 0;
  open.each([&](std::uint64_t id, const auto&) { count += expected.count(id); });
  EXPECT_EQ(count, expected.size());
  open.clear();
  EXPECT_FALSE(open.find(expected.begin()->first));
}

TEST(FlightRingForkTest, AChildWritesAFileThoughItsParentWasAtOne) {
  collective::detail::FlightRing ring(10);
  const std::lock_guard at_it(ring.writes_file);
  pid_t child = -1;
  std::thread([&] {  // the holder is not in the child
    child = ::fork();
    if (child != 0) return;
    ::alarm(20);  // where it would wait for ever
    const std::lock_guard its_own(ring.writes_file);
    ::_exit(ring.copy_for_file()->entries() == 0 ? 0 : 1);
  })
      .join();
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(FlightRingForkTest, ChildrenThatAreForkedDuringDumpsWriteTheirOwn) {
  std::string folder = (std::filesystem::temp_directory_path() / "recorder-XXXXXX").string();
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  ::setenv("TORCHCOMM_FR_DUMP_TEMP_FILE", (folder + "/rank_").c_str(), 1);
  const FlightRecorderHook recorder({.max_entries = 100, .isolated = true});
  std::atomic<bool> enough{false};
  std::thread dumps([&] {
    while (!enough) EXPECT_TRUE(recorder.dump_file(0));
  });
  int status = 0;
  for (int i = 0; i < 30 && status == 0; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(20);
      ::_exit(recorder.dump_file(1) ? 0 : 1);
    }
    ASSERT_EQ(::waitpid(child, &status, 0), child);
  }
  enough = true;
  dumps.join();
  EXPECT_EQ(status, 0);
  ::unsetenv("TORCHCOMM_FR_DUMP_TEMP_FILE");
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace ringmain::tests
