// startEvent: what is kept of each type of span.
#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "engine/system/clock.hpp"

#include "adapters/sources/collective/collective_current.hpp"
#include "adapters/sources/nccl/nccl_callbacks.hpp"
#include "adapters/sources/nccl/nccl_chain.hpp"

namespace ringmain::nccl {
namespace {

/// Where this thread looks for a place next. Each thread begins somewhere else.
std::uint32_t& threads_seed() noexcept {
  static constinit std::atomic<std::uint32_t> threads{0};
  static constinit thread_local std::uint32_t seed __attribute__((tls_model("initial-exec"))) =
      ~std::uint32_t{0};
  if (seed == ~std::uint32_t{0}) seed = threads.fetch_add(64) & 0x7fffffff;
  return seed;
}

template <std::size_t N>
void copy_text(char (&to)[N], const char* from) noexcept {
  if (from == nullptr) return;
  const std::size_t bytes = ::strnlen(from, N - 1);
  std::memcpy(to, from, bytes);
  to[bytes] = '\0';
}
std::uint64_t address(const void* of) noexcept {
  return reinterpret_cast<std::uintptr_t>(of);
}

/// One span that begins.
struct Beginning {
  const Inside& in;
  Core& core;
  const abi::DescriptorV7& what;
  OpenSpan& span;
  engine::Token token;
  const Communicators::Found& where;  // nowhere: not known

