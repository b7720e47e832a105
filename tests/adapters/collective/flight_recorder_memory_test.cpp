// Is an operation recorded, and a dump written, where there is no memory any more?
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <new>
#include <sched.h>
#include <string>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include <gtest/gtest.h>

#include "engine/door/reply.hpp"

#include "bus/bus.hpp"
#include "bus/core/door_words.hpp"

#include "adapters/flight/dump.hpp"
#include "adapters/flight/json_reader.hpp"
#include "adapters/sources/collective/communicator.hpp"
#include "adapters/sources/collective/flight_recorder_hook.hpp"
#include "adapters/sources/collective/flight_recorder_signal.hpp"

#include "tests/adapters/collective/on_signal.hpp"
#include "tests/process/allocation_faults.hpp"

namespace ringmain::tests {
namespace {

using collective::Communicator;
using collective::FlightRecorderHook;
using collective::FlightRecorderOptions;
using collective::How;
using collective::detail::OnSignal;

flight::Dump read(const std::string& bytes) {
  flight::Kept kept;
  const auto document = flight::read_document(bytes);
  return flight::read_dump(document.value(), kept).value();
}

constexpr long kAll = 1L << 40;

/// A recorder of two groups in a folder of its own, which holds an operation that hangs.
class DumpMemoryTest : public OnSignalTest {
 protected:
  DumpMemoryTest() {
    std::string made = (std::filesystem::temp_directory_path() / "recorder-XXXXXX").string();
    folder_ = ::mkdtemp(made.data());
    ::setenv("TORCHCOMM_FR_DUMP_TEMP_FILE", (folder_ + "/made/for/it/rank_").c_str(), 1);
  }
  ~DumpMemoryTest() override {
    ::unsetenv("TORCHCOMM_FR_DUMP_TEMP_FILE");
    std::filesystem::remove_all(folder_);
  }
  static FlightRecorderOptions options(std::int64_t rank) {
    FlightRecorderOptions made;
    made.max_entries = 100;
    made.isolated = true;
    made.backend = "a name that is longer than a short string is";
    made.rank = rank;
    return made;
  }
  [[nodiscard]] Communicator make(const char* name) {
    return Communicator::make(bus_, {.name = name,
                                     .backend = "own",
                                     .rank = 0,
                                     .size = 2,
                                     .abort = [this](Name) { ++given_up_; }})
        .value();
  }
  void hang(const Communicator& comm) const {
    const std::int64_t sizes[] = {3, 4};
    auto issuing = comm.issue(collective::AllReduce{.tensor = {sizes, sizes, Name("float32"), 48}});
    issuing.returned();
  }
  [[nodiscard]] std::string file(int rank) const {
    return folder_ + "/made/for/it/rank_" + std::to_string(rank);
  }
  /// Whole, and of so many operations.
  void expect_file(int rank, std::size_t entries) const {
    std::ifstream in(file(rank), std::ios::binary);
    ASSERT_TRUE(in) << file(rank);
    const flight::Dump dump = read(std::string(std::istreambuf_iterator<char>(in), {}));
    EXPECT_EQ(dump.entries.size(), entries);
    EXPECT_EQ(dump.rank, rank);
    std::filesystem::remove(file(rank));
  }

  std::string folder_;
  Bus bus_;
  int given_up_ = 0;
};

TEST_F(DumpMemoryTest, AFileIsWrittenWithoutAnAllocation) {
  const Communicator comm = make("dp");
  FlightRecorderHook recorder(options(7));
  ASSERT_TRUE(recorder.register_with_comm(comm));
  hang(comm);
  bool threw = false;
  fail_own_allocations(1, kAll);
  try {
    (void)recorder.dump_file(7);
  } catch (const std::bad_alloc&) {  // for the path, which is returned
    threw = true;
  }
  EXPECT_TRUE(heal_allocations());
  EXPECT_TRUE(threw);
  expect_file(7, 1);
}

TEST_F(DumpMemoryTest, AFileIsWrittenWhereTheProcessMayWriteOnlySoMuch) {
  FlightRecorderHook recorder(options(0));
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit finite = before;
  finite.rlim_cur = 1u << 20;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &finite), 0);
  fail_own_allocations(1, kAll);
  EXPECT_THROW((void)recorder.dump_file(0), std::bad_alloc);
  (void)heal_allocations();
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  expect_file(0, 0);
}

