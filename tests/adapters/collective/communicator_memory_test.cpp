// Does a communicator survive each of its allocations failing, and does an operation need none?
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "bus/test_bus.hpp"

#include "adapters/sources/collective/collective_watchdog.hpp"
#include "adapters/sources/collective/communicator.hpp"

#include "tests/adapters/collective/communicator_parts.hpp"
#include "tests/process/allocation_faults.hpp"

namespace ringmain::tests {
namespace {

using collective::AbortHookArgs;
using collective::Barrier;
using collective::Communicator;
using collective::Completed;
using collective::CompletionHookArgs;
using collective::Failed;
using collective::Group;
using collective::GroupChange;
using collective::Issued;
using collective::Operation;
using collective::PostHookArgs;
using collective::PreHookArgs;

/// Uses all of a communicator; what it finds needs no memory.
class Script {
 public:
  explicit Script(TestBus& bus) : bus_(bus) {}
  const char* fault = nullptr;
  std::atomic<int> held{0};  // hooks' captures that live

  void run() {
    auto options = world();
    options.abort = [](Name) {};
    auto made = done([&] { return Communicator::make(bus_, options); });
    if (!made) return;
    const Communicator comm = std::move(*made);
    use(comm);
    options.name = "half";
    auto part = done([&] { return comm.part(options); });
    if (part) use(*part);
    call(comm, collective::Split{});
    comm.no_part();
    try {
      const auto aborted = comm.abort("x", "test", std::chrono::hours(1));
      expect(aborted.how == collective::Aborted::How::done, "an abort is done or throws");
      expect(comm.aborted(), "an abort that was done shows");
    } catch (const std::bad_alloc&) {
      expect(!comm.aborted(), "an abort that throws has begun nothing");
    }
    comm.end();
    expect(!comm.issue(Barrier{}), "an ended one refuses");
    try {
      expect(!Communicator::find(bus_, "world"), "an ended one is not found");
    } catch (const std::bad_alloc&) {
    }
  }

 private:
  struct Held {
    explicit Held(std::atomic<int>& count) : count_(&count) { ++*count_; }
    Held(const Held& other) : Held(*other.count_) {}
    Held(Held&& other) noexcept : Held(*other.count_) {}
    Held& operator=(const Held&) = delete;
    ~Held() { --*count_; }
    std::array<char, 64> much{};  // no std::function holds it in place
    std::atomic<int>* count_;
  };

  void expect(bool holds, const char* what) {
    if (!holds && fault == nullptr) fault = what;
  }
  /// What it made; nothing: it lacked memory, and said so.
  template <class Make>
  auto done(Make make) -> std::optional<std::decay_t<decltype(make().value())>> {
    try {
      auto made = make();
      if (made) return std::move(made).value();
      expect(made.error().code == Error::Code::no_memory, "it lacked nothing but memory");
    } catch (const std::bad_alloc&) {  // a std::function of the script's
    }
    return {};
  }
  void call(const Communicator& comm, const collective::Arguments& arguments) {
    Operation operation;
    const bool called = comm.run(arguments, [&](const Operation& one) { operation = one; });
    expect(called || comm.ended() || comm.aborted() || guarded_ != 0, "nobody refused it");
    (void)operation.started();
    (void)operation.completed();
    expect(!operation.failed("late"), "it ends once");
  }
  void use(const Communicator& comm) {
    const Held held_by_all(held);
    auto pre = done([&] {
      return comm.pre_hook([h = held_by_all](const PreHookArgs&) { return Verdict::allow(); });
    });
    guarded_ += pre ? 1 : 0;
    auto post = done([&] { return comm.post_hook([h = held_by_all](const PostHookArgs&) {}); });
    auto completion =
        done([&] { return comm.completion_hook([h = held_by_all](const CompletionHookArgs&) {}); });
    auto abort =
        done([&] { return comm.register_abort_hook([h = held_by_all](const AbortHookArgs&) {}); });
    call(comm, all_reduced());
    auto inherits = done([&] { return comm.part(world()); });
    if (inherits) call(*inherits, Barrier{});
    try {
      expect(comm.run_abort_hooks("x", "test", std::chrono::hours(1)).stuck.empty(), "stuck");
    } catch (const std::bad_alloc&) {
    }
    if (abort) (void)abort->remove();
    if (pre) expect(pre->reset() == Detached::done, "a hook that was made is removed");
    guarded_ -= pre ? 1 : 0;
  }

