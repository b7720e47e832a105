// stopEvent and recordEventState.
#include <utility>

#include "engine/system/clock.hpp"

#include "adapters/sources/nccl/nccl_callbacks.hpp"

namespace ringmain::nccl {
namespace {

/// Of what had ended.
bool stale(Core& core) noexcept {
  core.counts.stale_stops.add();
  return false;
}

/// A call is over, and its operation comes later, mostly: it is kept until that has begun, or until
/// many other calls came.
bool end_call(const Inside& in, Pin& call, std::int64_t now_ns) noexcept {
  Core& core = in.core();
  ApiPart& part = call->part.api;
  if (part.stopped.exchange(1) != 0) return stale(core);
  call->ended_ns.set(now_ns);
  core.counts.stopped.add();
  if (in.to() != nullptr) publish_api(*in.to(), core, *call, call.token(), Ending::stopped);
  const auto needed = switchboard.needed.load();
  const bool wanted = (needed & (abi::kColl | abi::kP2p | abi::kCeColl)) != 0;
  if (call->of == nullptr || !wanted) {
    let_call_go(in, std::move(call), false);
    return true;
  }
  auto& calls = call->of->apis;
  const auto put = calls.put(call.token());
  let_call_go(in, core.spans.pin(put.oldest), false);
  engine::Token oldest;
  for (int i = 0; i < kMostAtOnce; ++i) {
    if (!calls.oldest_beyond(put.number, core.kept(calls.room()), oldest)) break;
    let_call_go(in, core.spans.pin(oldest), false);
  }
  return true;
}

bool end_enqueueing(const Inside& in, Pin& operation, std::int64_t now_ns) noexcept {
  Core& core = in.core();
  OperationPart& part = operation->part.operation;
  if ((part.flags.set(OperationPart::kStopped) & OperationPart::kStopped) != 0) return stale(core);
  operation->ended_ns.set(now_ns);
  core.counts.stopped.add();
  if (in.to() != nullptr)
    publish_operation(*in.to(), core, *operation, operation.token(), Ending::stopped);
  on_enqueued(in, operation);
  return true;
}

void end_gpu(const Inside& in, OpenSpan& span, std::int64_t now_ns) noexcept {
  const GpuPart& part = span.part.gpu;
  const std::uint64_t stamp = part.ended.get();
  if (span.of == nullptr) return;
  if (span.kind() == abi::kKernelCh && part.nccl_channel < span.of->kernel_ended.size() &&
      stamp != 0) {
    span.of->kernel_ended[part.nccl_channel].set(stamp);
  }
  if (stamp >= part.began) span.of->clock.learn(stamp, span.began_ns, now_ns);
  if (span.kind() != abi::kKernelCh) return;
  Pin operation = in.core().spans.pin(engine::Token(span.parent));
  if (operation && (operation->kind() == abi::kColl || operation->kind() == abi::kP2p))
    on_kernel_ended(in, operation, part.nccl_channel, now_ns);
}

}  // namespace

bool end(const Inside& in, Pin span) noexcept {
  Core& core = in.core();
  if (!span) return stale(core);
  const std::int64_t now_ns = engine::now_ns();
  switch (span->kind()) {
    case abi::kGroupApi:
      // What comes behind is told of it as the parent of what comes later.
      if (core.chain.load() == nullptr) break;
      return end_call(in, span, now_ns);
    case abi::kCollApi:
    case abi::kP2pApi:
      return end_call(in, span, now_ns);
    case abi::kColl:
    case abi::kP2p:
      return end_enqueueing(in, span, now_ns);
    default:
      break;
  }
  if (!span.end(kStopped)) return stale(core);
  span->ended_ns.set(now_ns);
  core.counts.stopped.add();
  if (span->kind() == abi::kKernelCh || span->kind() == abi::kKernelPhase) {
    end_gpu(in, *span, now_ns);
  } else if (span->kind() == abi::kProxyOp && !span->part.proxy_op.detached) {
    Pin operation = core.spans.pin(engine::Token(span->parent));
    if (operation && (operation->kind() == abi::kColl || operation->kind() == abi::kP2p))
      on_proxy_ended(in, operation, now_ns);
  }
  return true;
}

namespace {

StepState step_state_of(abi::State state) noexcept {
  switch (state) {
    case abi::kSendGpuWait:
      return StepState::send_gpu_wait;
    case abi::kSendPeerWait:
      return StepState::send_peer_wait;
    case abi::kSendWait:
      return StepState::send_wait;
    case abi::kRecvWait:
      return StepState::recv_wait;
    case abi::kRecvFlushWait:
      return StepState::recv_flush_wait;
    case abi::kRecvGpuWait:
      return StepState::recv_gpu_wait;
    default:
      return StepState::begun;
  }
}

/// Data has moved where the GPU has given some, or the network has brought some.
bool has_moved(StepState state) noexcept {
  return state == StepState::send_peer_wait || state == StepState::send_wait ||
         state == StepState::recv_flush_wait || state == StepState::recv_gpu_wait;
}

/// NCCL 2.30 says of a send that does not leave through its own network transport that it receives:
/// what its steps wait for is true.
void learn_direction(Core& core, const OpenSpan& span, ProxyStepPart& part,
                     StepState state) noexcept {
  const bool sends = state == StepState::send_gpu_wait || state == StepState::send_peer_wait ||
                     state == StepState::send_wait;
  if (!sends || part.send.get() != 0) return;
  part.send.set(1);
  const Pin op = core.spans.pin(engine::Token(span.parent));
  if (op && op->kind() == abi::kProxyOp) op->part.proxy_op.send.set(1);
}

void record_step(const Inside& in, OpenSpan& span, StepState state,
                 const abi::StateArgs* args) noexcept {
  ProxyStepPart& part = span.part.proxy_step;
  if (state == StepState::send_peer_wait) part.peer_waits.add(1);
  if (state == part.last.get()) return;  // NCCL tells each try
  const std::int64_t now_ns = engine::now_ns();
  count_step_wait(part, now_ns);
  part.last.set(state);
  part.since_ns.set(now_ns);
  learn_direction(in.core(), span, part, state);
  if (args != nullptr && (state == StepState::send_wait || state == StepState::recv_flush_wait))
    part.bytes.set(args->proxy_step.trans_size);
  Pin operation = in.core().spans.pin(engine::Token(part.operation));
  if (operation && (operation->kind() == abi::kColl || operation->kind() == abi::kP2p))
    on_progress(in, operation, has_moved(state), now_ns);
}

bool record_control(ControlPart& part, abi::State state, const abi::StateArgs* args) noexcept {
  switch (state) {
    case abi::kCtrlIdle:
      part.kind.set(ProxyControlKind::idle);
      return true;
    case abi::kCtrlActive:
      part.kind.set(ProxyControlKind::active);
      return true;
    case abi::kCtrlSleep:
      part.kind.set(ProxyControlKind::sleep);
      return true;
    case abi::kCtrlWakeup:
      return true;  // it ends the sleep
    case abi::kCtrlAppend:
      part.kind.set(ProxyControlKind::append);
      return true;
    case abi::kCtrlAppendEnd:
      part.kind.set(ProxyControlKind::append);
      if (args != nullptr)
        part.appended.set(static_cast<std::uint32_t>(args->proxy_ctrl.appended_proxy_ops));
      return true;
    default:
      return false;
  }
}

bool record_group(OpenSpan& span, abi::State state) noexcept {
  ApiPart& part = span.part.api;
  const std::int64_t since_ns = engine::now_ns() - span.began_ns;
  if (state == abi::kGroupStartApiStop) {
    part.group_start_ns.set_first(since_ns);
  } else if (state == abi::kGroupEndApiStart) {
    part.group_to_end_ns.set_first(since_ns);
  } else {
    return false;
  }
  return true;
}

/// 31 is the end of a phase in NCCL 2.31, and what a proxy counts in RCCL: of a whole kernel it
/// says nothing.
bool record_gpu(GpuPart& part, abi::Type kind, abi::State state,
                const abi::StateArgs* args) noexcept {
  const bool of_phase = kind == abi::kKernelPhase && state == abi::kKernelPhaseStop;
  if (state != abi::kKernelChStop && !of_phase) return false;
  if (args != nullptr) part.ended.set(args->kernel_ch.p_timer);
  return true;
}

/// False: a state that this type is not known to have.
bool record_kind(const Inside& in, OpenSpan& span, abi::State state,
                 const abi::StateArgs* args) noexcept {
  switch (span.kind()) {
    case abi::kProxyStep: {
      const StepState step = step_state_of(state);
      if (step == StepState::begun) return false;
      record_step(in, span, step, args);
      return true;
    }
    case abi::kProxyOp:
      if (state != abi::kProxyOpInProgress) return state >= 0 && state < abi::kSendGpuWait;
      span.part.proxy_op.in_progress_ns.set_first(engine::now_ns());
      return true;
    case abi::kProxyCtrl:
      return record_control(span.part.control, state, args);
    case abi::kGroupApi:
      return record_group(span, state);
    case abi::kKernelCh:
    case abi::kKernelPhase:
      return record_gpu(span.part.gpu, span.kind(), state, args);
    case abi::kNetPlugin:
      return state == abi::kNetPluginUpdate;
    case abi::kCeColl:
    case abi::kCeSync:
    case abi::kCeBatch:
      return state >= abi::kCeCollStart && state <= abi::kCeBatchComplete;
    default:
      return false;
  }
}

}  // namespace

void count_step_wait(ProxyStepPart& part, std::int64_t until_ns) noexcept {
  using Wait = ProxyStepPart::Wait;
  Wait wait = ProxyStepPart::kWaits;
  switch (part.last.get()) {
    case StepState::begun:
      return;
    case StepState::send_gpu_wait:
    case StepState::recv_gpu_wait:
      wait = ProxyStepPart::kGpu;
      break;
    case StepState::send_peer_wait:
      wait = ProxyStepPart::kPeer;
      break;
    case StepState::send_wait:
    case StepState::recv_wait:
      wait = ProxyStepPart::kNetwork;
      break;
    case StepState::recv_flush_wait:
      wait = ProxyStepPart::kFlush;
      break;
  }
  part.waited_ns[wait].add(until_ns - part.since_ns.get());
}

void record(const Inside& in, const Pin& span, abi::State state,
            const abi::StateArgs* args) noexcept {
  Core& core = in.core();
  if (!span) return core.counts.stale_states.add();
  if (!record_kind(in, *span, state, args)) core.counts.unknown_states.add();
}

namespace {

/// Nothing more comes of it.
void abandon(const Inside& in, Pin& span) noexcept {
  bool stopped = false;
  if (span->kind() == abi::kColl || span->kind() == abi::kP2p) {
    stopped = (span->part.operation.flags.get() & OperationPart::kStopped) != 0;
    if (span->part.operation.followed()) end_operation(in, span, EvidenceKind::none, 0);
    if (span->part.operation.kept && span->of != nullptr)
      span->of->waiting.take(span->part.operation.order, span.token());
  } else if (span->kind() == abi::kCollApi || span->kind() == abi::kP2pApi ||
             span->kind() == abi::kGroupApi) {
    stopped = span->part.api.stopped.get() != 0;
    break_calls_promise(in, *span, true);
  }
  if (!span.end(stopped ? kDone : kAborted) || stopped) return;
  span->ended_ns.set(engine::now_ns());
  in.core().counts.aborted.add();
}

}  // namespace

void end_all(const Inside& in) noexcept {
  const std::int64_t now_ns = engine::now_ns();
  in.core().for_each_span([&](Pin& span) noexcept {
    if (span->kind() == abi::kColl || span->kind() == abi::kP2p) {
      if (span->part.operation.followed()) end_operation(in, span, EvidenceKind::none, now_ns);
    } else if (span->kind() == abi::kCollApi || span->kind() == abi::kP2pApi) {
      break_calls_promise(in, *span, false);
    }
  });
}

namespace {

/// Calls and operations that are over, but kept, are mostly all that is left; they lie in its
/// rings. True: that was all.
bool sweep_rings(const Inside& in, Communicator& of, std::uint64_t id) noexcept {
  const auto abandon_one = [&](engine::Token token) noexcept {
    Pin span = in.core().spans.pin(token);
    if (span && span->of == &of && span->communicator == id) abandon(in, span);
  };
  of.apis.for_each(abandon_one);
  of.waiting.for_each(abandon_one);
  in.core().looked_at.add(of.apis.room() + of.waiting.room());
  return !of.spans.any_open();
}

/// Is anything open of what belongs to no communicator, or to one that was finalized?
bool any_rest(Core& core) noexcept {
  bool any = core.others.any_open();
  core.communicators.for_each_place([&](Communicator& one) noexcept {
    const bool open = (one.word.load() & 3) == Communicator::kOpen;
    any = any || (!open && one.spans.any_open());
  });
  return any;
}

}  // namespace

void sweep(const Inside& in, Communicator& of, std::uint64_t id) noexcept {
  if (!of.spans.any_open()) return;
  const bool is_large = in.core().spans.used() > of.apis.room() + of.waiting.room();
  if (is_large && sweep_rings(in, of, id)) return;
  in.core().for_each_span([&](Pin& span) noexcept {
    if (span->of == &of && span->communicator == id) abandon(in, span);
  });
}

void sweep_rest(const Inside& in, std::int64_t before_ns) noexcept {
  if (!any_rest(in.core())) return;
  in.core().for_each_span([&](Pin& span) noexcept {
    if (span->began_ns >= before_ns) return;
    const Communicator* const of = span->of;
    const bool open = of != nullptr && (of->word.load() & 3) == Communicator::kOpen &&
                      of->id.load() == span->communicator;
    if (!open) abandon(in, span);
  });
}

}  // namespace ringmain::nccl
