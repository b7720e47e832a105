// What if a program's calls, its hooks and its subscribers meet in the worst order, or ask for
// nonsense?
#include <atomic>
#include <csignal>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <sched.h>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>

#include "tests/adapters/nccl/wrapper_fixture.hpp"
#include "tests/process/sanitized.hpp"

namespace ringmain::nccl::detail {
void set_gates() noexcept;  // nccl_library.cpp
}

namespace ringmain::tests {
namespace {

using collective::Communicator;

/// NCCL's functions, some of them replaced.
class Replaced {
 public:
  Replaced() : functions_(nccl::load_functions(nullptr).value()), before_(functions_) {}
  Replaced(const Replaced&) = delete;
  Replaced& operator=(const Replaced&) = delete;
  ~Replaced() { nccl::use_functions(before_); }
  template <class F>
  void put(nccl::Function which, F* function) {
    functions_.at[static_cast<std::size_t>(which)] = reinterpret_cast<nccl::AnyFunction*>(function);
    nccl::use_functions(functions_);
  }
  [[nodiscard]] const nccl::Functions& before() const { return before_; }

 private:
  nccl::Functions functions_;
  const nccl::Functions before_;
};

class HostileTest : public OperationsTest {};

TEST_F(HostileTest, AnAbortInsideOfAnAbortIsOneOfNccls) {
  attach();
  nccl::ncclComm_t comm = made("dp");
  EXPECT_EQ(all_reduce(comm), nccl::ncclSuccess);
  auto hook = communicator("dp").abort_hook([&](const collective::AbortHookArgs&) {
    EXPECT_EQ(nccl::CommAbort(comm), nccl::ncclSuccess);
  });
  ASSERT_TRUE(hook);
  (void)communicator("dp").abort("enough", "a subscriber");
  EXPECT_EQ(fake_nccl::fake_nccl_seen("ncclCommAbort"), 1u);
  EXPECT_FALSE(communicator("dp"));
}

TEST_F(HostileTest, WhatIsDestroyedWhileItIsAbortedIsFreedOnce) {
  attach();
  nccl::ncclComm_t comm = made("dp");
  EXPECT_EQ(all_reduce(comm), nccl::ncclSuccess);
  auto hook = communicator("dp").abort_hook([&](const collective::AbortHookArgs&) {
    EXPECT_EQ(nccl::CommDestroy(comm), nccl::ncclSuccess);
  });
  ASSERT_TRUE(hook);
  (void)communicator("dp").abort("enough", "a subscriber");
  EXPECT_EQ(fake_nccl::fake_nccl_seen("ncclCommDestroy"), 1u);
  EXPECT_EQ(fake_nccl::fake_nccl_seen("ncclCommAbort"), 0u);
}

TEST_F(HostileTest, OneThatNcclDidNotDestroyMayStillBeAborted) {
  attach();
  nccl::ncclComm_t comm = made("dp");
  fake_nccl::fake_nccl_fail("ncclCommDestroy", 3);
  EXPECT_EQ(nccl::CommDestroy(comm), nccl::ncclInternalError);
  (void)communicator("dp").abort("enough", "a subscriber");
  EXPECT_EQ(fake_nccl::fake_nccl_seen("ncclCommAbort"), 1u);
  destroy(comm);
  EXPECT_EQ(fake_nccl::fake_nccl_seen("ncclCommDestroy"), 1u);
}

TEST_F(HostileTest, AHandleGivenUpBeforeItWasMadeNamesNoLaterOne) {
  attach();
  nccl::ncclComm_t first = made("early", 1, 4, false);
  EXPECT_EQ(nccl::CommAbort(first), nccl::ncclSuccess);
  nccl::ncclComm_t second = made("late");
  ASSERT_EQ(first, second);
  (void)settled(second);
  EXPECT_FALSE(communicator("early"));
  EXPECT_TRUE(communicator("late"));
  EXPECT_EQ(all_reduce(second), nccl::ncclSuccess);
  (void)bus_.deliver();
  ASSERT_EQ(issued_.size(), 1u);
  EXPECT_EQ(issued_[0].group.view(), "late");
  destroy(second);
}

TEST_F(HostileTest, WhatIsInProgressAtADetachIsLetGo) {
  attach();
  nccl::ncclComm_t comm = settled(made("dp", 1, 4, false));
  EXPECT_EQ(all_reduce(comm), nccl::ncclInProgress);
  calls_.detach();
  (void)bus_.deliver();
  EXPECT_EQ(open(), 0u);
  EXPECT_EQ(nccl::CommAbort(comm), nccl::ncclSuccess);
}

std::function<void()> at_count;
/// Of the type by which the library asks.
int counted(const void*, int* count) {
  *count = 4;
  if (at_count) at_count();
  return 0;
}

TEST_F(HostileTest, OneThatIsMadeWhileItsAttachmentGoesIsNotKept) {
  Replaced functions;
  functions.put(nccl::Function::CommCount, &counted);
  attach();
  at_count = [this] { calls_.detach(); };
  nccl::ncclComm_t comm = made("dp");
  at_count = {};
  EXPECT_FALSE(communicator("dp"));
  destroy(comm);
}

TEST_F(HostileTest, OneThatIsMadeWhileItsBusGoesUsesItNoMore) {
  Replaced functions;
  functions.put(nccl::Function::CommCount, &counted);
  auto bus = std::make_unique<Bus>();
  auto calls = nccl::Calls::attach(*bus).value();
  at_count = [&] {
    calls.detach();
    bus.reset();
  };
  nccl::ncclComm_t comm = made("dp");
  at_count = {};
  EXPECT_EQ(bus, nullptr);
  destroy(comm);
}

/// In the middle of making it: who detaches for a subscriber waits for nobody.
TEST_F(HostileTest, OneThatIsMadeWhileASubscriberDetachesIsNotKept) {
  attach();
  const auto groups = bus_.channel<collective::Group>().subscribe_inline(
      [this](const collective::Group&) { calls_.detach(); });
  nccl::ncclComm_t comm = made("dp");
  EXPECT_FALSE(communicator("dp"));
  destroy(comm);
}

TEST_F(HostileTest, SizesOfAnyKindAreToldOrNot) {
  attach();
  nccl::ncclComm_t comm = made("dp");
  static char data[2];
  for (const std::size_t count : {std::size_t{0}, std::size_t{1} << 61, std::size_t{1} << 62,
                                  std::size_t{1} << 63, std::numeric_limits<std::size_t>::max()}) {
    EXPECT_EQ(nccl::AllGather(data, data, count, nccl::ncclFloat64, comm, nullptr), 0);
    EXPECT_EQ(
        nccl::ReduceScatter(data, data, count, nccl::ncclFloat64, nccl::ncclSum, comm, nullptr), 0);
    EXPECT_EQ(nccl::AlltoAll(data, data, count, nccl::ncclFloat64, comm, nullptr), 0);
    EXPECT_EQ(nccl::AllReduce(data, data, count, nccl::ncclFloat64, nccl::ncclSum, comm, nullptr),
              0);
    for (const int root : {-1, 0, 1, 1 << 30, std::numeric_limits<int>::min()}) {
      EXPECT_EQ(nccl::Scatter(data, data, count, nccl::ncclFloat64, root, comm, nullptr), 0);
      EXPECT_EQ(nccl::Gather(data, data, count, static_cast<nccl::ncclDataType_t>(77), root, comm,
                             nullptr),
                0);
      EXPECT_EQ(nccl::Send(data, count, static_cast<nccl::ncclDataType_t>(-5), root, comm, nullptr),
                0);
    }
  }
  (void)bus_.deliver();
  destroy(comm);
}

TEST_F(HostileTest, WhatHooksDoInsideOfACallIsHarmless) {
  attach();
  nccl::ncclComm_t comm = made("dp"), other = made("tp");
  int depth = 0;
  auto hook = communicator("dp").pre_hook([&](const collective::PreHookArgs&) {
    if (depth++ != 0) return Verdict::allow();
    EXPECT_EQ(all_reduce(other), nccl::ncclSuccess);
    EXPECT_EQ(all_reduce(comm), nccl::ncclSuccess);
    nccl::ncclComm_t third = made("third");
    destroy(third);
    EXPECT_EQ(nccl::GroupStart(), 0);
    EXPECT_EQ(all_reduce(other), nccl::ncclSuccess);
    EXPECT_EQ(nccl::GroupEnd(), 0);
    return Verdict::allow();
  });
  EXPECT_EQ(all_reduce(comm), nccl::ncclSuccess);
  EXPECT_EQ(fake_nccl::fake_nccl_seen("ncclAllReduce"), 4u);
  (void)bus_.deliver();
  EXPECT_EQ(issued_.size(), 4u);
  EXPECT_EQ(open(), 0u);
  destroy(comm);
  destroy(other);
}

TEST_F(HostileTest, AHookMayDetachDestroyOrThrow) {
  attach();
  nccl::ncclComm_t comm = made("dp");
  {
    auto hook = communicator("dp").pre_hook(
        [&](const collective::PreHookArgs&) -> Verdict { throw std::runtime_error("no"); });
    EXPECT_EQ(all_reduce(comm), nccl::ncclInvalidUsage);  // a guard that fails lets nothing pass
  }
  {
    bool done = false;
    auto hook = communicator("dp").pre_hook([&](const collective::PreHookArgs&) {
      if (!std::exchange(done, true)) destroy(std::exchange(comm, nullptr));
      return Verdict::allow();
    });
    EXPECT_NE(all_reduce(comm), nccl::ncclInProgress);
  }
  comm = made("dp");
  {
    auto hook = communicator("dp").pre_hook([&](const collective::PreHookArgs&) {
      calls_.detach();
      return Verdict::allow();
    });
    (void)all_reduce(comm);
  }
  destroy(comm);
}

/// Holds up the first thread that writes the gates, which others may write meanwhile.
class AtTheGates {
 public:
  AtTheGates() {
    struct sigaction holds {};
    holds.sa_sigaction = [](int, siginfo_t*, void*) {
      protect(PROT_READ | PROT_WRITE);
      stands = true;
      while (!goes_on) ::sched_yield();
    };
    holds.sa_flags = SA_SIGINFO;
    (void)::sigaction(SIGSEGV, &holds, &before_);
    stands = goes_on = false;
    protect(PROT_READ);
  }
  AtTheGates(const AtTheGates&) = delete;
  AtTheGates& operator=(const AtTheGates&) = delete;
  ~AtTheGates() {
    protect(PROT_READ | PROT_WRITE);
    (void)::sigaction(SIGSEGV, &before_, nullptr);
  }
  static void wait() {
    while (!stands) std::this_thread::yield();
  }
  static void let_on() { goes_on = true; }

