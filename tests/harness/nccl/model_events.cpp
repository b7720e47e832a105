// What follows a call: plans, the proxy's operations and steps, kernels and copies.
#include <atomic>

#include "tests/harness/nccl/model.hpp"

namespace ringmain::nccl_conformance {
namespace {

constexpr int kAfterColl = abi::kProxyOp | abi::kProxyStep | abi::kKernelCh | abi::kNetPlugin;
constexpr int kAfterGroup = abi::kColl | abi::kP2p | kAfterColl;
constexpr int kAfterProxyOp = abi::kProxyStep | abi::kNetPlugin;
constexpr int kCopies = abi::kCeColl | abi::kCeSync | abi::kCeBatch;

/// The first task whose call was appended under a mask, which stands for the plan.
const Task* wanted_task(const Plan& plan) {
  for (const Task& task : plan.tasks) {
    if (task.mask != 0) return &task;
  }
  return nullptr;
}

void*& handle_of(Sub& sub, int step) {
  return sub.step[static_cast<std::size_t>(step) % kStepsInFlight];
}

int divided_up(int value, int by) {
  return (value + by - 1) / by;
}

/// How many operations of its function the communicator has had. NCCL adds to it in the thread that
/// enqueues a plan, which may be the application's and CUDA's at once.
std::atomic_ref<std::uint64_t> sequence_of(const Task& task, const Plan& plan) {
  return std::atomic_ref(plan.communicator->sequence[static_cast<std::size_t>(task.call.function)]);
}

abi::DescriptorV7 coll_of(const Task& task, const Plan& plan) {
  abi::DescriptorV7 descriptor{};
  descriptor.type = abi::kColl;
  descriptor.coll.seq_number = sequence_of(task, plan).load(std::memory_order_relaxed);
  descriptor.coll.func = text_of(task.call.function);
  descriptor.coll.send_buff = reinterpret_cast<const void*>(kSendBuffer);
  descriptor.coll.recv_buff = reinterpret_cast<void*>(kRecvBuffer);
  descriptor.coll.count = task.count;
  descriptor.coll.root = task.call.peer;
  descriptor.coll.datatype = text_of(task.datatype);
  descriptor.coll.n_channels = task.channels;
  descriptor.coll.n_warps = kWarps;
  descriptor.coll.algo = "RING";
  descriptor.coll.proto = "SIMPLE";
  descriptor.coll.parent_group = plan.group;
  descriptor.coll.user_tag = task.call.tag;
  return descriptor;
}

abi::DescriptorV7 p2p_of(const Task& task, const Plan& plan) {
  abi::DescriptorV7 descriptor{};
  descriptor.type = abi::kP2p;
  descriptor.p2p.func = text_of(task.call.function);
  descriptor.p2p.buff = reinterpret_cast<void*>(kRecvBuffer);
  descriptor.p2p.datatype = text_of(task.datatype);
  descriptor.p2p.count = task.count;
  descriptor.p2p.peer = task.call.peer;
  descriptor.p2p.n_channels = task.channels;
  descriptor.p2p.parent_group = plan.group;
  descriptor.p2p.user_tag = task.call.tag;
  return descriptor;
}

}  // namespace

void Model::launch_begins(Plan& plan) {
  const Task* const task = wanted_task(plan);
  if (plugin_ == nullptr || task == nullptr || !any_of(task->mask, abi::kKernelLaunch)) return;
  abi::DescriptorV7 descriptor{};
  descriptor.type = abi::kKernelLaunch;
  descriptor.rank = has_ranks_in_calls(release_) ? plan.communicator->rank : 0;
  descriptor.parent = task->group_api;
  descriptor.kernel_launch.stream = reinterpret_cast<void*>(plan.stream);
  plugin_->start(plan.communicator->context, &plan.launch, descriptor);
}

void Model::launch_ends(Plan& plan) {
  if (plugin_ != nullptr && plan.launch != nullptr) plugin_->stop(plan.launch);
}

void Model::group_event_begins(Plan& plan) {
  const Task* const task = wanted_task(plan);
  if (plugin_ == nullptr || task == nullptr || !any_of(task->mask, abi::kGroup | kAfterGroup)) {
    return;
  }
  abi::DescriptorV7 descriptor{};
  descriptor.type = abi::kGroup;
  plugin_->start(plan.communicator->context, &plan.group, descriptor);
}

void Model::group_event_ends(Plan& plan) {
  if (plugin_ == nullptr || plan.group == nullptr) return;
  plugin_->stop(plan.group);
  if (clears_plans(release_)) plan.group = nullptr;
}

void Model::tasks_begin(Plan& plan) {
  for (Task& task : plan.tasks) {
    const bool p2p = task.call.point_to_point();
    const int wanted = (p2p ? abi::kP2p : abi::kColl) | kAfterColl;
    if (plugin_ != nullptr && (task.mask & wanted) != 0) {
      abi::DescriptorV7 descriptor = p2p ? p2p_of(task, plan) : coll_of(task, plan);
      descriptor.parent = task.api;
      descriptor.rank = plan.communicator->rank;
      plugin_->start(plan.communicator->context, &task.event, descriptor);
    }
    if (p2p) continue;
    const bool counted =
        !plan.persistent || (plugin_ != nullptr && (plan.group != nullptr || task.api != nullptr) &&
                             any_of(task.mask, abi::kKernelCh));
    if (counted) sequence_of(task, plan).fetch_add(1, std::memory_order_relaxed);
  }
}

void Model::tasks_end(Plan& plan) {
  for (Task& task : plan.tasks) {
    if (plugin_ == nullptr || task.event == nullptr) continue;
    plugin_->stop(task.event);
    if (clears_plans(release_)) task.event = nullptr;
  }
}

void Model::proxy_op_begins(ProxyArguments& arguments, std::size_t place) {
  Sub& sub = arguments.subs[place];
  if (plugin_ == nullptr || !any_of(sub.mask, abi::kProxyOp | kAfterProxyOp)) return;
  abi::DescriptorV7 descriptor{};
  descriptor.type = abi::kProxyOp;
  descriptor.parent = sub.task;
  descriptor.rank = sub.rank;
  descriptor.proxy_op.pid = sub.pid;
  descriptor.proxy_op.channel_id = static_cast<std::uint8_t>(sub.channel);
  descriptor.proxy_op.peer = sub.peer;
  descriptor.proxy_op.n_steps = divided_up(sub.steps, arguments.slice_steps);
  descriptor.proxy_op.chunk_size = arguments.chunk_bytes * arguments.slice_steps;
  descriptor.proxy_op.is_send = arguments.send && arguments.over_net ? 1 : 0;
  plugin_->start(sub.context, &sub.op, descriptor);
}

void Model::proxy_op_progresses(ProxyArguments& arguments, std::size_t place) {
  Sub& sub = arguments.subs[place];
  if (plugin_ == nullptr || sub.op == nullptr) return;
  const abi::StateArgs args{};
  plugin_->record(sub.op, abi::kProxyOpInProgress, &args);
}

void Model::proxy_op_ends(ProxyArguments& arguments, std::size_t place) {
  Sub& sub = arguments.subs[place];
  if (plugin_ == nullptr || sub.op == nullptr) return;
  plugin_->stop(sub.op);
  sub.op = nullptr;
}

void Model::step_begins(ProxyArguments& arguments, std::size_t place, int step) {
  Sub& sub = arguments.subs[place];
  if (plugin_ == nullptr || (sub.mask & kAfterProxyOp) == 0) return;
  const int transfer = divided_up(step, arguments.slice_steps);
  abi::DescriptorV7 descriptor{};
  descriptor.type = abi::kProxyStep;
  descriptor.parent = sub.op;
  descriptor.rank = sub.rank;
  descriptor.proxy_step.step = transfer;
  plugin_->start(sub.context, &handle_of(sub, transfer), descriptor);
}

void Model::step_is(ProxyArguments& arguments, std::size_t place, int step, int state) {
  Sub& sub = arguments.subs[place];
  if (plugin_ == nullptr || sub.op == nullptr) return;  // the step's own handle may live
  void* const handle = handle_of(sub, divided_up(step, arguments.slice_steps));
  if (handle == nullptr) return;
  abi::StateArgs args{};
  args.proxy_step.trans_size = sub.moved_bytes;
  plugin_->record(handle, state, &args);
}

void Model::step_ends(ProxyArguments& arguments, std::size_t place, int step) {
  void*& handle = handle_of(arguments.subs[place], divided_up(step, arguments.slice_steps));
  if (plugin_ == nullptr || handle == nullptr) return;
  plugin_->stop(handle);
  handle = nullptr;
}

void Model::net_begins(ProxyArguments& arguments, std::size_t place, int step, std::int64_t id,
                       void* data, void** handle) {
  Sub& sub = arguments.subs[place];
  if (plugin_ == nullptr || !any_of(sub.mask, abi::kNetPlugin)) return;
  abi::DescriptorV7 descriptor{};
  descriptor.type = abi::kNetPlugin;
  descriptor.parent = handle_of(sub, divided_up(step, arguments.slice_steps));
  descriptor.rank = sub.rank;
  descriptor.net_plugin = {id, data};
  plugin_->start(sub.context, handle, descriptor);
}

void Model::net_is(void* handle, void* data) {
  if (plugin_ == nullptr) return;
  abi::StateArgs args{};
  args.net_plugin.data = data;
  plugin_->record(handle, abi::kNetPluginUpdate, &args);
}

void Model::net_ends(void* handle) {
  if (plugin_ != nullptr) plugin_->stop(handle);
}

void* Model::control_begins(void* context) {
  if (plugin_ == nullptr || !any_of(mask(), abi::kProxyCtrl)) return nullptr;
  void* handle = nullptr;  // NCCL's is not set to anything; the view gives a word of its own
  abi::DescriptorV7 descriptor{};
  descriptor.type = abi::kProxyCtrl;
  plugin_->start(context, &handle, descriptor);
  return handle;
}

void Model::control_is(void* handle, int appended, int state) {
  if (plugin_ == nullptr || handle == nullptr || !any_of(mask(), abi::kProxyCtrl)) return;
  abi::StateArgs args{};
  args.proxy_ctrl.appended_proxy_ops = appended;
  plugin_->record(handle, state, &args);
}

void Model::control_ends(void* handle) {
  if (plugin_ != nullptr && handle != nullptr) plugin_->stop(handle);
}

void Model::kernel_begins(ProxyArguments& arguments, std::size_t place, std::uint64_t timer) {
  Sub& sub = arguments.subs[place];
  if (plugin_ == nullptr || !any_of(sub.mask, abi::kKernelCh)) return;
  abi::DescriptorV7 descriptor{};
  descriptor.type = abi::kKernelCh;
  descriptor.parent = sub.task;
  descriptor.kernel_ch.channel_id = static_cast<std::uint8_t>(sub.channel);
  descriptor.kernel_ch.p_timer = timer;
  plugin_->start(sub.context, &sub.kernel, descriptor);
}

void Model::kernel_ends(ProxyArguments& arguments, std::size_t place, std::uint64_t timer) {
  Sub& sub = arguments.subs[place];
  if (plugin_ == nullptr || sub.kernel == nullptr) return;
  abi::StateArgs args{};
  args.kernel_ch.p_timer = timer;
  plugin_->record(sub.kernel, abi::kKernelChStop, &args);
  plugin_->stop(sub.kernel);  // and the handle stays in the sub
}

void Model::kernel_phase(ProxyArguments& arguments, std::size_t place, int phase,
                         std::uint64_t begin, std::uint64_t end) {
  static constexpr const char* kNames[] = {"initial_sync", "compute", "final_sync"};
  Sub& sub = arguments.subs[place];
  if (plugin_ == nullptr || !any_of(sub.mask, abi::kKernelPhase)) return;
  void* handle = nullptr;
  abi::DescriptorV7 descriptor{};
  descriptor.type = abi::kKernelPhase;
  descriptor.parent = sub.kernel;
  descriptor.kernel_phase = {static_cast<std::uint8_t>(sub.channel),
                             static_cast<std::uint8_t>(phase), kNames[phase], begin};
  plugin_->start(sub.context, &handle, descriptor);
  if (handle == nullptr) return;
  abi::StateArgs args{};
  args.kernel_ch.p_timer = end;
  plugin_->record(handle, abi::kKernelPhaseStop, &args);
  plugin_->stop(handle);
}

void Model::copy_begins(CopyEngineCall& copy) {
  if (plugin_ == nullptr || (mask() & kCopies) == 0) return;
  abi::DescriptorV7 descriptor{};
  descriptor.type = abi::kCeColl;
  descriptor.parent = copy.api;
  descriptor.rank = copy.call.communicator->rank;
  descriptor.ce_coll.func = text_of(copy.call.function);
  descriptor.ce_coll.send_buff = reinterpret_cast<const void*>(kSendBuffer);
  descriptor.ce_coll.recv_buff = reinterpret_cast<void*>(kRecvBuffer);
  descriptor.ce_coll.count = copy.call.count;
  descriptor.ce_coll.root = copy.call.peer;
  descriptor.ce_coll.datatype = text_of(copy.call.datatype);
  descriptor.ce_coll.sync_strategy = "UC";
  descriptor.ce_coll.stream = reinterpret_cast<void*>(copy.call.stream);
  descriptor.ce_coll.user_tag = copy.call.tag;
  plugin_->start(copy.call.communicator->context, &copy.event, descriptor);
}

void Model::copy_ends(CopyEngineCall& copy) {
  if (plugin_ != nullptr && copy.event != nullptr) plugin_->stop(copy.event);
}

void Model::copy_sync(CopyEngineCall& copy) {
  if (plugin_ == nullptr || copy.event == nullptr || !any_of(mask(), abi::kCeSync)) return;
  void* handle = nullptr;
  abi::DescriptorV7 descriptor{};
  descriptor.type = abi::kCeSync;
  descriptor.parent = copy.event;
  descriptor.rank = copy.call.communicator->rank;
  descriptor.ce_sync = {false, copy.call.communicator->ranks};
  plugin_->start(copy.call.communicator->context, &handle, descriptor);
  if (handle != nullptr) plugin_->stop(handle);
}

void Model::copy_batch(CopyEngineCall& copy, int operations, std::size_t bytes) {
  if (plugin_ == nullptr || copy.event == nullptr || !any_of(mask(), abi::kCeBatch)) return;
  void* handle = nullptr;
  abi::DescriptorV7 descriptor{};
  descriptor.type = abi::kCeBatch;
  descriptor.parent = copy.event;
  descriptor.rank = copy.call.communicator->rank;
  descriptor.ce_batch = {operations, bytes, false};
  plugin_->start(copy.call.communicator->context, &handle, descriptor);
  if (handle != nullptr) plugin_->stop(handle);
}

}  // namespace ringmain::nccl_conformance
