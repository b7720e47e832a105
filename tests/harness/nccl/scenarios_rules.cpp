// What the whole operations do not show: ends that never come, masks that change, other processes,
// too much at once, copies, requests, and words that nobody knows.
#include <sys/mman.h>
#include <unistd.h>

#include "tests/harness/nccl/play.hpp"
#include "tests/harness/nccl/rules.hpp"
#include "tests/harness/nccl/scenarios.hpp"

namespace ringmain::nccl_conformance {
namespace {

Call some_call(Communicator& communicator, Function function = Function::all_reduce) {
  Call made;
  made.communicator = &communicator;
  made.function = function;
  made.count = 1000;
  made.peer = function >= Function::send ? 1 : 0;
  return made;
}

void begin_tasks(FrontEnd& front, Plan& plan) {
  front.group_event_begins(plan);
  front.tasks_begin(plan);
}

/// An address that belongs to another process: nothing is mapped there for this one.
void* foreign(int which) {
  // The same in each run, below all libraries, and where ThreadSanitizer lets a program have
  // memory.
  constexpr std::uintptr_t kWhere = 0x7E90'0000'0000;
  static void* const pages = ::mmap(reinterpret_cast<void*>(kWhere), 1 << 20, PROT_NONE,
                                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  return static_cast<std::byte*>(pages) + (1 << 16) * which + 64;
}

}  // namespace

void aborted_operations(Stage& stage) {
  Communicator communicator = stage.communicator();
  stage.open(communicator);
  Proxy proxy(stage.front, stage.random());
  Device device;
  KernelWatch kernels(stage.front, device, stage.options.release);
  for (int i = 0; i < 10; ++i) {
    Plan plan = call(stage.front, some_call(communicator), 4,
                     [&](Plan& launched) { stage.front.launch_begins(launched); });
    begin_tasks(stage.front, plan);  // posting the proxies' work fails: nothing of this stops
    proxy.append(plan, {.steps = 8});
    kernels.append(plan);
    proxy.progress_and_stop(communicator.context, i % 5);
    for (int channel = 0; channel < 4; ++channel) device.begin(channel, device.last(channel));
    (void)kernels.look();
  }
  {
    const Driving driving(stage, rules::kOpen);
    stage.front.finalize(communicator);
  }
  // A job goes on with a new communicator.
  Communicator fresh = stage.communicator();
  stage.open(fresh);
  (void)call(stage.front, some_call(fresh), 1, [&](Plan& plan) { enqueue(stage.front, plan); });
  stage.front.finalize(fresh);
}

void changed_masks(Stage& stage) {
  Communicator communicator = stage.communicator();
  stage.open(communicator);
  const int wanted = stage.front.mask();
  Proxy proxy(stage.front, stage.random());
  for (int i = 0; i < 50; ++i) {
    const Driving driving(stage, rules::kMaskChanges);
    stage.front.set_mask(wanted);
    (void)call(stage.front, {some_call(communicator), some_call(communicator)}, 2, [&](Plan& plan) {
      launch(stage.front, plan);
      enqueue(stage.front, plan, [&] { proxy.append(plan, {.steps = 2}); });
    });
    // Another may set any mask: what began is followed to its end, and nothing else begins.
    stage.front.set_mask(i % 3 == 0 ? 0 : static_cast<int>(stage.random()) & 0xFFFF);
    proxy.progress(communicator.context);
    stage.front.set_mask(0);
    const Driving stopped(stage, rules::kStopDead);
    for (int j = 0; j < 3; ++j) {
      // Under a clear mask each collective stops the handle of the thread's last one again (Q1).
      (void)call(stage.front, some_call(communicator), 1,
                 [&](Plan& plan) { enqueue(stage.front, plan); });
    }
  }
  // In the middle of a group: the second call has no parents.
  const Driving driving(stage, rules::kNullParent);
  stage.front.group_start(true);
  stage.front.set_mask(0);
  std::vector<Task> tasks{stage.front.append(some_call(communicator))};
  stage.front.set_mask(wanted);
  tasks.push_back(stage.front.append(some_call(communicator)));
  stage.front.group_end_begins();
  Plan plan;
  plan.communicator = &communicator;
  plan.tasks = std::move(tasks);
  enqueue(stage.front, plan);
  stage.front.group_end();
  stage.front.finalize(communicator);
}

void other_processes(Stage& stage) {
  Communicator communicator = stage.communicator(0, 8, 2);
  stage.open(communicator);
  Proxy proxy(stage.front, stage.random());
  for (int i = 0; i < 20; ++i) {
    Sub remote;
    remote.pid = ::getpid() + 1 + i;
    remote.mask = stage.front.mask();
    remote.rank = 3;
    remote.peer = 5;
    remote.channel = i % 4;
    // What another process holds for a context and for a handle: addresses, small numbers, or what
    // is ours by accident.
    remote.context = i % 3 == 2 ? communicator.context : foreign(i % 8);
    remote.task = i % 3 == 1 ? reinterpret_cast<void*>(std::uintptr_t{7}) : foreign(8 + i % 7);
    const Driving driving(stage, i % 3 == 2 ? rules::kForeignParent : rules::kForeignContext);
    proxy.append_one(remote, i % 2 == 0, {.steps = 3});
    proxy.progress(communicator.context);
  }
  stage.front.finalize(communicator);
}

void other_transports(Stage& stage) {
  Communicator communicator = stage.communicator(0, 8, 2);
  stage.open(communicator);
  Proxy proxy(stage.front, stage.random());
  for (int i = 0; i < 20; ++i) {
    const Network collnet{.steps = 3, .restarts = i % 2 != 0, .is_net = false};
    const Driving driving(stage, rules::kDirection);
    (void)call(stage.front, some_call(communicator), 2, [&](Plan& plan) {
      launch(stage.front, plan);
      enqueue(stage.front, plan, [&] { proxy.append(plan, collnet); });
    });
    proxy.progress(communicator.context);
  }
  stage.front.finalize(communicator);
}

void too_many_open(Stage& stage) {
  Communicator communicator = stage.communicator(0, 64, 8);
  stage.open(communicator);
  constexpr int kPlans = 400;
  constexpr int kTasks = 64;
  std::vector<Plan> open;
  for (int i = 0; i < kPlans; ++i) {
    const Driving driving(stage, rules::kFull);
    std::vector<Call> calls(kTasks, some_call(communicator, Function::send));
    open.push_back(call(stage.front, calls, 1, [](Plan&) {}));
    begin_tasks(stage.front, open.back());
  }
  for (Plan& plan : open) {
    const Driving driving(stage, rules::kFull);
    stage.front.tasks_end(plan);
    stage.front.group_event_ends(plan);
  }
  // There is room again.
  (void)call(stage.front, some_call(communicator), 1,
             [&](Plan& plan) { enqueue(stage.front, plan); });
  stage.front.finalize(communicator);
}

void copy_engines(Stage& stage) {
  Communicator communicator = stage.communicator(0, 8, 1);
  stage.open(communicator);
  for (int i = 0; i < 10; ++i) {
    const bool with_parent = i % 2 == 0;
    const Driving driving(stage, with_parent ? nullptr : rules::kNullParent);
    CopyEngineCall copy;
    copy.call = some_call(communicator, Function::all_gather);
    copy.call.tag = static_cast<std::uint64_t>(i);
    (void)call(stage.front, copy.call, 0, [&](Plan& plan) {
      if (with_parent) copy.api = plan.tasks.front().api;
      stage.front.copy_begins(copy);
      stage.front.copy_sync(copy);
      stage.front.copy_batch(copy, 7, 7 << 20);
      stage.front.copy_sync(copy);
      stage.front.copy_ends(copy);
    });
  }
  stage.front.finalize(communicator);
}

void network_requests(Stage& stage) {
  constexpr std::int64_t kInfiniband = (std::int64_t{1} << 16) | 1;
  Communicator communicator = stage.communicator();
  stage.open(communicator);
  auto arguments = std::make_shared<ProxyArguments>();
  arguments->send = true;
  arguments->used = 1;
  Plan plan = call(stage.front, some_call(communicator), 1,
                   [&](Plan& launched) { begin_tasks(stage.front, launched); });
  Sub& sub = arguments->subs[0];
  sub.context = communicator.context;
  sub.mask = plan.tasks.front().mask;
  sub.task = plan.tasks.front().event;
  sub.pid = ::getpid();
  sub.steps = 4;
  stage.front.proxy_op_begins(*arguments, 0);
  for (int step = 0; step < 4; ++step) {
    stage.front.step_begins(*arguments, 0, step);
    for (int thread = 0; thread < 2; ++thread) {
      stage.actor("sock " + std::to_string(thread)).post([&stage, arguments, step] {
        abi::NetInfiniband verbs{1, {2, 3, 4, 5, 6}};
        void* handle = nullptr;
        stage.front.net_begins(*arguments, 0, step, kInfiniband, &verbs, &handle);
        verbs.qp.length = 4096;
        if (handle == nullptr) return;
        stage.front.net_is(handle, &verbs);
        stage.front.net_ends(handle);
      });
    }
    stage.wait_for_all();
    stage.front.step_ends(*arguments, 0, step);
  }
  stage.front.proxy_op_ends(*arguments, 0);
  stage.front.tasks_end(plan);
  stage.front.group_event_ends(plan);
  stage.front.finalize(communicator);
}

void kernel_phases(Stage& stage) {
  Communicator communicator = stage.communicator(0, 8, 1);
  stage.open(communicator);
  ProxyArguments arguments;
  arguments.used = 1;
  (void)call(stage.front, some_call(communicator), 2, [&](Plan& plan) {
    launch(stage.front, plan);
    begin_tasks(stage.front, plan);
    Sub& sub = arguments.subs[0];
    sub.context = communicator.context;
    sub.mask = plan.tasks.front().mask;
    sub.task = plan.tasks.front().event;
    for (int channel = 0; channel < 2; ++channel) {
      sub.channel = channel;
      stage.front.kernel_begins(arguments, 0, 1000);
      stage.front.kernel_phase(arguments, 0, 0, 1000, 1032);
      stage.front.kernel_phase(arguments, 0, 1, 1032, 1992);
      stage.front.kernel_phase(arguments, 0, 2, 1992, 2024);
      stage.front.kernel_ends(arguments, 0, 2024);
    }
    stage.front.tasks_end(plan);
    stage.front.group_event_ends(plan);
  });
  stage.front.finalize(communicator);
}

}  // namespace ringmain::nccl_conformance
