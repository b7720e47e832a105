// What hangs? An operation that was enqueued and of which nothing was heard for so long. Which
// step of a proxy is open, and what it was last waiting for, says on whom it waits.
#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "engine/system/clock.hpp"

#include "adapters/sources/nccl/nccl_callbacks.hpp"
#include "adapters/sources/nccl/nccl_control.hpp"

namespace ringmain::nccl {
namespace {

constexpr std::int64_t kQuietNs = 1'000'000'000;

StallReading reading_of(StepState state) noexcept {
  switch (state) {
    case StepState::begun:
    case StepState::send_gpu_wait:
      return StallReading::own_gpu_late;
    case StepState::send_peer_wait:
      return StallReading::peer_has_no_room;
    case StepState::send_wait:
      return StallReading::network;
    case StepState::recv_wait:
      return StallReading::peer_or_network;
    case StepState::recv_flush_wait:
      return StallReading::local_pci;
    case StepState::recv_gpu_wait:
      return StallReading::own_gpu_not_taking;
  }
  return StallReading::not_begun;
}

/// The step of an operation that has been open for longest, and how many are.
struct OpenSteps {
  std::uint16_t count = 0;
  std::int64_t since_ns = 0;
  std::int32_t step = -1, peer = kNoRank, nccl_channel = -1;
  StepState last = StepState::begun;

  void add(const ProxyStepPart& part) noexcept {
    const std::int64_t since = part.since_ns.get();
    if (count++ != 0 && since >= since_ns) return;
    since_ns = since;
    step = part.step;
    peer = part.peer;
    nccl_channel = part.nccl_channel;
    last = part.last.get();
  }
};

/// An operation that is to be said.
struct Waiting {
  Pin operation{};
  std::int64_t last_ns = 0;
  OpenSteps steps{};
};

void say_stalled(const Inside& in, const Waiting& waits, bool asked, std::int64_t now_ns) noexcept {
  Core& core = in.core();
  const OpenSpan& span = *waits.operation;
  const OperationPart& part = span.part.operation;
  const OpenSteps& steps = waits.steps;
  in.to()->publish<Stalled>(core.counts, [&]() noexcept {
    Stalled said;
    said.op_id = span.op_id;
    said.id = waits.operation.token().number();
    said.communicator = span.communicator;
    said.sequence = part.sequence;
    said.count = part.count;
    said.waited_ns = now_ns - waits.last_ns;
    said.since_ns = now_ns - span.began_ns;
    said.group = span.group;
    said.func = core.words.name(part.func);
    said.dtype = core.words.name(part.dtype);
    said.rank = span.rank;
    said.peer = steps.count != 0 ? steps.peer : part.point_to_point ? part.root_or_peer : kNoRank;
    said.step = steps.step;
    said.nccl_channel = steps.nccl_channel;
    said.nccl_channels = part.nccl_channels;
    said.begun_channels = static_cast<std::uint16_t>(std::popcount(part.kernels_begun.get()));
    said.ended_channels = static_cast<std::uint16_t>(std::popcount(part.kernels_ended.get()));
    said.open_steps = steps.count;
    said.last = steps.last;
    said.reading = steps.count != 0                ? reading_of(steps.last)
                   : part.kernels_begun.get() != 0 ? StallReading::kernel_running
                                                   : StallReading::not_begun;
    said.asked = asked;
    return said;
  });
}

/// Operations that are to be said, by rising place: one look through the table finds the steps of
/// so many.
class Waiters {
 public:
  Waiters(const Inside& in, bool asked, std::int64_t now_ns) noexcept
      : in_(in), asked_(asked), now_ns_(now_ns) {}
  Waiters(const Waiters&) = delete;
  Waiters& operator=(const Waiters&) = delete;
  ~Waiters() = default;

  void add(Pin operation, std::int64_t last_ns) noexcept {
    Waiting& one = all_[count_++];
    one.operation = std::move(operation);
    one.last_ns = last_ns;
    one.steps = {};
    if (count_ == all_.size()) say_all();
  }
  void say_all() noexcept {
    if (count_ == 0) return;
    in_.core().for_each_span([this](Pin& one) noexcept {
      if (one->kind() != abi::kProxyStep) return;
      const ProxyStepPart& part = one->part.proxy_step;
      if (Waiting* const of = find(engine::Token(part.operation))) of->steps.add(part);
    });
    for (std::size_t i = 0; i < count_; ++i) {
      say_stalled(in_, all_[i], asked_, now_ns_);
      all_[i].operation.reset();
    }
    count_ = 0;
  }

 private:
  Waiting* find(engine::Token operation) noexcept {
    Waiting* const end = all_.data() + count_;
    Waiting* const at = std::lower_bound(all_.data(), end, operation.place(),
                                         [](const Waiting& one, std::size_t place) {
                                           return one.operation.token().place() < place;
                                         });
    return at != end && at->operation.token() == operation ? at : nullptr;
  }

  const Inside& in_;
  const bool asked_;
  const std::int64_t now_ns_;
  std::size_t count_ = 0;
  std::array<Waiting, 256> all_;
};

}  // namespace

std::uint32_t watch(const Inside& in, bool asked) noexcept {
  if (in.to() == nullptr) return 0;
  const std::int64_t now_ns = engine::now_ns();
  const std::int64_t stall_ns = std::int64_t{in.to()->options.stall_seconds} * 1'000'000'000;
  const bool heard = in.to()->channel<Stalled>().wanted();
  std::uint32_t said = 0;
  Waiters waiters(in, asked, now_ns);
  in.core().for_each_span([&](Pin& one) noexcept {
    if (one->kind() != abi::kColl && one->kind() != abi::kP2p) return;
    OperationPart& part = one->part.operation;
    if (!part.followed() || (part.flags.get() & OperationPart::kEnded) != 0) return;
    const std::int64_t last = part.last_ns.get() != 0 ? part.last_ns.get() : one->began_ns;
    // Its proxies were done for a while: there was not one for each NCCL channel.
    const bool enqueued = (part.flags.get() & OperationPart::kStopped) != 0;
    if (!part.by_kernels && enqueued && part.proxies_begun.get() != 0 &&
        part.open_proxies.get() == 0 && now_ns - last >= kQuietNs)
      return end_operation(in, one, EvidenceKind::proxies_quiet, last);
    if (!heard) return;
    if (!asked && (now_ns - last < stall_ns || part.stalled.exchange(1) != 0)) return;
    waiters.add(std::move(one), last);
    ++said;
  });
  waiters.say_all();
  return said;
}

}  // namespace ringmain::nccl