 private:
  static void protect(int how) {
    const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    const auto at = reinterpret_cast<std::uintptr_t>(&nccl::detail::gates[0].plain) / page * page;
    (void)::mprotect(reinterpret_cast<void*>(at), page, how);
  }
  static std::atomic<bool> stands, goes_on;
  struct sigaction before_ {};
};
std::atomic<bool> AtTheGates::stands, AtTheGates::goes_on;

TEST_F(HostileTest, GatesStayAsTheLastOneWantedThem) {
  if (is_watched_by_tsan()) GTEST_SKIP() << "ThreadSanitizer holds a lock where a store is held up";
  const nccl::Functions functions = nccl::load_functions(nullptr).value();
  nccl::use_functions(functions);
  {
    const AtTheGates gates;
    std::thread finder([] { nccl::detail::set_gates(); });  // nobody is attached, it has seen
    AtTheGates::wait();
    attach();
    AtTheGates::let_on();
    finder.join();
  }
  EXPECT_EQ(nccl::detail::gates[0].plain.load(), nullptr);
  nccl::ncclComm_t comm = made("dp");
  EXPECT_EQ(all_reduce(comm), nccl::ncclSuccess);
  (void)bus_.deliver();
  EXPECT_EQ(issued_.size(), 1u);
  destroy(comm);
}

}  // namespace
}  // namespace ringmain::tests
