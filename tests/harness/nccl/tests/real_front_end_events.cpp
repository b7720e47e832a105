// Plans, the proxy's operations and steps, kernels and copies, by NCCL's own functions.
#include <algorithm>
#include <stdexcept>

#include "tests/harness/nccl/plugin_view.hpp"
#include "tests/harness/nccl/tests/real_calls.hpp"

namespace ringmain::nccl_conformance {
namespace {

constexpr int kRing = 1;         // NCCL_ALGO_RING
constexpr int kSimple = 2;       // NCCL_PROTO_SIMPLE
constexpr std::size_t kNet = 2;  // TRANSPORT_NET, of ncclTransports

/// A task as NCCL has it; its handles come back by give_back().
Structure native_of(const Layout& layout, const Task& task, int function) {
  const bool p2p = task.call.point_to_point();
  Structure native(layout, p2p ? "ncclTaskP2p" : "ncclTaskColl");
  native.set("func", function);
  native.set("count", task.count);
  native.set("datatype", number_of(task.datatype));
  native.set("root", task.call.peer);
  native.set("eActivationMask", task.mask);
  native.set("groupApiEventHandle", task.group_api);
  native.set(p2p ? "p2pApiEventHandle" : "collApiEventHandle", task.api);
  native.set("eventHandle", task.event);
  native.set("nChannels", task.channels);
  native.set_if_there("profilerTag", task.call.tag);
  if (p2p) {
    native.set("buff", kRecvBuffer);
    // From 2.31 on the channels of a transfer are those of its mask.
    const std::uint64_t mask =
        task.channels >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << task.channels) - 1;
    native.set_if_there("channelMask", mask);
  } else {
    native.set("sendbuff", kSendBuffer);
    native.set("recvbuff", kRecvBuffer);
    native.set("nWarps", static_cast<std::uint8_t>(kWarps));
    native.set("algorithm", static_cast<std::uint8_t>(kRing));
    native.set("protocol", static_cast<std::uint8_t>(kSimple));
  }
  return native;
}

}  // namespace

void RealFrontEnd::call_plan(const char* name, Plan& plan) {
  Structure native(layout_, "ncclKernelPlan");
  std::byte* const communicator = plan.communicator->native.get();
  native.set("comm", communicator);
  native.set("persistent", plan.persistent);
  native.set("kernelLaunchEventHandle", plan.launch);
  native.set("groupEventHandle", plan.group);
  std::vector<Structure> tasks;
  for (const Task& task : plan.tasks) {
    tasks.push_back(native_of(layout_, task, function_of(task.call.function)));
  }
  void* first_coll = nullptr;
  void* first_p2p = nullptr;
  for (std::size_t i = tasks.size(); i-- > 0;) {
    void*& first = plan.tasks[i].call.point_to_point() ? first_p2p : first_coll;
    tasks[i].set("next", first);
    first = tasks[i].address();
  }
  native.set("collTaskQueue", first_coll);  // a queue begins with its head
  native.set("p2pTaskQueue", first_p2p);
  // The launch is the one that is told of its stream; the others leave it unread.
  call(name, native.address(), reinterpret_cast<void*>(plan.stream));
  plan.launch = native.get<void*>("kernelLaunchEventHandle");
  plan.group = native.get<void*>("groupEventHandle");
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    plan.tasks[i].event = tasks[i].get<void*>("eventHandle");
  }
}

