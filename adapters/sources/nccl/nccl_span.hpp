// What is kept of a span while it is open? All that its event will say, in one place of a table.
#pragma once
#include <array>
#include <bit>
#include <cstdint>
#include <new>

#include "engine/system/figure.hpp"
#include "engine/system/token_slab.hpp"

#include "bus/text.hpp"

#include "events/nccl.hpp"

#include "adapters/sources/nccl/nccl_communicators.hpp"
#include "adapters/sources/nccl/nccl_profiler_abi.hpp"
#include "adapters/sources/nccl/nccl_words.hpp"

namespace ringmain::nccl {

/// Numbers on their own that NCCL's threads write in turn; who takes the span out sees all of them
/// by the table's own edge.
template <class T>
using Told = engine::Figure<T>;

struct ApiPart {
  std::uint64_t count = 0, stream = kNoStream, user_tag = 0;
  std::int32_t root = kNoRank, depth = 0;
  Word func = 0, dtype = 0;
  ApiKind kind = ApiKind::group;
  bool captured = false;
  bool to_say = false;           // the operation above is this very one: its start and end are said
  bool promised = false;         // and nobody else will say its end
  Told<std::uint8_t> passed_on;  // the promise, to the operation
  Told<std::int64_t> group_start_ns, group_to_end_ns;
  Told<std::uint32_t> stopped;
};

struct OperationPart {
  enum Flag : std::uint32_t { kStopped = 1, kEnded = 2, kBegun = 4 };
  enum : std::size_t { kVariantBytes = 24 };

  std::uint64_t sequence = 0, count = 0, send = 0, receive = 0, user_tag = 0, plan = 0;
  std::int64_t called_ns = 0;  // when the program asked for it, as far as that is known
  engine::Marks<std::uint64_t> kernels_begun, kernels_ended, proxies_begun;  // NCCL channels
  Told<std::int64_t> first_ns, last_ns;  // when anything of the work was heard
  engine::Marks<std::uint32_t> flags;
  Told<std::uint32_t> open_proxies;
  std::uint32_t order = 0;  // among the communicator's that are waited for
  std::int32_t root_or_peer = kNoRank;
  Word func = 0, dtype = 0, algorithm = 0, protocol = 0;
  std::uint8_t nccl_channels = 0, warps = 0;
  bool point_to_point = false, symmetric = false;
  bool by_kernels = false, by_proxies = false;  // by what its end is waited for
  bool to_say = false;                          // its start and end are said on collective.*
  bool promised = false;                        // nobody else will say its end
  bool kept = false;           // for its kernels and proxies, until many others came
  Told<std::uint8_t> stalled;  // that was said
  char variant[kVariantBytes] = {};

  [[nodiscard]] bool followed() const noexcept { return by_kernels || by_proxies; }
};

struct ProxyOpPart {
  enum : std::uint32_t { kSteps = 8 };  // that NCCL has under way at once
  std::int32_t peer = kNoRank, process = 0;
  std::uint32_t steps = 0, chunk_bytes = 0;
  std::uint8_t nccl_channel = 0;
  bool detached = false;
  Told<std::uint8_t> send;
  Told<std::int64_t> in_progress_ns;
  std::array<Told<std::uint64_t>, kSteps> under_way;  // tokens
};

struct ProxyStepPart {
  enum Wait : std::uint32_t { kGpu, kPeer, kNetwork, kFlush, kWaits };
  std::int32_t step = 0, peer = kNoRank;
  std::uint64_t operation = 0;  // the token of what the proxy operation belongs to
  std::uint8_t nccl_channel = 0;
  Told<std::uint8_t> send;
  Told<std::uint64_t> bytes;
  Told<std::int64_t> since_ns;
  std::array<Told<std::int64_t>, kWaits> waited_ns;
  Told<std::uint32_t> peer_waits;
  Told<StepState> last;
};

struct ControlPart {
  Told<std::uint32_t> appended;
  Told<ProxyControlKind> kind;
};

struct GpuPart {
  std::uint64_t began = 0;
  std::int64_t host_ns = 0, error_ns = 0;
  Told<std::uint64_t> ended;
  std::uint8_t nccl_channel = 0, phase = 0;
  bool late_lap = false;  // it began before the last one on that NCCL channel had ended
  char name[16] = {};
};

struct CopyEnginePart {
  std::uint64_t sequence = 0, count = 0, bytes = 0, stream = kNoStream, user_tag = 0;
  std::uint32_t batches = 0, operations = 0;
  std::int32_t root = kNoRank, ranks = 0;
  Word func = 0, dtype = 0;
  CopyEngineKind kind = CopyEngineKind::collective;
};

struct NetPart {
  std::uint64_t work_request = 0, bytes = 0;
  std::int32_t device = -1, opcode = 0, queue_pair = 0, descriptor = -1;
  NetKind kind = NetKind::unknown;
};

struct LaunchPart {
  std::uint64_t stream = kNoStream;
};

/// How a span leaves the table. `done`: an operation or a call that ended earlier, and is not
/// needed any more.
enum How : unsigned { kStopped, kAborted, kStale, kDone };

struct OpenSpan {
  std::uint64_t parent = 0;
  std::uint64_t op_id = 0;
  std::uint64_t communicator = 0;
  std::int64_t began_ns = 0;
  Told<std::int64_t> ended_ns;
  Communicator* of = nullptr;  // nullptr: not known
  std::array<void*, kChainMax> chained{};
  Name group;
  std::int32_t rank = kNoRank;
  std::uint16_t type = 0;  // the number of its bit, and its ABI's version above that
  union Part {
    Part() noexcept {}
    ApiPart api;
    OperationPart operation;
    LaunchPart launch;
    ProxyOpPart proxy_op;
    ProxyStepPart proxy_step;
    ControlPart control;
    GpuPart gpu;
    CopyEnginePart copy_engine;
    NetPart net;
  } part;

  [[nodiscard]] abi::Type kind() const noexcept {
    return static_cast<abi::Type>(std::uint64_t{1} << (type & 0xff));
  }
  template <class P>
  P& make(P& at) noexcept {
    return *::new (static_cast<void*>(&at)) P;
  }
};

/// The event of a span that has left, and what that means for what it belongs to.
struct TakeOut {
  void operator()(OpenSpan& span, engine::Token token, unsigned how) const noexcept;
};
using Spans = engine::TokenSlab<OpenSpan, TakeOut>;
using Pin = Spans::Pin;
static_assert(Spans::bytes_each() <= 256);

[[nodiscard]] inline void* handle_of(engine::Token token) noexcept {
  return std::bit_cast<void*>(token.bits());
}
[[nodiscard]] inline engine::Token token_of(const void* handle) noexcept {
  return engine::Token(std::bit_cast<std::uint64_t>(handle));
}
static_assert(sizeof(void*) == sizeof(std::uint64_t));

}  // namespace ringmain::nccl