  TestBus& bus_;
  int guarded_ = 0;
};

/// How many allocations the script has.
long fail_in_turn(long step, long width) {
  bool reached = true;
  long k = 1;
  for (; reached && !testing::Test::HasFailure(); k += step) {
    TestBus bus;
    int made = 0, ended = 0;
    const auto groups = bus.channel<Group>().subscribe_inline([&](const Group& said) {
      if (said.change == GroupChange::ended) ++ended;
      if (said.change == GroupChange::made || !said.group.view().empty()) ++made;
    });
    const auto issued = bus.channel<Issued>().subscribe_inline([](const Issued&) {});
    Script script(bus);
    fail_allocations(k, width);
    script.run();
    reached = heal_allocations();
    EXPECT_EQ(script.fault, nullptr) << "allocation " << k << ": " << script.fault;
    EXPECT_EQ(script.held, 0) << "allocation " << k << ": captures live on";
    if (width == 1) {
      EXPECT_EQ(bus.stats().subscriptions.size(), 2u) << "allocation " << k;
    }
    // Nothing is left locked or half made.
    const auto after = Communicator::make(bus, world());
    EXPECT_TRUE(after) << "allocation " << k;
    if (!after) break;
    EXPECT_TRUE(after.value().pre_hook([](const PreHookArgs&) { return Verdict::allow(); }));
  }
  return k;
}

TEST(CommunicatorMemoryTest, EachAllocationMayFail) {
  EXPECT_GT(fail_in_turn(1, 1), 100) << "the test sees too little";
}
TEST(CommunicatorMemoryTest, FromEachAllocationOnAllMayFail) {
  (void)fail_in_turn(3, 1L << 40);
}

TEST(CommunicatorMemoryTest, AnOperationAllocatesNothingOnceItsThreadIsKnown) {
  TestBus bus;
  const auto comm = Communicator::make(bus, world()).value();
  std::uint64_t heard = 0;
  const auto issued = bus.channel<Issued>().subscribe([&](const Issued&) { ++heard; });
  const auto completed = bus.channel<Completed>().subscribe([&](const Completed&) { ++heard; });
  const auto pre = comm.pre_hook([](const PreHookArgs&) { return Verdict::allow(); });
  const auto post = comm.post_hook([](const PostHookArgs&) {});
  const auto completion = comm.completion_hook([](const CompletionHookArgs&) {});
  const collective::Tensor one = four_floats();
  const std::array<collective::Tensor, 4> four{one, one, one, one};
  const std::vector<collective::Arguments> all{collective::Send{one, 2},
                                               collective::Recv{{one, 2}},
                                               collective::Broadcast{one, 0},
                                               collective::AllReduce{one},
                                               collective::Reduce{one, 0},
                                               collective::AllGather{one, four},
                                               collective::AllGatherV{{one, four}},
                                               collective::AllGatherSingle{one, one},
                                               collective::ReduceScatter{four, one},
                                               collective::ReduceScatterV{{four, one}},
                                               collective::ReduceScatterSingle{one, one},
                                               collective::AllToAllSingle{one, one},
                                               collective::AllToAllVSingle{one, one},
                                               collective::AllToAll{four, four},
                                               collective::Barrier{},
                                               collective::Scatter{one, four, 0},
                                               collective::Gather{one, four, 0},
                                               collective::GatherSingle{one, one, 0},
                                               collective::Split{},
                                               collective::NewWindow{},
                                               collective::BatchOpIssue{2},
                                               collective::Finalize{},
                                               collective::Other{"exclusive_scan", {}, {}}};
  const auto call_all = [&] {
    for (const auto& arguments : all) {
      (void)comm.run(arguments, [](const Operation& issued) { (void)issued.completed(); });
    }
  };
  enum { kRounds = 20 };
  for (int i = 0; i < 10 * kRounds; ++i) call_all();
  bus.deliver();
  const std::uint64_t before = heard;
  fail_allocations(1, 1L << 40);
  for (int i = 0; i < kRounds; ++i) call_all();
  EXPECT_FALSE(heal_allocations()) << "an operation allocates";
  bus.deliver();
  EXPECT_EQ(heard - before, kRounds * 2u * (all.size() - 1));  // `finalize` is the group's end
}

/// Wherever it lacks memory, the next look finds what it left.
TEST(WatchdogMemoryTest, AGroupThatThereWasNoMemoryForIsGivenUpByTheNextLook) {
  bool failed = true;
  int left = 0;
  for (long k = 1; failed; ++k) {
    TestBus bus;
    const auto heard = bus.channel<Issued>().subscribe([](const Issued&) {});
    std::vector<Communicator> comms;
    for (const char* name : {"dp", "tp"}) {
      comms.push_back(
          Communicator::make(bus, {.name = name, .backend = "own", .size = 2, .abort = [](Name) {}})
              .value());
      auto issuing = comms.back().issue(collective::AllReduce{});
      issuing.returned();
    }
    auto watchdog =
        collective::Watchdog::make(
            bus, {.from_issue = std::chrono::nanoseconds(1), .period = {}, .aborts = true})
            .value();
    fail_own_allocations(k, 1);
    try {
      (void)watchdog.look();
    } catch (const std::bad_alloc&) {
    }
    failed = heal_allocations();
    for (const Communicator& comm : comms) left += comm.aborted() ? 0 : 1;
    (void)watchdog.look();
    for (const Communicator& comm : comms) EXPECT_TRUE(comm.aborted()) << k;
  }
  EXPECT_GT(left, 2) << "no look lacked memory: the test sees too little";
}

/// Its thread is the library's: what leaves it ends the program.
TEST(WatchdogMemoryTest, ItsThreadSurvivesLooksWithoutMemory) {
  TestBus bus;
  Communicator comm =
      Communicator::make(bus, {.name = "dp", .backend = "own", .size = 2, .abort = [](Name) {}})
          .value();
  const auto heard = bus.channel<Issued>().subscribe([](const Issued&) {});
  auto issuing = comm.issue(collective::AllReduce{});
  issuing.returned();
  auto watchdog = collective::Watchdog::make(bus, {.from_issue = std::chrono::hours(1),
                                                   .period = std::chrono::milliseconds(1)})
                      .value();
  fail_allocations(1, 1L << 40);
  const std::uint64_t before = watchdog.looks();
  while (watchdog.looks() < before + 3) std::this_thread::yield();
  EXPECT_TRUE(heal_allocations()) << "a look allocates nothing: the test sees too little";
  const std::uint64_t with_memory = watchdog.looks();
  while (watchdog.looks() < with_memory + 2) std::this_thread::yield();
}

}  // namespace
}  // namespace ringmain::tests