void RealFrontEnd::launch_begins(Plan& plan) {
  call_plan("_Z34ncclProfilerStartKernelLaunchEventP14ncclKernelPlanP11CUstream_st", plan);
}
void RealFrontEnd::launch_ends(Plan& plan) {
  call_plan("_Z33ncclProfilerStopKernelLaunchEventP14ncclKernelPlan", plan);
}
void RealFrontEnd::group_event_begins(Plan& plan) {
  call_plan("_Z27ncclProfilerStartGroupEventP14ncclKernelPlan", plan);
}
void RealFrontEnd::tasks_begin(Plan& plan) {
  call_plan("_Z27ncclProfilerStartTaskEventsP14ncclKernelPlan", plan);
}
void RealFrontEnd::tasks_end(Plan& plan) {
  call_plan("_Z26ncclProfilerStopTaskEventsP14ncclKernelPlan", plan);
}
void RealFrontEnd::group_event_ends(Plan& plan) {
  call_plan("_Z26ncclProfilerStopGroupEventP14ncclKernelPlan", plan);
}

template <class Then>
void RealFrontEnd::with_arguments(ProxyArguments& arguments, std::size_t place, Then then) {
  thread_local Structure native(layout_, "ncclProxyArgs");  // 33 KB; what is read is set each time
  Sub& sub = arguments.subs[place];
  native.set("sliceSteps", arguments.slice_steps);
  native.set("chunkSize", static_cast<std::size_t>(arguments.chunk_bytes));
  void* progress = nullptr;
  if (arguments.send && arguments.over_net) {
    std::byte* const net = static_cast<std::byte**>(symbol("ncclTransports"))[kNet];
    std::memcpy(&progress,
                net + layout_.member("ncclTransport.send") +
                    layout_.member("ncclTransportComm.proxyProgress"),
                sizeof(progress));
  }
  native.set("progress", progress);
  std::byte* const begin = static_cast<std::byte*>(native.address()) +
                           layout_.member("ncclProxyArgs.subs") +
                           place * layout_.size("ncclProxySubArgs");
  const auto at = [&](const char* member) {
    return begin + layout_.member(std::string("ncclProxySubArgs.") + member);
  };
  const auto set = [&](const char* member, auto value) {
    std::memcpy(at(member), &value, sizeof(value));
  };
  set("channelId", sub.channel), set("nsteps", sub.steps), set("peer", sub.peer);
  set("eActivationMask", sub.mask), set("rank", sub.rank), set("pid", sub.pid);
  set("profilerContext", sub.context), set("taskEventHandle", sub.task);
  set("opEventHandle", sub.op), set("kernelEventHandle", sub.kernel);
  set("transSize", static_cast<std::size_t>(sub.moved_bytes));
  const std::size_t handle = layout_.member("ncclProxyEventHandle.stepEventHandle");
  const std::size_t owner = layout_.member("ncclProxyEventHandle.subArgPtr");
  std::byte* const steps = at("pHandles");
  const std::size_t stride = layout_.size("ncclProxyEventHandle");
  for (std::size_t i = 0; i < sub.step.size(); ++i) {
    std::memcpy(steps + i * stride + handle, &sub.step[i], sizeof(void*));
    std::memcpy(steps + i * stride + owner, &begin, sizeof(void*));
  }
  then(native.address(), steps);
  const auto get = [&](const char* member, void*& to) { std::memcpy(&to, at(member), sizeof(to)); };
  get("opEventHandle", sub.op), get("kernelEventHandle", sub.kernel);
  for (std::size_t i = 0; i < sub.step.size(); ++i) {
    std::memcpy(&sub.step[i], steps + i * stride + handle, sizeof(void*));
  }
}

