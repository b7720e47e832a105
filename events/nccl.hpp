// What does NCCL say of itself through a profiler plugin? One event for each span that it begins
// and ends, published at its end, in the thread in which NCCL says so.
//
// An operation goes from the call (`api`) through a plan (`group`) and its kernel's launch to the
// work (`operation`), which the host follows by what proxies send and receive (`proxy_op`, its
// steps) and by what kernels write (`kernel_channel`). NCCL calls an `operation` over when it is
// enqueued: how its true end is known is said by `evidence`, in nccl_source.hpp.
// "NCCL channel" is NCCL's word for a part of the network and the GPU; `nccl_channel` in fields.
// A field that NCCL does not tell reads 0, but for ranks and peers (-1) and streams (kNoStream).
#pragma once
#include <cstdint>

#include "../bus/event.hpp"

namespace ringmain::nccl {

constexpr std::uint64_t kNoStream = ~std::uint64_t{0};
constexpr std::int32_t kNoRank = -1;

/// How a span ended.
enum class Ending : std::uint8_t {
  stopped,  // NCCL ended it
  aborted,  // it was open when its communicator was finalized
  stale     // NCCL began the same thing again, and will not end this one
};

/// What every span has, after its own fields in each event's list.
struct Span {
  std::uint64_t id = 0;            // unique in the process
  std::uint64_t parent = 0;        // the `id` of what NCCL says that it belongs to, perhaps over
  std::uint64_t op_id = 0;         // of the collective.* operation; 0: not known
  std::uint64_t communicator = 0;  // NCCL's number of it, the same on its ranks
  std::int64_t began_ns = 0;       // CLOCK_MONOTONIC of the host, when NCCL said that it began
  std::int64_t duration_ns = 0;    // until NCCL said that it ended
  Name group;                      // the communicator's name, as the program gave it
  std::int32_t rank = kNoRank;     // in the communicator
  std::int32_t thread = 0;         // in which it ended, as Linux numbers it
  Ending ending = Ending::stopped;
};

enum class ApiKind : std::uint8_t { group, collective, point_to_point };
/// `nccl.api`: a call, from inside it. `op_id` as the thread's wrapper or process group gave it.
struct Api : Span {
  std::uint64_t count = 0;  // as the program gave it, in `dtype`
  std::uint64_t stream = kNoStream;
  std::uint64_t user_tag = 0;        // NCCL 2.31's userProfilerTag; 0: none
  std::int64_t group_start_ns = 0;   // group: how long it took to begin
  std::int64_t group_to_end_ns = 0;  // group: from its begin to the call that ends it
  Name func;                         // AllReduce, as NCCL has it
  Name dtype;                        // ncclFloat16
  std::int32_t root = kNoRank;
  std::int32_t depth = 0;  // group: 1 is NCCL's own, 2 and more the program's
  ApiKind kind = ApiKind::group;
  bool captured = false;  // into a graph: nothing runs now
};

/// `nccl.operation`: a collective, a send or a receive, from when NCCL begins to enqueue it until
/// it has. Of a graph once for each replay.
struct Operation : Span {
  std::uint64_t sequence = 0;  // of this function in this communicator; point to point: 0
  std::uint64_t count = 0;     // all_gather and broadcast: in bytes
  std::uint64_t send_address = 0;
  std::uint64_t receive_address = 0;
  std::uint64_t user_tag = 0;
  std::uint64_t plan = 0;  // the `id` of its nccl.group
  Name func;
  Name dtype;
  Name algorithm;
  Name protocol;
  std::int32_t root = kNoRank;
  std::int32_t peer = kNoRank;
  std::uint16_t nccl_channels = 0;
  std::uint16_t warps = 0;
  bool point_to_point = false;
  bool symmetric = false;  // over symmetric memory
  Text<40> variant;        // of the kernel, NCCL 2.31
};

/// `nccl.group`: the proxies' work of one plan, which one kernel does.
struct Group : Span {};

/// `nccl.launch`: the launch of a plan's kernel; into a graph: its recording.
struct Launch : Span {
  std::uint64_t stream = kNoStream;
};

/// `nccl.proxy_op`: what a proxy thread does for one operation, NCCL channel and peer.
struct ProxyOp : Span {
  std::int64_t waited_ns = 0;  // until the proxy first came to it
  std::int32_t peer = kNoRank;
  std::int32_t process = 0;  // that asked for it
  std::uint32_t steps = 0;
  std::uint32_t chunk_bytes = 0;
  std::uint8_t nccl_channel = 0;
  bool send = false;      // NCCL 2.30 says false of some sends: then as its steps showed
  bool detached = false;  // another process asked for it: parent and communicator are not known
};

/// Where a step was last: what it waits for while it is open.
enum class StepState : std::uint8_t {
  begun,
  send_gpu_wait,   // for this GPU
  send_peer_wait,  // for room at the peer
  send_wait,       // for the network
  recv_wait,       // for data from the peer
  recv_flush_wait,
  recv_gpu_wait  // for this GPU to take it
};
/// `nccl.proxy_step`: one slice through the network, and how long it was in each state.
struct ProxyStep : Span {
  std::uint64_t bytes = 0;
  std::int64_t gpu_wait_ns = 0;  // send_gpu_wait, recv_gpu_wait
  std::int64_t peer_wait_ns = 0;
  std::int64_t network_wait_ns = 0;  // send_wait, recv_wait
  std::int64_t flush_wait_ns = 0;
  std::int32_t step = 0;
  std::int32_t peer = kNoRank;
  std::uint32_t peer_waits = 0;  // how often the peer had no room
  std::uint8_t nccl_channel = 0;
  bool send = false;
  StepState last = StepState::begun;
};

enum class ProxyControlKind : std::uint8_t { unknown, idle, active, sleep, append };
/// `nccl.proxy_control`: what a proxy thread does between operations.
struct ProxyControl : Span {
  std::uint32_t appended = 0;  // operations
  ProxyControlKind kind = ProxyControlKind::unknown;
};

/// A span on the GPU, by its %globaltimer and by the host's clock.
///
/// The host's time of a GPU's is an estimate: never before the call, never after it was seen.
struct GpuSpan : Span {
  std::uint64_t gpu_began = 0;    // raw, ns of the GPU's clock
  std::uint64_t gpu_ended = 0;    // 0: not told
  std::int64_t gpu_began_ns = 0;  // CLOCK_MONOTONIC, give or take error_ns; 0: no estimate
  std::int64_t gpu_error_ns = 0;
  std::uint8_t nccl_channel = 0;
  bool suspect = false;  // its stamps contradict each other, or an earlier one's: of another lap
};
/// `nccl.kernel_channel`: a kernel's work on one NCCL channel.
struct KernelChannel : GpuSpan {};
/// `nccl.kernel_phase`: a part of that, NCCL 2.31.
struct KernelPhase : GpuSpan {
  std::uint8_t phase = 0;  // 0: first synchronization, 1: computation, 2: last synchronization
  Text<24> name;
};

enum class CopyEngineKind : std::uint8_t { collective, synchronization, batch };
/// `nccl.copy_engine`: enqueueing what copy engines do, NCCL 2.29.
struct CopyEngine : Span {
  std::uint64_t sequence = 0;
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
  std::uint64_t stream = kNoStream;
  std::uint64_t user_tag = 0;
  Name func;
  Name dtype;
  std::int32_t root = kNoRank;
  std::uint32_t batches = 0;
  std::uint32_t operations = 0;  // of a batch; of a collective: of each batch
  std::int32_t ranks = 0;
  CopyEngineKind kind = CopyEngineKind::collective;
};

enum class NetKind : std::uint8_t { unknown, infiniband, socket };
/// `nccl.net`: a request of the network's plugin; only where NCCL was built with NET_PROFILER=1.
struct Net : Span {
  std::uint64_t work_request = 0;
  std::uint64_t bytes = 0;
  std::int32_t device = -1;  // infiniband
  std::int32_t opcode = 0;
  std::int32_t queue_pair = 0;   // infiniband
  std::int32_t descriptor = -1;  // socket
  NetKind kind = NetKind::unknown;
};

namespace detail {
/// The fields of Span come last in every list.
template <class E, class... Fields>
constexpr auto span_event(std::string_view name, Fields... own) {
  return event(
      name, own..., field<&E::group>("group"), field<&E::rank>("rank", Unit::id),
      field<&E::op_id>("op_id", Unit::id), field<&E::id>("id", Unit::id),
      field<&E::parent>("parent", Unit::id), field<&E::communicator>("communicator", Unit::id),
      field<&E::began_ns>("began_ns", Unit::ns), field<&E::duration_ns>("duration_ns", Unit::ns),
      field<&E::ending>("ending", "stopped,aborted,stale"), field<&E::thread>("thread", Unit::id));
}
template <class E, class... Fields>
constexpr auto gpu_event(std::string_view name, Fields... own) {
  return span_event<E>(
      name, field<&E::nccl_channel>("nccl_channel", Unit::id), own...,
      field<&E::gpu_began>("gpu_began", Unit::ns), field<&E::gpu_ended>("gpu_ended", Unit::ns),
      field<&E::gpu_began_ns>("gpu_began_ns", Unit::ns),
      field<&E::gpu_error_ns>("gpu_error_ns", Unit::ns), field<&E::suspect>("suspect"));
}
}  // namespace detail

constexpr auto describe(EventOf<Api>) {
  using E = Api;
  return detail::span_event<E>(
      "nccl.api", field<&E::kind>("kind", "group,collective,point_to_point"),
      field<&E::func>("func"), field<&E::count>("count", Unit::count), field<&E::dtype>("dtype"),
      field<&E::root>("root", Unit::id), field<&E::stream>("stream", Unit::stream),
      field<&E::captured>("captured"), field<&E::user_tag>("user_tag", Unit::id),
      field<&E::depth>("depth", Unit::count), field<&E::group_start_ns>("group_start_ns", Unit::ns),
      field<&E::group_to_end_ns>("group_to_end_ns", Unit::ns));
}
constexpr auto describe(EventOf<Operation>) {
  using E = Operation;
  return detail::span_event<E>(
      "nccl.operation", field<&E::func>("func"), field<&E::sequence>("sequence", Unit::count),
      field<&E::count>("count", Unit::count), field<&E::dtype>("dtype"),
      field<&E::root>("root", Unit::id), field<&E::peer>("peer", Unit::id),
      field<&E::point_to_point>("point_to_point"), field<&E::algorithm>("algorithm"),
      field<&E::protocol>("protocol"), field<&E::nccl_channels>("nccl_channels", Unit::count),
      field<&E::warps>("warps", Unit::count), field<&E::symmetric>("symmetric"),
      field<&E::variant>("variant"), field<&E::send_address>("send_address", Unit::address),
      field<&E::receive_address>("receive_address", Unit::address),
      field<&E::user_tag>("user_tag", Unit::id), field<&E::plan>("plan", Unit::id));
}
constexpr auto describe(EventOf<Group>) {
  return detail::span_event<Group>("nccl.group");
}
constexpr auto describe(EventOf<Launch>) {
  return detail::span_event<Launch>("nccl.launch", field<&Launch::stream>("stream", Unit::stream));
}
constexpr auto describe(EventOf<ProxyOp>) {
  using E = ProxyOp;
  return detail::span_event<E>(
      "nccl.proxy_op", field<&E::nccl_channel>("nccl_channel", Unit::id),
      field<&E::peer>("peer", Unit::id), field<&E::send>("send"),
      field<&E::steps>("steps", Unit::count), field<&E::chunk_bytes>("chunk_bytes", Unit::bytes),
      field<&E::waited_ns>("waited_ns", Unit::ns), field<&E::process>("process", Unit::id),
      field<&E::detached>("detached"));
}
constexpr auto describe(EventOf<ProxyStep>) {
  using E = ProxyStep;
  return detail::span_event<E>(
      "nccl.proxy_step", field<&E::step>("step", Unit::count),
      field<&E::nccl_channel>("nccl_channel", Unit::id), field<&E::peer>("peer", Unit::id),
      field<&E::send>("send"), field<&E::bytes>("bytes", Unit::bytes),
      field<&E::last>("last",
                      "begun,send_gpu_wait,send_peer_wait,send_wait,recv_wait,recv_flush_wait,"
                      "recv_gpu_wait"),
      field<&E::gpu_wait_ns>("gpu_wait_ns", Unit::ns),
      field<&E::peer_wait_ns>("peer_wait_ns", Unit::ns),
      field<&E::network_wait_ns>("network_wait_ns", Unit::ns),
      field<&E::flush_wait_ns>("flush_wait_ns", Unit::ns),
      field<&E::peer_waits>("peer_waits", Unit::count));
}
constexpr auto describe(EventOf<ProxyControl>) {
  using E = ProxyControl;
  return detail::span_event<E>("nccl.proxy_control",
                               field<&E::kind>("kind", "unknown,idle,active,sleep,append"),
                               field<&E::appended>("appended", Unit::count));
}
constexpr auto describe(EventOf<KernelChannel>) {
  return detail::gpu_event<KernelChannel>("nccl.kernel_channel");
}
constexpr auto describe(EventOf<KernelPhase>) {
  using E = KernelPhase;
  return detail::gpu_event<E>("nccl.kernel_phase", field<&E::phase>("phase", Unit::id),
                              field<&E::name>("name"));
}
constexpr auto describe(EventOf<CopyEngine>) {
  using E = CopyEngine;
  return detail::span_event<E>(
      "nccl.copy_engine", field<&E::kind>("kind", "collective,synchronization,batch"),
      field<&E::func>("func"), field<&E::sequence>("sequence", Unit::count),
      field<&E::count>("count", Unit::count), field<&E::dtype>("dtype"),
      field<&E::bytes>("bytes", Unit::bytes), field<&E::root>("root", Unit::id),
      field<&E::stream>("stream", Unit::stream), field<&E::batches>("batches", Unit::count),
      field<&E::operations>("operations", Unit::count), field<&E::ranks>("ranks", Unit::count),
      field<&E::user_tag>("user_tag", Unit::id));
}
constexpr auto describe(EventOf<Net>) {
  using E = Net;
  return detail::span_event<E>(
      "nccl.net", field<&E::kind>("kind", "unknown,infiniband,socket"),
      field<&E::bytes>("bytes", Unit::bytes), field<&E::device>("device", Unit::id),
      field<&E::work_request>("work_request", Unit::id), field<&E::opcode>("opcode", Unit::id),
      field<&E::queue_pair>("queue_pair", Unit::id), field<&E::descriptor>("descriptor", Unit::id));
}

}  // namespace ringmain::nccl
