// May every call on communicators meet every other, also a fork and the bus's end?
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <random>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "bus/test_bus.hpp"

#include "adapters/sources/collective/communicator.hpp"

#include "tests/adapters/collective/communicator_parts.hpp"
#include "tests/process/sanitized.hpp"

namespace ringmain::tests {
namespace {

using collective::AbortHookArgs;
using collective::Barrier;
using collective::Communicator;
using collective::CompletionHookArgs;
using collective::Issued;
using collective::Ledger;
using collective::Operation;
using collective::PostHookArgs;
using collective::PreHookArgs;
using collective::RemovableHandle;

/// Hooks that make calls call hooks: without both bounds one call may become millions.
enum : int { kHooksMax = 32, kNestedMax = 2 };
thread_local int nested = 0;  // calls of hooks that this thread is inside

/// What several threads take from, put into, and change as they like.
template <class T>
class Shelf {
 public:
  T take_copy(std::uint32_t at) {
    const std::lock_guard lock(mutex_);
    return all_[at % all_.size()];
  }
  /// What was there before.
  T put(std::uint32_t at, T one) {
    const std::lock_guard lock(mutex_);
    return std::exchange(all_[at % all_.size()], std::move(one));
  }
  void clear() {
    for (std::uint32_t i = 0; i < all_.size(); ++i) (void)put(i, {});
  }

 private:
  std::mutex mutex_;
  std::array<T, 4> all_{};
};

class Meeting {
 public:
  explicit Meeting(Bus& bus) : bus_(bus) {}

  /// One call, whichever; also from inside hooks.
  void do_one(std::uint32_t random) {
    const std::uint32_t at = random >> 8;
    const Communicator comm = communicators.take_copy(at);
    if (random % 16 >= 7 && random % 16 <= 10 && living > kHooksMax) return;
    const auto inside = [this, at, mine = std::make_shared<Counted>(living), comm] {
      if (nested == kNestedMax) return;
      ++nested;
      do_one(at * 2654435761u + 12345);
      --nested;
    };
    switch (random % 16) {
      case 0:
        return (void)communicators.put(at, made());
      case 1: {
        auto part = comm.part(options());
        return part ? (void)communicators.put(at + 1, part.value()) : void();
      }
      case 2:
        return comm.end();
      case 3:
        return (void)communicators.put(at, {});
      case 4:
        return (void)comm.abort("x", "test", std::chrono::microseconds(100));
      case 5:
        return (void)comm.run_abort_hooks("x", "test", std::chrono::microseconds(100));
      case 6:
        return (void)communicators.put(at, Communicator::find(bus_, "world"));
      case 7:
        return keep(at, comm.register_pre_hook([inside](const PreHookArgs&) {
          inside();
          return Verdict::allow();
        }));
      case 8:
        return keep(at, comm.register_post_hook([inside](const PostHookArgs&) { inside(); }));
      case 9:
        return keep(
            at, comm.register_completion_hook([inside](const CompletionHookArgs&) { inside(); }));
      case 10:
        return keep(at, comm.register_abort_hook([inside](const AbortHookArgs&) { inside(); }));
      case 11:
        return (void)handles.take_copy(at).remove_for(std::chrono::microseconds(10));
      case 12:
        return (void)operations.take_copy(at).completed();
      case 13:
        return (void)operations.take_copy(at).failed("x");
      default:
        return (void)comm.run(Barrier{}, [&](const Operation& one) {
          (void)operations.put(at, one).completed();  // so that few are open
        });
    }
  }
  void clear() {
    std::vector<RemovableHandle> kept;
    {
      const std::lock_guard lock(mutex_);  // the thread of an abort hook may keep another
      kept.swap(kept_);
    }
    for (const RemovableHandle& one : kept) (void)one.remove();
    handles.clear();
    operations.clear();
    communicators.clear();
  }
  static collective::CommunicatorOptions options() {
    auto all = world();
    all.abort = [](Name) {};
    return all;
  }
  Communicator made() {
    auto made = Communicator::make(bus_, options());
    return made ? made.value() : Communicator();
  }

  struct Counted {
    explicit Counted(std::atomic<int>& of) : all(of) { ++all; }
    Counted(const Counted&) = delete;
    Counted& operator=(const Counted&) = delete;
    ~Counted() { --all; }
    std::atomic<int>& all;
  };
  std::atomic<int> living{0};  // captures of hooks
  Shelf<Communicator> communicators;
  Shelf<RemovableHandle> handles;
  Shelf<Operation> operations;