void RealFrontEnd::proxy_op_begins(ProxyArguments& arguments, std::size_t sub) {
  with_arguments(arguments, sub, [&](void* native, std::byte*) {
    call("_Z29ncclProfilerStartProxyOpEventiP13ncclProxyArgs", static_cast<int>(sub), native);
  });
}
void RealFrontEnd::proxy_op_progresses(ProxyArguments& arguments, std::size_t sub) {
  with_arguments(arguments, sub, [&](void* native, std::byte*) {
    call("_Z35ncclProfilerRecordProxyOpEventStateiP13ncclProxyArgs24ncclProfilerEventState_t",
         static_cast<int>(sub), native, int{abi::kProxyOpInProgress});
  });
}
void RealFrontEnd::proxy_op_ends(ProxyArguments& arguments, std::size_t sub) {
  with_arguments(arguments, sub, [&](void* native, std::byte*) {
    call("_Z28ncclProfilerStopProxyOpEventiP13ncclProxyArgs", static_cast<int>(sub), native);
  });
}
void RealFrontEnd::step_begins(ProxyArguments& arguments, std::size_t sub, int step) {
  with_arguments(arguments, sub, [&](void* native, std::byte*) {
    call(arguments.send ? "_Z35ncclProfilerStartSendProxyStepEventiP13ncclProxyArgsi"
                        : "_Z35ncclProfilerStartRecvProxyStepEventiP13ncclProxyArgsi",
         static_cast<int>(sub), native, step);
  });
}
void RealFrontEnd::step_is(ProxyArguments& arguments, std::size_t sub, int step, int state) {
  with_arguments(arguments, sub, [&](void* native, std::byte*) {
    call("_Z37ncclProfilerRecordProxyStepEventStateiP13ncclProxyArgsi24ncclProfilerEventState_t",
         static_cast<int>(sub), native, step, state);
  });
}
void RealFrontEnd::step_ends(ProxyArguments& arguments, std::size_t sub, int step) {
  with_arguments(arguments, sub, [&](void* native, std::byte*) {
    call("_Z30ncclProfilerStopProxyStepEventiP13ncclProxyArgsi", static_cast<int>(sub), native,
         step);
  });
}

namespace {
constexpr char kNetCallback[] = "_Z20ncclProfilerCallbackPPviS_lS_";
enum NetCall : int { kNetBegins, kNetEnds, kNetIs };
}  // namespace

void RealFrontEnd::net_begins(ProxyArguments& arguments, std::size_t sub, int step, std::int64_t id,
                              void* data, void** handle) {
  with_arguments(arguments, sub, [&](void*, std::byte* steps) {
    const int transfer = (step + arguments.slice_steps - 1) / arguments.slice_steps;
    void* const of_step = steps + static_cast<std::size_t>(transfer) % kStepsInFlight *
                                      layout_.size("ncclProxyEventHandle");
    call(kNetCallback, handle, int{kNetBegins}, of_step, id, data);
  });
}
void RealFrontEnd::net_is(void* handle, void* data) {
  call(kNetCallback, &handle, int{kNetIs}, static_cast<void*>(nullptr), std::int64_t{0}, data);
}
void RealFrontEnd::net_ends(void* handle) {
  call(kNetCallback, &handle, int{kNetEnds}, static_cast<void*>(nullptr), std::int64_t{0},
       static_cast<void*>(nullptr));
}

void* RealFrontEnd::control_begins(void* context) {
  void* handle = nullptr;
  call("_Z31ncclProfilerStartProxyCtrlEventPvPS_", context, &handle);
  return handle;
}
void RealFrontEnd::control_is(void* handle, int appended, int state) {
  call("_Z37ncclProfilerRecordProxyCtrlEventStatePvi24ncclProfilerEventState_t", handle, appended,
       state);
}
void RealFrontEnd::control_ends(void* handle) {
  call("_Z30ncclProfilerStopProxyCtrlEventPv", handle);
}

