// What is said of a span when it has left?
#include "engine/system/clock.hpp"

#include "adapters/launch/tid.hpp"
#include "adapters/sources/nccl/nccl_callbacks.hpp"

namespace ringmain::nccl {
namespace {

template <std::size_t N>
std::string_view text_of(const char (&text)[N]) noexcept {
  return {text, ::strnlen(text, N)};
}

/// One span that has left.
struct Left {
  const Attachment& to;
  Core& core;
  const OpenSpan& span;
  engine::Token token;
  Ending ending;

  /// `fill(event)` sets the fields that are the event's own.
  template <class E, class F>
  void publish(F fill) const noexcept {
    const auto thread = static_cast<std::int32_t>(run::this_tid());
    to.publish<E>(core.counts, [&]() noexcept {
      E event;
      fill(event);
      event.id = token.number();
      event.parent = engine::Token(span.parent).number();
      event.op_id = span.op_id;
      event.communicator = span.communicator;
      event.began_ns = span.began_ns;
      event.duration_ns = span.ended_ns.get() - span.began_ns;
      event.group = span.group;
      event.rank = span.rank;
      event.thread = thread;
      event.ending = ending;
      return event;
    });
  }
};

void publish_proxy_op(const Left& left) noexcept {
  const ProxyOpPart& part = left.span.part.proxy_op;
  left.publish<ProxyOp>([&](ProxyOp& event) noexcept {
    if (const std::int64_t first = part.in_progress_ns.get(); first != 0)
      event.waited_ns = first - left.span.began_ns;
    event.peer = part.peer;
    event.process = part.process;
    event.steps = part.steps;
    event.chunk_bytes = part.chunk_bytes;
    event.nccl_channel = part.nccl_channel;
    event.send = part.send.get() != 0;
    event.detached = part.detached;
  });
}

void publish_proxy_step(const Left& left, ProxyStepPart& part) noexcept {
  count_step_wait(part, left.span.ended_ns.get());
  left.publish<ProxyStep>([&](ProxyStep& event) noexcept {
    event.bytes = part.bytes.get();
    event.gpu_wait_ns = part.waited_ns[ProxyStepPart::kGpu].get();
    event.peer_wait_ns = part.waited_ns[ProxyStepPart::kPeer].get();
    event.network_wait_ns = part.waited_ns[ProxyStepPart::kNetwork].get();
    event.flush_wait_ns = part.waited_ns[ProxyStepPart::kFlush].get();
    event.step = part.step;
    event.peer = part.peer;
    event.peer_waits = part.peer_waits.get();
    event.nccl_channel = part.nccl_channel;
    event.send = part.send.get() != 0;
    event.last = part.last.get();
  });
}

template <class E, class F>
void publish_gpu(const Left& left, F fill) noexcept {
  const GpuPart& part = left.span.part.gpu;
  const std::uint64_t ended = part.ended.get();
  const bool suspect = part.late_lap || (ended != 0 && ended < part.began);
  if (suspect) left.core.counts.suspect.add();
  left.publish<E>([&](E& event) noexcept {
    fill(event);
    event.gpu_began = part.began;
    event.gpu_ended = ended;
    event.gpu_began_ns = part.host_ns;
    event.gpu_error_ns = part.error_ns;
    event.nccl_channel = part.nccl_channel;
    event.suspect = suspect;
  });
}

void publish_copy_engine(const Left& left) noexcept {
  const CopyEnginePart& part = left.span.part.copy_engine;
  left.publish<CopyEngine>([&](CopyEngine& event) noexcept {
    event.sequence = part.sequence;
    event.count = part.count;
    event.bytes = part.bytes;
    event.stream = part.stream;
    event.user_tag = part.user_tag;
    event.func = left.core.words.name(part.func);
    event.dtype = left.core.words.name(part.dtype);
    event.root = part.root;
    event.batches = part.batches;
    event.operations = part.operations;
    event.ranks = part.ranks;
    event.kind = part.kind;
  });
}

void publish_net(const Left& left) noexcept {
  const NetPart& part = left.span.part.net;
  left.publish<Net>([&](Net& event) noexcept {
    event.work_request = part.work_request;
    event.bytes = part.bytes;
    event.device = part.device;
    event.opcode = part.opcode;
    event.queue_pair = part.queue_pair;
    event.descriptor = part.descriptor;
    event.kind = part.kind;
  });
}

void publish_kind(const Left& left, OpenSpan& span) noexcept {
  switch (span.kind()) {
    case abi::kGroupApi:
    case abi::kCollApi:
    case abi::kP2pApi:
      return publish_api(left.to, left.core, span, left.token, left.ending);
    case abi::kColl:
    case abi::kP2p:
      return publish_operation(left.to, left.core, span, left.token, left.ending);
    case abi::kGroup:
      return left.publish<Group>([](Group&) noexcept {});
    case abi::kKernelLaunch:
      return left.publish<Launch>(
          [&](Launch& event) noexcept { event.stream = span.part.launch.stream; });
    case abi::kProxyOp:
      return publish_proxy_op(left);
    case abi::kProxyStep:
      return publish_proxy_step(left, span.part.proxy_step);
    case abi::kProxyCtrl:
      return left.publish<ProxyControl>([&](ProxyControl& event) noexcept {
        event.appended = span.part.control.appended.get();
        event.kind = span.part.control.kind.get();
      });
    case abi::kKernelCh:
      return publish_gpu<KernelChannel>(left, [](KernelChannel&) noexcept {});
    case abi::kKernelPhase:
      return publish_gpu<KernelPhase>(left, [&](KernelPhase& event) noexcept {
        event.phase = span.part.gpu.phase;
        event.name = text_of(span.part.gpu.name);
      });
    case abi::kCeColl:
    case abi::kCeSync:
    case abi::kCeBatch:
      return publish_copy_engine(left);
    case abi::kNetPlugin:
      return publish_net(left);
  }
}

}  // namespace

void publish_api(const Attachment& to, Core& core, const OpenSpan& span, engine::Token token,
                 Ending ending) noexcept {
  const ApiPart& part = span.part.api;
  Left{to, core, span, token, ending}.publish<Api>([&](Api& event) noexcept {
    event.count = part.count;
    event.stream = part.stream;
    event.user_tag = part.user_tag;
    event.group_start_ns = part.group_start_ns.get();
    event.group_to_end_ns = part.group_to_end_ns.get();
    event.func = core.words.name(part.func);
    event.dtype = core.words.name(part.dtype);
    event.root = part.root;
    event.depth = part.depth;
    event.kind = part.kind;
    event.captured = part.captured;
  });
}

void publish_operation(const Attachment& to, Core& core, const OpenSpan& span, engine::Token token,
                       Ending ending) noexcept {
  const OperationPart& part = span.part.operation;
  Left{to, core, span, token, ending}.publish<Operation>([&](Operation& event) noexcept {
    event.sequence = part.sequence;
    event.count = part.count;
    event.send_address = part.send;
    event.receive_address = part.receive;
    event.user_tag = part.user_tag;
    event.plan = engine::Token(part.plan).number();
    event.func = core.words.name(part.func);
    event.dtype = core.words.name(part.dtype);
    event.algorithm = core.words.name(part.algorithm);
    event.protocol = core.words.name(part.protocol);
    (part.point_to_point ? event.peer : event.root) = part.root_or_peer;
    event.nccl_channels = part.nccl_channels;
    event.warps = part.warps;
    event.point_to_point = part.point_to_point;
    event.symmetric = part.symmetric;
    event.variant = text_of(part.variant);
  });
}

/// Whoever lets go of it last is inside.
void TakeOut::operator()(OpenSpan& span, engine::Token token, unsigned how) const noexcept {
  Core* const core = switchboard.core.load();
  core->tally_of(span).out.add();
  if (how == kDone) return;  // what it was has been said
  const Attachment* const to = switchboard.to.load();
  if (to == nullptr) return;
  const Ending ending = how == kAborted ? Ending::aborted
                        : how == kStale ? Ending::stale
                                        : Ending::stopped;
  publish_kind({*to, *core, span, token, ending}, span);
}

}  // namespace ringmain::nccl
