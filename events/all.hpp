// Every event of events/ and of the bus, in one list. A new one is added here and nowhere else:
// Python and `./dev abi` take the list from here. An event that one source alone knows, such as
// heartbeat::Beat, stays in that source's file and is described when it is first published.
#pragma once
#include "../bus/bus_events.hpp"

#include "collective.hpp"
#include "collective_life.hpp"
#include "collective_overdue.hpp"
#include "collective_shapes.hpp"
#include "compile.hpp"
#include "cuda.hpp"
#include "cuda_alarm.hpp"
#include "cuda_completion.hpp"
#include "cuda_lifetimes.hpp"
#include "cuda_source.hpp"
#include "cuda_use.hpp"
#include "cuda_wrapped.hpp"
#include "nccl.hpp"
#include "nccl_source.hpp"
#include "nvtx.hpp"
#include "replay.hpp"
#include "step.hpp"

namespace ringmain {

template <Described... E>
struct EventList {
  /// Calls `f(E{})` for each, in order.
  template <class F>
  static void for_each(F f) {
    (f(E{}), ...);
  }
};

using AllEvents =
    EventList<step::Step,  //
              collective::Issued, collective::Started, collective::Completed, collective::Failed,
              collective::Group, collective::Wait, collective::Abort, collective::Shapes,
              collective::OverdueOperation, compile::Start, compile::End, compile::Graph,
              compile::GraphBreak, compile::Guard, compile::Recompile, compile::DynamicShape,
              compile::Cache, compile::Backend, compile::Phase, compile::Limit, compile::Reset,
              compile::Metrics, compile::StackFrame, compile::InstalledGuard, compile::Code,
              compile::Wait,  //
              cuda::EventCreation, cuda::EventDeletion, cuda::EventRecord, cuda::EventWait,
              cuda::MemoryAllocation, cuda::MemoryDeallocation, cuda::StreamCreation,
              cuda::DeviceSynchronization, cuda::StreamSynchronization, cuda::EventSynchronization,
              cuda::StreamDeletion, cuda::ContextEvent, cuda::Capture, cuda::CallBegin,
              cuda::CallRefused, cuda::SourceNotice, cuda::BufferUse, cuda::Alarm,
              cuda::Completion,   //
              cuda::ContextLost,  //
              nccl::Api, nccl::Operation, nccl::Group, nccl::Launch, nccl::ProxyOp, nccl::ProxyStep,
              nccl::ProxyControl, nccl::KernelChannel, nccl::KernelPhase, nccl::CopyEngine,
              nccl::Net, nccl::PluginNotice, nccl::Evidence, nccl::Stalled,                     //
              nvtx::Range, nvtx::Mark,                                                          //
              replay::Slice, replay::Instant, replay::Counter, replay::Flow, replay::Metadata,  //
              LossNotice, SlowSubscriber, Threw, Quarantined, WaitingRemoval>;

}  // namespace ringmain