void RealFrontEnd::kernel(ProxyArguments& arguments, std::size_t place, std::uint64_t timer,
                          bool begin) {
  if (!kernels_have_works()) {
    with_arguments(arguments, place, [&](void* native, std::byte*) {
      call(begin ? "_Z30ncclProfilerStartKernelChEventP13ncclProxyArgsim"
                 : "_Z29ncclProfilerStopKernelChEventP13ncclProxyArgsim",
           native, static_cast<int>(place), timer);
    });
    return;
  }
  Sub& sub = arguments.subs[place];
  Structure work(layout_, "ncclProfilerWorkOp");
  work.set("channelId", sub.channel);
  work.set("eActivationMask", sub.mask);
  work.set("taskEventHandle", sub.task);
  work.set("profilerContext", sub.context);
  work.set("kernelEventHandle", sub.kernel);
  call(begin ? "_Z30ncclProfilerStartKernelChEventP18ncclProfilerWorkOpm"
             : "_Z29ncclProfilerStopKernelChEventP18ncclProfilerWorkOpm",
       work.address(), timer);
  sub.kernel = work.get<void*>("kernelEventHandle");
}
void RealFrontEnd::kernel_begins(ProxyArguments& arguments, std::size_t sub, std::uint64_t timer) {
  kernel(arguments, sub, timer, true);
}
void RealFrontEnd::kernel_ends(ProxyArguments& arguments, std::size_t sub, std::uint64_t timer) {
  kernel(arguments, sub, timer, false);
}
void RealFrontEnd::kernel_phase(ProxyArguments&, std::size_t, int, std::uint64_t, std::uint64_t) {
  throw std::logic_error("NCCL's own code has no function for a phase alone");
}

template <class Then>
void RealFrontEnd::with_copy(CopyEngineCall& copy, Then then) {
  Structure native(layout_, "ncclCeCollArgs");
  native.set("func", function_of(copy.call.function));
  native.set("rootRank", copy.call.peer);
  native.set("datatype", number_of(copy.call.datatype));
  native.set("nElts", static_cast<std::size_t>(copy.call.count));
  native.set("sendBuff", kSendBuffer);
  native.set("recvBuff", kRecvBuffer);
  native.set("collApiEventHandle", copy.api);
  native.set("ceCollProfHandle", copy.event);
  native.set_if_there("userTag", copy.call.tag);
  then(static_cast<void*>(copy.call.communicator->native.get()), native.address(),
       reinterpret_cast<void*>(copy.call.stream));
  copy.event = native.get<void*>("ceCollProfHandle");
}
void RealFrontEnd::copy_begins(CopyEngineCall& copy) {
  with_copy(copy, [&](void* communicator, void* native, void* stream) {
    call("_Z28ncclProfilerStartCeCollEventP8ncclCommP14ncclCeCollArgsP11CUstream_st", communicator,
         native, stream);
  });
}
void RealFrontEnd::copy_ends(CopyEngineCall& copy) {
  with_copy(copy, [&](void* communicator, void* native, void* stream) {
    call("_Z27ncclProfilerStopCeCollEventP8ncclCommP14ncclCeCollArgsP11CUstream_st", communicator,
         native, stream);
  });
}
void RealFrontEnd::copy_sync(CopyEngineCall& copy) {
  with_copy(copy, [&](void* communicator, void* native, void* stream) {
    void* handle = nullptr;
    call("_Z28ncclProfilerStartCeSyncEventP8ncclCommP14ncclCeCollArgsP11CUstream_stPPv",
         communicator, native, stream, &handle);
    call("_Z27ncclProfilerStopCeSyncEventP8ncclCommPvP11CUstream_st", communicator, handle, stream);
  });
}
void RealFrontEnd::copy_batch(CopyEngineCall& copy, int operations, std::size_t bytes) {
  with_copy(copy, [&](void* communicator, void* native, void* stream) {
    Structure batch(layout_, "ncclCeBatchOpsParams");
    std::vector<std::size_t> sizes(static_cast<std::size_t>(operations), 0);
    sizes.front() = bytes;
    batch.set("numOps", sizes.size());
    batch.set("sizes", sizes.data());
    void* handle = nullptr;
    call(
        "_Z29ncclProfilerStartCeBatchEventP8ncclCommP14ncclCeCollArgsP20ncclCeBatchOpsParamsP11"
        "CUstream_stPPv",
        communicator, native, batch.address(), stream, &handle);
    call("_Z28ncclProfilerStopCeBatchEventP8ncclCommPvP11CUstream_st", communicator, handle,
         stream);
  });
}

}  // namespace ringmain::nccl_conformance
