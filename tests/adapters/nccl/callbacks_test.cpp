// What do callbacks do in NCCL's threads, and what if the process forks or ends in the middle of
// one?
//
// From its second event of a kind on, a thread of NCCL's makes no system call and allocates
// nothing: system calls are forbidden to it by the kernel, and each allocation of its fails. So it
// waits for no lock either, as that is a system call; one that is free and taken is not seen here.
#include <atomic>
#include <functional>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <new>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "engine/system/atomics.hpp"

#include "bus/bus.hpp"

#include "adapters/sources/nccl/nccl_core.hpp"

#include "tests/adapters/nccl/plugin_driver.hpp"
#include "tests/engine/eventually.hpp"
#include "tests/process/allocation_faults.hpp"
#include "tests/process/child.hpp"
#include "tests/process/sanitized.hpp"
#include "tests/process/stopped.hpp"

namespace ringmain::nccl {
namespace {

/// Calls of NCCL's functions, which are not judged: a test framework allocates.
struct Raw {
  const abi::TableV7& table;
  void* context;

  [[nodiscard]] void* start(const abi::DescriptorV7& what) const {
    abi::DescriptorV7 copy = what;
    void* handle = nullptr;
    (void)table.start_event(context, &handle, &copy);
    return handle;
  }
  void stop(void* handle) const { (void)table.stop_event(handle); }
  void record(void* handle, abi::State state, abi::StateArgs* args) const {
    (void)table.record_event_state(handle, state, args);
  }
};

/// One of each type of span that NCCL tells of, as one operation has them.
void whole_operation(const Raw& nccl) {
  const auto of = [](abi::Type type, void* parent) { return Driver::descriptor(type, parent); };
  abi::StateArgs args{};
  void* const group = nccl.start(of(abi::kGroupApi, nullptr));
  auto call = of(abi::kCollApi, group);
  call.coll_api = {"AllReduce", 1024, "ncclFloat32", 0, nullptr, false, 0};
  void* const api = nccl.start(call);
  nccl.stop(api);
  void* const launch = nccl.start(of(abi::kKernelLaunch, group));
  nccl.stop(launch);
  void* const plan = nccl.start(of(abi::kGroup, nullptr));
  auto coll = of(abi::kColl, api);
  coll.coll.func = "AllReduce";
  coll.coll.datatype = "ncclFloat32";
  coll.coll.algo = "RING";
  coll.coll.proto = "LL";
  coll.coll.count = 1024;
  coll.coll.n_channels = 1;
  coll.coll.parent_group = plan;
  void* const operation = nccl.start(coll);
  auto proxy = of(abi::kProxyOp, operation);
  proxy.proxy_op = {switchboard.core.load()->process, 0, 5, 4, 65536, 1};
  void* const op = nccl.start(proxy);
  nccl.record(op, abi::kProxyOpInProgress, nullptr);
  void* const step = nccl.start(of(abi::kProxyStep, op));
  for (const abi::State state : {abi::kSendGpuWait, abi::kSendPeerWait, abi::kSendWait})
    nccl.record(step, state, &args);
  nccl.stop(step);
  nccl.stop(operation);
  nccl.stop(plan);
  nccl.stop(group);
  auto kernel = of(abi::kKernelCh, operation);
  kernel.kernel_ch = {0, 1000};
  void* const running = nccl.start(kernel);
  args.kernel_ch.p_timer = 2000;
  nccl.record(running, abi::kKernelChStop, &args);
  nccl.stop(running);
  nccl.stop(op);
  void* const control = nccl.start(of(abi::kProxyCtrl, nullptr));
  nccl.record(control, abi::kCtrlIdle, &args);
  nccl.stop(control);
  void* const engine = nccl.start(of(abi::kCeColl, api));
  nccl.stop(nccl.start(of(abi::kCeBatch, engine)));
  nccl.stop(engine);
  nccl.stop(nccl.start(of(abi::kNetPlugin, step)));
  nccl.stop(step);  // stale, and of nothing
  nccl.stop(reinterpret_cast<void*>(0x10));
}

/// From here on a system call of this thread ends the process. False: it cannot be forbidden here.
bool forbid_all_system_calls() {
  sock_filter rule = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
  sock_fprog filter{1, &rule};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter) == 0;
}
enum : int { kCannotForbid = 3 };

Options kernels_always() {
  Options options;
  options.kernel_channels = KernelChannels::always;
  return options;
}

/// In a child. `between`: what the thread does beside its events, which the test is to find.
void tell_without_system_calls(tests::Findings& found, bool (*between)()) {
  enum : int { kOperations = 40, kFirst = 2 };
  auto* const bus = new Bus;  // they outlive this, as their thread does
  auto* const subscriptions = new std::vector<Subscription>;
  static std::atomic<std::uint64_t> completed{0}, spans{0};
  subscriptions->push_back(bus->subscribe("nccl.*", [](const EventView&) { ++spans; }));
  subscriptions->push_back(bus->channel<collective::Completed>().subscribe(
      [](const collective::Completed&) { ++completed; }));
  auto* const source = new Source(Source::attach(*bus, kernels_always()).value());
  (void)source;
  auto* const table = new PluginTable(7);
  auto* const nccl = new Driver(*table);
  static std::atomic<int> done{0};
  static std::atomic<bool> asked{false};
  std::thread([&table = *table, context = nccl->context, between] {
    const Raw raw{table.as<abi::TableV7>(), context};
    for (int i = 0; i < kFirst; ++i, ++done) whole_operation(raw);
    while (!asked) engine::pause();
    if (!forbid_all_system_calls()) ::_exit(kCannotForbid);
    tests::fail_own_allocations(1, 1L << 50);
    for (int i = kFirst; i < kOperations; ++i, ++done) {
      whole_operation(raw);
      if (between != nullptr && between()) break;
    }
    for (;;) engine::pause();  // not even its end is allowed
  }).detach();
  found.expect(tests::eventually([] { return done >= kFirst; }), "its first events");
  asked = true;
  found.expect(tests::eventually([] { return done >= kOperations; }), "the others");
  found.expect(tests::eventually([&] { return completed == kOperations; }), "each has an end");
  const Counts now = Source::counts();
  found.expect(now.refused == 0, "an event was refused");
  found.expect(now.no_room == 0, "a span had no room");
  found.expect(now.started == now.stopped + now.stale, "a span is open");
}

std::string end_of_a_thread_that(bool (*between)()) {
  return tests::in_child(
      [between](tests::Findings& found) { tell_without_system_calls(found, between); },
      tests::Leave::by_underscore_exit);
}

TEST(NcclCallbacksTest, InNcclsThreadsIsNoSystemCallAndNoAllocation) {
  if (tests::is_sanitized()) GTEST_SKIP() << "a sanitizer makes system calls of its own";
  const std::string end = end_of_a_thread_that(nullptr);
  if (end == "exited with 3") GTEST_SKIP() << "system calls cannot be forbidden here";
  EXPECT_EQ(end, tests::kFine);
}

/// What the test above would find.
TEST(NcclCallbacksTest, ASystemCallOrAnAllocationIsFound) {
  if (tests::is_sanitized()) GTEST_SKIP() << "a sanitizer makes system calls of its own";
  const std::string end = end_of_a_thread_that([] {
    (void)::syscall(SYS_gettid);
    return false;
  });
  if (end == "exited with 3") GTEST_SKIP() << "system calls cannot be forbidden here";
  EXPECT_EQ(end, "killed by 31 (Bad system call)");
  EXPECT_NE(end_of_a_thread_that([] {
              ::operator delete(::operator new(7));  // the compiler may not leave it out
              return false;
            }),
            tests::kFine);
}

// --- a fork, or an end, in the middle of a callback ---

struct Middle {
  long child = -1;
  bool is_end = false;
};
void in_the_middle(void* with) {
  auto& middle = *static_cast<Middle*>(with);
  if (middle.is_end) ::_exit(0);
  middle.child = ::fork();
  if (middle.child == 0) ::alarm(tests::kChildSecondsMax);
}

/// After each so many instructions of one operation's callbacks. In the child the source is inert,
/// and whatever NCCL still tells does nothing; the parent goes on.
void fork_in_the_middle(tests::Findings& found) {
  PluginTable table(7);
  Bus bus;
  auto all = bus.subscribe("nccl.*", [](const EventView&) {});
  auto completed = bus.channel<collective::Completed>().subscribe([](const auto&) {});
  auto source = Source::attach(bus, kernels_always()).value();
  Driver nccl(table);
  const Raw raw{table.as<abi::TableV7>(), nccl.context};
  whole_operation(raw);
  long forks = 0;
  for (long at = 1; at < 1L << 22; at += 1499) {
    Middle middle;
    tests::Stopped stopped(at, &in_the_middle, &middle);
    const bool reached = stopped.run([&] { whole_operation(raw); });
    if (middle.child == 0) {
      const Counts before = Source::counts();
      whole_operation(raw);
      void* context = &middle;
      int mask = 0;
      (void)raw.table.init(&context, 1, &mask, "of a child", 1, 2, 0, nullptr);
      (void)raw.table.finalize(raw.context);
      const bool inert = context == nullptr && Source::counts().started == before.started &&
                         source.detach() == Detached::was_not_attached;
      ::_exit(inert ? 0 : 1);
    }
    if (!reached) break;
    ++forks;
    found.expect(tests::ended(static_cast<pid_t>(middle.child)) == tests::kFine, "a child");
  }
  found.expect(forks > 10, "too few forks");
  nccl.finalize();
  found.expect(source.detach() == Detached::done, "the parent's source");
  const Counts now = Source::counts();
  found.expect(now.started == now.stopped + now.stale + now.aborted, "the parent's spans");
}

TEST(NcclCallbacksTest, AForkInTheMiddleOfACallbackLeavesTheChildInert) {
  if (tests::is_sanitized() || !tests::stops_after_each_instruction())
    GTEST_SKIP() << "this processor, or a sanitizer, does not stop after each instruction";
  EXPECT_EQ(tests::in_child(&fork_in_the_middle), tests::kFine);
}

TEST(NcclCallbacksTest, AProcessMayEndInTheMiddleOfACallback) {
  if (tests::is_sanitized() || !tests::stops_after_each_instruction())
    GTEST_SKIP() << "this processor, or a sanitizer, does not stop after each instruction";
  for (const bool by_exit : {false, true}) {
    for (long at = 1; at < 40'000; at += 6'999) {
      const std::string end = tests::in_child([&](tests::Findings&) {
        PluginTable table(7);
        auto* const bus = new Bus;
        auto all = bus->subscribe("nccl.*", [](const EventView&) {});
        auto* const source = new Source(Source::attach(*bus, kernels_always()).value());
        (void)source;
        Driver nccl(table);
        const Raw raw{table.as<abi::TableV7>(), nccl.context};
        whole_operation(raw);  // a thread's first use allocates, in the middle of which none exits
        Middle middle{-1, true};
        tests::Stopped stopped(at, by_exit ? +[](void*) { std::exit(0); } : &in_the_middle,
                               &middle);
        (void)stopped.run([&] { whole_operation(raw); });
      });
      EXPECT_EQ(end, tests::kFine) << at;
    }
  }
}

/// A child that has no source of its own is told of a name, which it does not keep.
TEST(NcclCallbacksTest, AForkedChildsInitDoesNothing) {
  const std::string end = tests::in_child([](tests::Findings& found) {
    PluginTable table(7);
    Driver nccl(table);
    const pid_t child = ::fork();
    if (child == 0) {
      const std::uint64_t names = names_stats().names;
      void* context = &table;
      int mask = 0;
      tests::fail_own_allocations(1, 1L << 50);
      const bool fine = table.init(&context, &mask, "a name of the child's", 1, 1, 2, 0) == 0;
      const bool needed_memory = tests::heal_allocations();
      ::_exit(fine && context == nullptr && !needed_memory && names_stats().names == names ? 0 : 1);
    }
    found.expect(tests::ended(child) == tests::kFine, "the child");
  });
  EXPECT_EQ(end, tests::kFine);
}

}  // namespace
}  // namespace ringmain::nccl