  void in_communicator() const noexcept {
    span.of = where.place;
    span.communicator = where.who.id;
    span.group = where.who.group;
    span.rank = where.who.rank;
  }
  void as(const OpenSpan& parent) const noexcept {
    span.of = parent.of;
    span.communicator = parent.communicator;
    span.group = parent.group;
    span.rank = parent.rank;
    span.op_id = parent.op_id;
  }
  [[nodiscard]] Pin parent() const noexcept { return core.spans.pin(token_of(what.parent)); }
};

void begin_group_api(const Beginning& b) noexcept {
  ApiPart& part = b.span.make(b.span.part.api);
  part.kind = ApiKind::group;
  part.depth = b.what.group_api.group_depth;
  part.captured = b.what.group_api.graph_captured;
}

/// Will what comes show the end of this call's operation? NCCL tells nothing of broadcasts from
/// 2.29 on, which is ABI v6.
bool end_comes(const Beginning& b, const Attachment& to, const ApiPart& part) noexcept {
  if (b.span.of == nullptr || !to.follow.load()) return false;
  const std::uint64_t both = b.span.of->nodes_and_abi.load();
  constexpr std::uint64_t kUntoldBroadcasts = 6;
  if (Words::text(part.func) == "Broadcast" && both >> 32 >= kUntoldBroadcasts) return false;
  const auto needed = switchboard.followed.load();
  const bool several_nodes = static_cast<std::uint32_t>(both) > 1;
  return (needed & abi::kKernelCh) != 0 || (several_nodes && (needed & abi::kProxyOp) != 0);
}

/// The thread is in the call: what the program's wrapper calls it is known here, and only here.
void of_this_call(const Beginning& b, ApiPart& part) noexcept {
  b.span.op_id = collective::current_operation();
  const Attachment* const to = b.in.to();
  if (to == nullptr || b.span.op_id == 0 || part.captured) return;
  part.to_say = to->ledger->marked_as(b.core.words.operation(part.func)) == b.span.op_id;
  part.promised = part.to_say && end_comes(b, *to, part) && collective::promise_end();
}

void begin_coll_api(const Beginning& b) noexcept {
  ApiPart& part = b.span.make(b.span.part.api);
  const abi::CollApiV7& said = b.what.coll_api;
  part.kind = ApiKind::collective;
  part.count = said.count;
  part.stream = address(said.stream);
  part.user_tag = said.user_tag;
  part.root = said.root;
  part.func = b.core.words.find(said.func);
  part.dtype = b.core.words.find(said.datatype);
  part.captured = said.graph_captured;
  of_this_call(b, part);
}
void begin_p2p_api(const Beginning& b) noexcept {
  ApiPart& part = b.span.make(b.span.part.api);
  const abi::P2pApiV7& said = b.what.p2p_api;
  part.kind = ApiKind::point_to_point;
  part.count = said.count;
  part.stream = address(said.stream);
  part.user_tag = said.user_tag;
  part.func = b.core.words.find(said.func);
  part.dtype = b.core.words.find(said.datatype);
  part.captured = said.graph_captured;
  of_this_call(b, part);
}

/// The call that asked for an operation is over, but was kept until now. That of a graph is kept
/// for its replays.
void begin_of_call(const Beginning& b, OperationPart& part) noexcept {
  part.called_ns = b.span.began_ns;
  Pin call = b.parent();
  if (!call || (call->kind() != abi::kCollApi && call->kind() != abi::kP2pApi)) return;
  ApiPart& api = call->part.api;
  part.called_ns = call->began_ns;
  if (api.captured) return;  // of the recording: each replay is an operation of its own
  b.span.op_id = call->op_id;
  part.to_say = api.to_say;
  part.promised = api.passed_on.exchange(1) == 0 && api.promised;
  if (api.stopped.get() != 0) (void)call.end(kDone);
}

void begin_coll(const Beginning& b) noexcept {
  OperationPart& part = b.span.make(b.span.part.operation);
  const abi::CollV7& said = b.what.coll;
  part.sequence = said.seq_number;
  part.count = said.count;
  part.send = address(said.send_buff);
  part.receive = address(said.recv_buff);
  part.user_tag = said.user_tag;
  part.plan = b.core.spans.is_ours(token_of(said.parent_group)) ? address(said.parent_group) : 0;
  part.root_or_peer = said.root;
  part.func = b.core.words.find(said.func);
  part.dtype = b.core.words.find(said.datatype);
  part.algorithm = b.core.words.find(said.algo);
  part.protocol = b.core.words.find(said.proto);
  part.nccl_channels = said.n_channels;
  part.warps = said.n_warps;
  part.symmetric = said.is_sym_coll;
  // Of symmetric kernels the algorithm is the variant's name.
  copy_text(part.variant, said.kernel_variant != nullptr    ? said.kernel_variant
                          : part.algorithm == Words::kOther ? said.algo
                                                            : nullptr);
  if (Communicator* const of = b.where.place)
    of->note_enqueued(part.func, part.sequence, b.span.began_ns);
  begin_of_call(b, part);
  wait_for_end(b.in, b.span, b.token);
}
void begin_p2p(const Beginning& b) noexcept {
  OperationPart& part = b.span.make(b.span.part.operation);
  const abi::P2pV7& said = b.what.p2p;
  part.point_to_point = true;
  part.count = said.count;
  part.func = b.core.words.find(said.func);
  const bool receives = Words::text(part.func) == "Recv";
  (receives ? part.receive : part.send) = address(said.buff);
  part.user_tag = said.user_tag;
  part.plan = b.core.spans.is_ours(token_of(said.parent_group)) ? address(said.parent_group) : 0;
  part.root_or_peer = said.peer;
  part.dtype = b.core.words.find(said.datatype);
  part.nccl_channels = said.n_channels;
  if (Communicator* const of = b.where.place)
    of->last_p2p.set(part.func, static_cast<std::uint32_t>(said.peer), b.span.began_ns);
  begin_of_call(b, part);
  wait_for_end(b.in, b.span, b.token);
}

/// Another process's: its addresses are not looked at.
void begin_proxy_op(const Beginning& b, bool foreign) noexcept {
  ProxyOpPart& part = b.span.make(b.span.part.proxy_op);
  const abi::ProxyOp& said = b.what.proxy_op;
  part.peer = said.peer;
  part.process = said.pid;
  part.steps = static_cast<std::uint32_t>(said.n_steps);
  part.chunk_bytes = static_cast<std::uint32_t>(said.chunk_size);
  part.nccl_channel = said.channel_id;
  part.send.set(said.is_send != 0 ? 1 : 0);
  part.detached = foreign;
  if (foreign) {
    b.span.parent = 0;
    b.span.rank = b.what.rank;
    b.core.counts.detached.add();
    return;
  }
  Pin operation = b.parent();
  if (!operation || (operation->kind() != abi::kColl && operation->kind() != abi::kP2p)) return;
  b.span.op_id = operation->op_id;
  on_proxy_begun(b.in, operation, part.nccl_channel, b.span.began_ns);
}

/// Its context is the one of the process that asked for the operation, which may be another: only
/// what it belongs to is looked at.
void begin_proxy_step(const Beginning& b) noexcept {
  ProxyStepPart& part = b.span.make(b.span.part.proxy_step);
  part.step = b.what.proxy_step.step;
  part.since_ns.set(b.span.began_ns);
  b.span.rank = b.what.rank;
  Pin op = b.parent();
  if (!op || op->kind() != abi::kProxyOp) return;
  ProxyOpPart& proxy = op->part.proxy_op;
  b.as(*op);
  part.operation = op->parent;
  part.peer = proxy.peer;
  part.nccl_channel = proxy.nccl_channel;
  part.send.set(proxy.send.get());
  // NCCL keeps as many handles: the one that lay there will not be stopped any more.
  const auto at = static_cast<std::uint32_t>(part.step) % ProxyOpPart::kSteps;
  const engine::Token before(proxy.under_way[at].exchange(b.token.bits()));
  Pin replaced = b.core.spans.pin(before);
  if (!replaced || replaced->kind() != abi::kProxyStep || !replaced.end(kStale)) return;
  replaced->ended_ns.set(b.span.began_ns);
  b.core.counts.stale.add();
}

void begin_gpu(const Beginning& b, std::uint8_t nccl_channel, std::uint64_t stamp,
               bool whole) noexcept {
  GpuPart& part = b.span.make(b.span.part.gpu);
  part.began = stamp;
  part.nccl_channel = nccl_channel;
  Pin parent = b.parent();
  std::int64_t called_ns = 0;
  if (parent) {
    b.span.op_id = parent->op_id;
    const bool operation = parent->kind() == abi::kColl || parent->kind() == abi::kP2p;
    if (operation) called_ns = parent->part.operation.called_ns;
    if (operation && whole) on_kernel_begun(b.in, parent, nccl_channel, b.span.began_ns);
  }
  if (b.span.of == nullptr) return;
  if (called_ns != 0) b.span.of->clock.learn(stamp, called_ns, b.span.began_ns);
  const GpuClock::Estimate at = b.span.of->clock.at(stamp);
  part.host_ns = at.host_ns;
  part.error_ns = at.error_ns;
  if (!whole || nccl_channel >= b.span.of->kernel_ended.size()) return;
  part.late_lap = stamp < b.span.of->kernel_ended[nccl_channel].get();
}
void begin_kernel_phase(const Beginning& b) noexcept {
  const abi::KernelPhase& said = b.what.kernel_phase;
  begin_gpu(b, said.channel_id, said.p_timer, false);
  b.span.part.gpu.phase = said.phase_id;
  copy_text(b.span.part.gpu.name, said.phase_name);
}

void begin_ce_coll(const Beginning& b) noexcept {
  CopyEnginePart& part = b.span.make(b.span.part.copy_engine);
  const abi::CeCollV7& said = b.what.ce_coll;
  part.kind = CopyEngineKind::collective;
  part.sequence = said.seq_number;
  part.count = said.count;
  part.stream = address(said.stream);
  part.user_tag = said.user_tag;
  part.batches = said.num_batches;
  part.operations = said.batch_size;
  part.root = said.root;
  part.func = b.core.words.find(said.func);
  part.dtype = b.core.words.find(said.datatype);
  Pin call = b.parent();
  if (!call || call->kind() != abi::kCollApi) return;
  if (!call->part.api.captured) b.span.op_id = call->op_id;
  // When copy engines are done nobody tells.
  if (!call->part.api.captured && call->part.api.stopped.get() != 0)
    let_call_go(b.in, std::move(call), false);
}
void begin_ce_part(const Beginning& b) noexcept {
  CopyEnginePart& part = b.span.make(b.span.part.copy_engine);
  if (b.what.type == abi::kCeSync) {
    part.kind = CopyEngineKind::synchronization;
    part.ranks = b.what.ce_sync.n_ranks;
  } else {
    part.kind = CopyEngineKind::batch;
    part.operations = static_cast<std::uint32_t>(b.what.ce_batch.num_ops);
    part.bytes = b.what.ce_batch.total_bytes;
  }
  if (const Pin collective = b.parent()) b.span.op_id = collective->op_id;
}

/// The id tells what its data is; a form that is not known is not read.
void begin_net(const Beginning& b) noexcept {
  NetPart& part = b.span.make(b.span.part.net);
  b.span.rank = b.what.rank;
  if (const Pin step = b.parent()) b.as(*step);
  const abi::NetPlugin& said = b.what.net_plugin;
  if (said.data == nullptr) return;
  if (said.id == (abi::kNetInfiniband | 1)) {
    const auto& data = *static_cast<const abi::NetInfiniband*>(said.data);
    if (data.type != 1) return;
    part = {data.qp.wr_id,      data.qp.length, data.qp.device, data.qp.opcode, data.qp.qp_num, -1,
            NetKind::infiniband};
  } else if (said.id == (abi::kNetSocket | 1)) {
    const auto& data = *static_cast<const abi::NetSocket*>(said.data);
    if (data.type != 1) return;
    part = {0, data.sock.length, -1, data.sock.op, 0, data.sock.fd, NetKind::socket};
  }
}

void begin_kind(const Beginning& b, bool foreign) noexcept {
  switch (b.what.type) {
    case abi::kGroupApi:
      return begin_group_api(b);
    case abi::kCollApi:
      return begin_coll_api(b);
    case abi::kP2pApi:
      return begin_p2p_api(b);
    case abi::kKernelLaunch:
      b.span.make(b.span.part.launch).stream = address(b.what.kernel_launch.stream);
      return;
    case abi::kGroup:
      b.span.make(b.span.part.launch);
      return;
    case abi::kColl:
      return begin_coll(b);
    case abi::kP2p:
      return begin_p2p(b);
    case abi::kProxyOp:
      return begin_proxy_op(b, foreign);
    case abi::kProxyStep:
      return begin_proxy_step(b);
    case abi::kProxyCtrl:
      b.span.make(b.span.part.control);
      return;
    case abi::kKernelCh:
      return begin_gpu(b, b.what.kernel_ch.channel_id, b.what.kernel_ch.p_timer, true);
    case abi::kKernelPhase:
      return begin_kernel_phase(b);
    case abi::kCeColl:
      return begin_ce_coll(b);
    case abi::kCeSync:
    case abi::kCeBatch:
      return begin_ce_part(b);
    case abi::kNetPlugin:
      return begin_net(b);
    default:
      return;
  }
}

/// What those behind ringmain's gave for what a span belongs to.
Chain::Parents parents_of(Core& core, const abi::DescriptorV7& what) noexcept {
  Chain::Parents all;
  for (std::size_t i = 0; i < kChainMax; ++i) all.of[i] = handle_for(core, what.parent, i);
  const bool coll = what.type == abi::kColl;
  if (!coll && what.type != abi::kP2p) return all;
  const void* const plan = coll ? what.coll.parent_group : what.p2p.parent_group;
  for (std::size_t i = 0; i < kChainMax; ++i) all.groups[i] = handle_for(core, plan, i);
  return all;
}

}  // namespace

void* begin(const Inside& in, int version, void* context, const abi::DescriptorV7& what) noexcept {
  Core& core = in.core();
  const bool proxy_op = what.type == abi::kProxyOp;
  // Before anything is looked at: what another process wrote means nothing here.
  bool foreign = proxy_op && what.proxy_op.pid != core.process;
  const bool is_in_one = !foreign && what.type != abi::kProxyStep && what.type != abi::kNetPlugin;
  const Communicators::Found where =
      is_in_one ? core.communicators.find(token_of(context)) : Communicators::Found{};
  if (is_in_one && where.place == nullptr) {
    if (!proxy_op) {
      core.counts.no_context.add();
      return nullptr;
    }
    foreign = true;  // a process in another namespace may have our number
  }
  const Spans::Opening made = core.spans.open(threads_seed(), Core::kTries);
  if (!made) {
    core.counts.no_room.add();
    return nullptr;
  }
  OpenSpan& span = *made.thing;
  span.type = static_cast<std::uint16_t>(std::countr_zero(what.type) | version << 8);
  span.began_ns = engine::now_ns();
  const engine::Token parent = token_of(what.parent);
  if (!foreign && core.spans.is_ours(parent)) span.parent = parent.bits();
  const Beginning b{in, core, what, span, made.token, where};
  if (where.place != nullptr) b.in_communicator();
  core.counts.started.add();
  Chain* const chain = core.chain.load();
  // Before the call that asked for it is let go.
  const auto parents = chain == nullptr || foreign ? Chain::Parents{} : parents_of(core, what);
  begin_kind(b, foreign);
  core.tally_of(span).begun.add();
  // They know another process's by its number, which may be ours in another namespace.
  const bool told = !foreign || what.proxy_op.pid != core.process;
  if (chain != nullptr && told)
    chain->start(foreign ? nullptr : span.of, span.chained, what, parents,
                 Chain::is_timed(made.token));
  core.spans.publish(made);
  return handle_of(made.token);
}

}  // namespace ringmain::nccl
