// What hangs? An operation that was enqueued and of which nothing was heard for so long. Which
// step of a proxy is open, and what it was last waiting for, says on whom it waits.
#include <bit>
#include <utility>

#include "engine/system/clock.hpp"

#include "adapters/sources/nccl/nccl_callbacks.hpp"
#include "adapters/sources/nccl/nccl_control.hpp"
#include "adapters/sources/nccl/nccl_waiting.hpp"

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

}  // namespace

bool is_quiet(const OperationPart& part, std::int64_t last_ns, std::int64_t now_ns) noexcept {
  const bool enqueued = (part.flags.get() & OperationPart::kStopped) != 0;
  return !part.by_kernels && enqueued && part.proxies_begun.get() != 0 &&
         part.open_proxies.get() == 0 && now_ns - last_ns >= kQuietNs;
}

Stalled stalled_of(const Core& core, const Waiting& waits, bool asked,
                   std::int64_t now_ns) noexcept {
  const OpenSpan& span = *waits.operation;
  const OperationPart& part = span.part.operation;
  const OpenSteps& steps = waits.steps;
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
}

std::uint32_t watch(const Inside& in, bool asked) noexcept {
  if (in.to() == nullptr) return 0;
  const std::int64_t now_ns = engine::now_ns();
  const std::int64_t stall_ns = std::int64_t{in.to()->options.stall_seconds} * 1'000'000'000;
  const bool heard = in.to()->channel<Stalled>().wanted();
  std::uint32_t said = 0;
  Waiters waiters(in.core(), [&](const Waiting& one) noexcept {
    in.to()->publish<Stalled>(in.core().counts,
                              [&]() noexcept { return stalled_of(in.core(), one, asked, now_ns); });
  });
  in.core().for_each_span([&](Pin& one) noexcept {
    if (one->kind() != abi::kColl && one->kind() != abi::kP2p) return;
    OperationPart& part = one->part.operation;
    if (!part.followed() || (part.flags.get() & OperationPart::kEnded) != 0) return;
    const std::int64_t last = last_heard_ns(*one);
    if (is_quiet(part, last, now_ns))
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