TEST_F(DumpMemoryTest, AnOperationThatFailsOrTimesOutHasItWritten) {
  for (const How how : {How::error, How::timed_out}) {
    const Communicator comm = make("dp");
    auto wanted = options(1);
    wanted.dumps_on_failure = true;
    FlightRecorderHook recorder(wanted);
    ASSERT_TRUE(recorder.register_with_comm(comm));
    auto first = comm.issue(collective::Barrier{});
    const auto operation = first.operation();
    first.returned();
    (void)operation.completed();  // this thread has said an end before
    hang(comm);
    fail_own_allocations(1, kAll);
    const auto failed = comm.fail_open("it hangs", how);
    (void)heal_allocations();
    EXPECT_EQ(failed, 1u);
    expect_file(1, 2);
  }
}

/// Where there is no memory to begin an abort, the group is not given up, and whoever wants it
/// hears so. A hook's thread needs some of the bus's for its first call; the dump itself needs
/// none.
TEST_F(DumpMemoryTest, AnAbortHasItWrittenFromTheMomentAtWhichItsHookIsCalled) {
  int refused = 0, written = 0;
  bool was_written = false;
  for (long k = 1; k < 100; ++k) {
    const Communicator comm = make("dp");
    auto wanted = options(2);
    wanted.dumps_on_abort = true;
    FlightRecorderHook recorder(wanted);
    ASSERT_TRUE(recorder.register_with_comm(comm));
    hang(comm);
    given_up_ = 0;
    fail_allocations(k, kAll);
    bool threw = false;
    try {
      (void)comm.abort("it hangs");
    } catch (const std::bad_alloc&) {
      threw = true;
    }
    const bool failed = heal_allocations();
    EXPECT_EQ(given_up_, threw ? 0 : 1) << k;
    EXPECT_EQ(recorder.complaint(), "") << k;
    const bool is_there = std::filesystem::exists(file(2));
    EXPECT_TRUE(is_there || !was_written) << k;  // more memory is never worse
    if (is_there) expect_file(2, 1);
    written += is_there && failed ? 1 : 0;
    refused += threw ? 1 : 0;
    was_written = is_there;
    if (!failed) break;
  }
  EXPECT_TRUE(was_written);
  EXPECT_GT(written, 0);
  EXPECT_GT(refused, 1);
}

TEST_F(DumpMemoryTest, ASignalHasItWritten) {
  const Communicator comm = make("dp");
  auto wanted = options(3);
  wanted.dumps_on_signal = SIGUSR2;
  FlightRecorderHook recorder(wanted);
  ASSERT_TRUE(recorder.register_with_comm(comm));
  hang(comm);
  const std::string expected = file(3);
  fail_allocations(1, kAll);
  ::kill(::getpid(), SIGUSR2);
  while (::access(expected.c_str(), F_OK) != 0) ::sched_yield();
  (void)heal_allocations();
  expect_file(3, 1);
}

TEST_F(DumpMemoryTest, TheDoorHasThatOfEachRecorderWritten) {
  const Communicator comm = make("dp");
  FlightRecorderHook first(options(4)), second(options(5));
  ASSERT_TRUE(first.register_with_comm(comm));
  ASSERT_TRUE(second.register_with_comm(comm));
  hang(comm);
  ringmain::detail::DoorWords words;
  engine::door::Reply reply;
  fail_own_allocations(1, kAll);  // nor can it make a thread
  EXPECT_THROW(words.answer("dump", reply), std::bad_alloc);
  (void)heal_allocations();
  expect_file(4, 1);
  expect_file(5, 1);
}