 private:
  void keep(std::uint32_t at, const Result<RemovableHandle>& made) {
    if (!made) return;
    (void)handles.put(at, made.value());
    const std::lock_guard lock(mutex_);
    kept_.push_back(made.value());
  }
  Bus& bus_;
  std::mutex mutex_;
  std::vector<RemovableHandle> kept_;
};

TEST(CommunicatorMeetingTest, EveryCallMayMeetEveryOtherAndEachOperationEndsOnce) {
  for (std::uint32_t round = 0; round < 20; ++round) {
    Bus bus;
    std::atomic<std::uint64_t> issued{0};
    const auto begins = bus.channel<Issued>().subscribe_inline([&](const Issued&) { ++issued; });
    const auto ledger = Ledger::of(bus).value();
    Meeting meeting(bus);
    std::vector<std::thread> threads;
    for (std::uint32_t t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        std::mt19937 random(round * 4 + t);
        for (int i = 0; i < 300; ++i) meeting.do_one(static_cast<std::uint32_t>(random()));
      });
    }
    for (auto& thread : threads) thread.join();
    // A hook of an abort that nobody waited for may run, and register, still.
    while (meeting.living != 0 || ledger->figures().open != 0) {
      meeting.clear();
      std::this_thread::yield();
    }
    EXPECT_GT(issued, 0u);
    EXPECT_EQ(ledger->figures().unknown, 0u);
  }
}

TEST(CommunicatorMeetingTest, ABusMayEndWhileTheyMeet) {
  for (std::uint32_t round = 0; round < 20; ++round) {
    auto bus = std::make_unique<Bus>();
    Meeting meeting(*bus);
    for (std::uint32_t at = 0; at < 4; ++at) meeting.communicators.put(at, meeting.made());
    std::atomic<int> working{3};
    std::vector<std::thread> threads;
    for (std::uint32_t t = 0; t < 3; ++t) {
      threads.emplace_back([&, t] {
        std::mt19937 random(round * 3 + t);
        for (int i = 0; i < 300; ++i) meeting.do_one(static_cast<std::uint32_t>(random()));
        --working;
      });
    }
    while (meeting.living == 0 && working != 0) std::this_thread::yield();
    (void)bus->stop(StopMode::abort);
    for (auto& thread : threads) thread.join();
    while (meeting.living != 0) {
      meeting.clear();
      std::this_thread::yield();
    }
    bus.reset();
  }
}

TEST(CommunicatorMeetingTest, AForkAtAnyMomentLeavesTheChildInert) {
  // The child of a fork beside threads that allocate may find its allocator locked for ever.
  if (is_sanitized()) GTEST_SKIP() << "a sanitizer's allocator does not expect forks";
  Bus bus;
  const auto heard = bus.channel<Issued>().subscribe_inline([](const Issued&) {});
  Meeting meeting(bus);
  std::atomic<bool> working{true};
  std::vector<std::thread> threads;
  for (std::uint32_t t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(t + 1);
      while (working) meeting.do_one(static_cast<std::uint32_t>(random()));
    });
  }
  for (int i = 0; i < 64; ++i) {
    const Communicator comm = meeting.made();
    auto hook = comm.pre_hook([](const PreHookArgs&) { return Verdict::veto(Name("parent's")); });
    Operation operation;
    auto issuing = Communicator(comm).issue(collective::Finalize{});
    const pid_t child = ::fork();
    if (child == 0) {
      bool fine = comm.run(Barrier{}, [&](const Operation& one) { operation = one; });
      (void)operation.completed();
      issuing.returned();
      fine = fine && !comm.pre_hook([](const PreHookArgs&) { return Verdict::allow(); });
      fine = fine && !comm.part(world()) && !Communicator::make(bus, world());
      fine = fine && !Communicator::find(bus, "world");
      (void)comm.abort("child");
      (void)comm.run_abort_hooks("child");
      comm.end();
      if (hook) fine = fine && hook.value().reset() == Detached::was_not_attached;
      TestBus own;
      const auto mine = Communicator::make(own, world()).value();
      const auto guard = mine.pre_hook([](const PreHookArgs&) { return Verdict::veto(Name("x")); });
      fine = fine && guard && !mine.issue(Barrier{});
      std::_Exit(fine ? 0 : 1);
    }
    int how = 0;
    EXPECT_EQ(::waitpid(child, &how, 0), child);
    EXPECT_EQ(how, 0);
  }
  working = false;
  for (auto& thread : threads) thread.join();
  while (meeting.living != 0) {
    meeting.clear();
    std::this_thread::yield();
  }
}

}  // namespace
}  // namespace ringmain::tests
