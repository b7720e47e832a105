// How does a call's event come onto its channel? What each edge of each call says alike, whether
// CUPTI tells of the call or the wrapper does.
#pragma once
#include <cstddef>
#include <cstdint>

#include "bus/origin.hpp"

#include "adapters/launch/tid.hpp"
#include "adapters/sources/cuda/cuda_attachment.hpp"
#include "adapters/sources/cuda/cuda_guard.hpp"
#include "adapters/sources/cuda/cupti_abi.hpp"

namespace ringmain::cuda {

/// Ids of ours begin above all of CUPTI's, which have 32 bits.
constexpr std::uint64_t kOwnIds = std::uint64_t{1} << 32;

/// One edge of a call.
struct Edge {
  Attachment& to;
  Guard& guard;
  CallUnderWay& call;
  const CallRow& row;  // of `call`, which is empty while an event is published: Aside
  const abi::CallData& data;
  Phase phase = Phase::instant;
  std::int32_t result = kNoResult;
  std::int64_t duration_ns = 0;

  [[nodiscard]] const Call& what() const noexcept { return row.call; }
};

[[nodiscard]] inline Layer layer_of(const CallUnderWay& call) noexcept {
  if (call.wrapped) return Layer::wrapper;
  return call.row->domain == CallDomain::runtime ? Layer::runtime : Layer::driver;
}
/// Of a wrapped call whose context CUPTI does not tell: what the runtime says.
[[nodiscard]] inline std::int32_t device_of(const Edge& edge) noexcept {
  if (edge.data.context == nullptr && edge.call.wrapped) return edge.call.device;
  return edge.to.contexts.device_of(edge.data.context_uid, edge.data.context,
                                    edge.to.cupti.device_id);
}
[[nodiscard]] inline std::uint64_t correlation_of(CallUnderWay& call, std::uint32_t told) noexcept {
  if (call.correlation == 0) call.correlation = told != 0 ? told : kOwnIds + new_op_id();
  return call.correlation;
}

/// The fields that all kinds have, found before the event is built: in its slot nobody asks CUPTI
/// or the system, and while it is published the thread is in no call (Aside).
struct Which {
  explicit Which(const Edge& edge) noexcept
      : row(edge.row),
        duration_ns(edge.duration_ns),
        context(edge.data.context_uid),
        device(device_of(edge)),
        result(edge.result),
        thread(static_cast<std::int32_t>(run::this_tid())),
        api(edge.to.names[static_cast<std::size_t>(&row - call_rows().data())]),
        phase(edge.phase),
        layer(layer_of(edge.call)) {
    correlation = correlation_of(edge.call, edge.data.correlation_id);
  }
  template <class E>
  void say(E& event) const noexcept {
    event.correlation = correlation;
    event.duration_ns = duration_ns;
    event.device = device;
    event.result = result;
    event.context = context;
    event.thread = thread;
    event.api = api;
    event.cbid = row.cbid;
    event.phase = phase;
    event.layer = layer;
  }

  const CallRow& row;
  std::uint64_t correlation = 0;
  const std::int64_t duration_ns;
  const std::uint32_t context;
  const std::int32_t device, result, thread;
  const Name api;
  const Phase phase;
  const Layer layer;
};

/// `make()` builds the event in its slot: a copy would wait for the stores of its fields.
template <class E, class F>
void publish_made_by(Attachment& to, Guard& guard, F make) noexcept {
  PublishCode code{};
  {
    const Aside aside(guard);
    code = to.channel<E>().publish_with(make).code;
  }
  if (code == PublishCode::unheard) return;
  to.tally.add(code == PublishCode::accepted ? Tally::published : Tally::refused);
}

/// `fill(event)` sets the kind's own fields.
template <class E, class F>
void publish(const Edge& edge, F fill) noexcept {
  const Which which(edge);
  publish_made_by<E>(edge.to, edge.guard, [&fill, &which]() noexcept {
    E event;
    fill(event);
    which.say(event);
    return event;
  });
}

[[nodiscard]] inline bool heard(const Attachment& to, CallKind kind) noexcept {
  switch (kind) {
    case CallKind::none:
      return false;
    case CallKind::event_creation:
      return to.channel<EventCreation>().wanted();
    case CallKind::event_deletion:
      return to.channel<EventDeletion>().wanted();
    case CallKind::event_record:
      return to.channel<EventRecord>().wanted();
    case CallKind::event_wait:
      return to.channel<EventWait>().wanted();
    case CallKind::memory_allocation:
      return to.channel<MemoryAllocation>().wanted();
    case CallKind::memory_deallocation:
      return to.channel<MemoryDeallocation>().wanted();
    case CallKind::stream_creation:
      return to.channel<StreamCreation>().wanted();
    case CallKind::device_synchronization:
      return to.channel<DeviceSynchronization>().wanted();
    case CallKind::stream_synchronization:
      return to.channel<StreamSynchronization>().wanted();
    case CallKind::event_synchronization:
      return to.channel<EventSynchronization>().wanted();
    case CallKind::stream_deletion:
      return to.channel<StreamDeletion>().wanted();
    case CallKind::context:
      return to.channel<ContextEvent>().wanted();
    case CallKind::capture:
      return to.channel<Capture>().wanted();
  }
  return false;
}

}  // namespace ringmain::cuda