TEST_F(DumpMemoryTest, AProcessThatEndsHasItWritten) {
  const pid_t child = ::fork();
  if (child == 0) {
    Bus bus;
    auto wanted = options(6);
    wanted.dumps_at_exit = true;
    (void)std::atexit([] { ::_exit(0); });  // before those of this program, which may need memory
    const FlightRecorderHook recorder(wanted);
    std::thread ends([] {
      fail_own_allocations(1, kAll);
      std::exit(1);
    });
    ends.join();
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  expect_file(6, 0);
}

/// Recording takes no memory at all, but for the first operation of a group that nobody registered.
TEST_F(DumpMemoryTest, AnOperationIsRecordedWithoutAnAllocation) {
  const std::int64_t sizes[] = {4};
  const collective::Tensor out{sizes, sizes, Name("float32"), 16};
  const collective::BatchPart parts[] = {{out, 1, true}, {out, 1, false}};
  for (long k = 1; k < 200; ++k) {
    const Communicator comm = make("dp");
    FlightRecorderHook recorder(options(0));
    ASSERT_TRUE(recorder.register_with_comm(comm));
    fail_own_allocations(k, 1);
    auto first = comm.issue(collective::BatchOpIssue{.parts = parts});
    const bool failed = heal_allocations();
    const auto first_operation = first.operation();
    first.returned();
    auto second = comm.issue(collective::AllReduce{.tensor = out});
    const auto second_operation = second.operation();
    second.returned();
    (void)first_operation.completed();
    const flight::Dump dump = read(recorder.dump_json());
    // Where issue() itself had no memory, the recorder never heard of it.
    ASSERT_EQ(dump.entries.size(), failed && dump.entries.size() == 1 ? 1u : 4u) << k;
    EXPECT_FALSE(dump.entries.back().retired) << k;
    for (std::size_t i = 0; i + 1 < dump.entries.size(); ++i)
      EXPECT_TRUE(dump.entries[i].retired) << k;
    EXPECT_EQ(recorder.lost(), 0u) << k;
    if (!failed) return;
  }
  ADD_FAILURE() << "an operation takes 200 allocations";
}

TEST_F(DumpMemoryTest, APartOfWhichThereWasNoMemoryForTheFirstIsRecordedFromTheSecondOn) {
  for (long k = 1; k < 200; ++k) {
    const Communicator comm = make("dp");
    FlightRecorderHook recorder(options(0));
    ASSERT_TRUE(recorder.register_with_comm(comm));
    const Communicator part = comm.part({.name = "part", .backend = "own"}).value();
    fail_own_allocations(k, 1);
    hang(part);
    const bool failed = heal_allocations();
    hang(part);
    // Where issue() itself had no memory, the recorder never heard of it.
    EXPECT_GE(recorder.size(), 1u) << k;
    EXPECT_LE(recorder.size() + recorder.lost(), 2u) << k;
    const flight::Dump dump = read(recorder.dump_json());
    EXPECT_EQ(dump.groups.size(), 2u) << k;
    if (!failed) return;
  }
  ADD_FAILURE() << "an operation takes 200 allocations";
}

TEST(OnSignalMemoryTest, WhereThereIsNoMemoryForItNoHandlerIsLeft) {
  int refused = 0;
  for (long k = 1; k < 100; ++k) {
    bool threw = false;
    fail_own_allocations(k, 1);
    try {
      const OnSignal on(SIGUSR2, [] {});
    } catch (const std::bad_alloc&) {
      threw = true;
    }
    const bool failed = heal_allocations();
    EXPECT_EQ(threw, failed) << k;
    EXPECT_EQ(current(SIGUSR2).sa_handler, SIG_DFL) << k;
    refused += threw ? 1 : 0;
    if (!failed) break;
  }
  EXPECT_GT(refused, 0);  // once the thread is there, little is needed
}

}  // namespace
}  // namespace ringmain::tests
