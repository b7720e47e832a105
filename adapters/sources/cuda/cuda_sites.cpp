#include "adapters/sources/cuda/cuda_sites.hpp"

#include <optional>

#include "engine/system/clock.hpp"

#include "bus/in_subscriber.hpp"

#include "adapters/sources/cuda/cuda_arguments.hpp"
#include "adapters/sources/cuda/cuda_edge.hpp"

namespace ringmain::cuda {
namespace {

using engine::now_ns;

[[nodiscard]] HandleClass class_of(MemoryClass memory) noexcept {
  switch (memory) {
    case MemoryClass::host_pinned:
    case MemoryClass::host_registered:
      return HandleClass::host_memory;
    case MemoryClass::array:
    case MemoryClass::physical:  // no address of the device's either
      return HandleClass::array;
    default:
      return HandleClass::memory;
  }
}
[[nodiscard]] HandleClass class_of(const Call& call) noexcept {
  switch (call.kind) {
    case CallKind::memory_allocation:
    case CallKind::memory_deallocation:
      return class_of(call.memory);
    case CallKind::stream_creation:
    case CallKind::stream_deletion:
    case CallKind::stream_synchronization:
      return HandleClass::stream;
    default:
      return HandleClass::event;
  }
}
[[nodiscard]] constexpr std::uint32_t generation(const Handles::Known& known) noexcept {
  return known.live ? known.generation : 0;
}
[[nodiscard]] Handles::Known known(const Edge& edge, const Arguments& given) noexcept {
  return edge.to.handles.find(class_of(edge.what()), given.handle);
}

[[nodiscard]] bool releases(CallKind kind) noexcept {
  return kind == CallKind::event_deletion || kind == CallKind::stream_deletion ||
         kind == CallKind::memory_deallocation;
}
[[nodiscard]] bool makes(CallKind kind) noexcept {
  return kind == CallKind::event_creation || kind == CallKind::stream_creation ||
         kind == CallKind::memory_allocation;
}

void publish_release(const Edge& edge, const Arguments& given, const Handles::Known& was) noexcept {
  if (edge.what().kind == CallKind::event_deletion) {
    publish<EventDeletion>(edge, [&](EventDeletion& e) {
      e.event = given.handle;
      e.generation = was.generation;
    });
  } else if (edge.what().kind == CallKind::stream_deletion) {
    publish<StreamDeletion>(edge, [&](StreamDeletion& e) {
      e.stream = given.handle;
      e.generation = was.generation;
    });
  } else {
    publish<MemoryDeallocation>(edge, [&](MemoryDeallocation& e) {
      e.address = given.handle;
      e.bytes = given.bytes != 0 ? given.bytes : was.bytes;
      e.stream = given.stream;
      e.generation = was.generation;
      e.memory = edge.what().memory;
    });
  }
}

void publish_made(const Edge& edge, const Arguments& given, std::uint32_t made) noexcept {
  if (edge.what().kind == CallKind::event_creation) {
    publish<EventCreation>(edge, [&](EventCreation& e) {
      e.event = given.handle;
      e.generation = made;
      e.flags = given.flags;
    });
  } else if (edge.what().kind == CallKind::stream_creation) {
    publish<StreamCreation>(edge, [&](StreamCreation& e) {
      if (given.handle != 0) e.stream = given.handle;
      e.generation = made;
      e.flags = given.flags;
      e.priority = given.priority;
    });
  } else {
    publish<MemoryAllocation>(edge, [&](MemoryAllocation& e) {
      e.address = given.handle;
      e.bytes = given.bytes;
      e.stream = given.stream;
      e.generation = made;
      e.memory = edge.what().memory;
    });
  }
}

template <class E>
void publish_use(const Edge& edge, const Arguments& given) noexcept {
  const std::uint32_t now = generation(known(edge, given));
  publish<E>(edge, [&given, now](E& e) {
    e.event = given.handle;
    e.stream = given.stream;
    e.generation = now;
    e.flags = given.flags;
  });
}

void publish_synchronization(const Edge& edge) noexcept {
  if (edge.what().kind == CallKind::device_synchronization)
    return publish<DeviceSynchronization>(edge, [](DeviceSynchronization&) {});
  const Arguments given = read_arguments(edge.row, edge.data.params, false);
  const std::uint32_t now = generation(known(edge, given));
  if (edge.what().kind == CallKind::stream_synchronization) {
    publish<StreamSynchronization>(edge, [&given, now](StreamSynchronization& e) {
      e.stream = given.handle;
      e.generation = now;
    });
  } else {
    publish<EventSynchronization>(edge, [&given, now](EventSynchronization& e) {
      e.event = given.handle;
      e.generation = now;
    });
  }
}

void publish_context(const Edge& edge, const Arguments& given) noexcept {
  publish<ContextEvent>(edge, [&](ContextEvent& e) {
    e.handle = given.handle;
    e.change = edge.what().change;
  });
}

/// The handle is dead before CUDA takes it back.
void release(const Edge& edge, bool told) noexcept {
  const Arguments given = read_arguments(edge.row, edge.data.params, false);
  if (given.handle == 0) return;  // cudaFree(nullptr) makes a context, and releases nothing
  Handles::Known was = edge.to.handles.gone(class_of(edge.what()), given.handle);
  edge.call.released = was.live;
  if (!was.live) was = {};
  if (told) publish_release(edge, given, was);
}
void release_failed(const Edge& edge, bool told) noexcept {
  const Arguments given = read_arguments(edge.row, edge.data.params, false);
  if (given.handle == 0) return;
  Handles::Known is;  // nothing, where it was dead before: then it stays so
  if (edge.call.released) edge.to.handles.back(class_of(edge.what()), given.handle);
  if (edge.call.released || edge.call.refused) is = known(edge, given);
  if (!is.live) is = {};
  if (told) publish_release(edge, given, is);
}

void make(const Edge& edge, bool told) noexcept {
  const bool returned = edge.result == 0;
  const Arguments given = read_arguments(edge.row, edge.data.params, returned);
  Handles::Known made;
  if (returned && given.handle != 0) {
    made = edge.to.handles.made(class_of(edge.what()), given.handle, given.bytes,
                                edge.data.context_uid);
    // The context's end is told without its number, so that is to be known also if nobody listens.
    (void)edge.to.contexts.device_of(edge.data.context_uid, edge.data.context,
                                     edge.to.cupti.device_id);
  }
  if (told) publish_made(edge, given, made.generation);
}

/// Begins and ends of contexts; resets are told at the entry.
void context_entry(const Edge& edge) noexcept {
  if (edge.what().change == ContextChange::made) return;
  edge.call.context_told = true;
  publish_context(edge, read_arguments(edge.row, edge.data.params, false));
}
void context_exit(const Edge& edge) noexcept {
  const bool made = edge.what().change == ContextChange::made;
  // What was not told before it was done, is not told to have failed either.
  if (edge.result == 0 ? !made || edge.call.context_told : !made && !edge.call.context_told) return;
  publish_context(edge, read_arguments(edge.row, edge.data.params, edge.result == 0));
}

void publish_capture(const Edge& edge) noexcept {
  const Arguments given = read_arguments(edge.row, edge.data.params, edge.result == 0);
  publish<Capture>(edge, [&](Capture& e) {
    e.stream = given.stream;
    e.graph = given.graph;
    e.step = edge.what().step;
  });
}

void after(const Edge& edge, bool told) noexcept {
  const CallKind kind = edge.what().kind;
  if (makes(kind)) return make(edge, told);
  if (releases(kind)) {
    if (edge.result != 0 && edge.result != kNoResult) release_failed(edge, told);
    return;
  }
  if (!told) return;
  if (synchronizes(kind)) return publish_synchronization(edge);
  if (kind == CallKind::context) return context_exit(edge);
  if (kind == CallKind::capture) return publish_capture(edge);
  const Arguments given = read_arguments(edge.row, edge.data.params, edge.result == 0);
  if (kind == CallKind::event_record) return publish_use<EventRecord>(edge, given);
  publish_use<EventWait>(edge, given);
}

}  // namespace

void on_entry(Attachment& to, Guard& guard, const abi::CallData& data) noexcept {
  CallUnderWay& call = guard.call();
  const CallKind kind = call.row->call.kind;
  const bool wanted = heard(to, kind);
  call.muted = !to.options.own && in_subscriber();
  if (call.muted && wanted) to.tally.add(Tally::suppressed);
  const bool told = wanted && !call.muted;
  Edge edge{to, guard, call, *call.row, data};
  call.told = told && (releases(kind) || synchronizes(kind));
  if (releases(kind)) return release(edge, told);
  if (!told) return;
  if (kind == CallKind::context) context_entry(edge);
  call.began_ns = now_ns();
  if (!synchronizes(kind)) return;
  edge.phase = Phase::begin;
  publish_synchronization(edge);
}

void on_exit(Attachment& to, Guard& guard, CallUnderWay& call, const abi::CallData& data) noexcept {
  const CallKind kind = call.row->call.kind;
  const bool begun = call.told || !(releases(kind) || synchronizes(kind));  // then it has an end
  const bool told = begun && !call.muted && heard(to, kind);
  Edge edge{to, guard, call, *call.row, data};
  if (data.result != nullptr) edge.result = *static_cast<const std::int32_t*>(data.result);
  if (edge.result != 0 && edge.result != kNoResult) {
    edge.phase = Phase::failed;
  } else if (synchronizes(kind)) {
    edge.phase = Phase::end;
  }
  if (told && call.began_ns != 0 && !(releases(kind))) edge.duration_ns = now_ns() - call.began_ns;
  after(edge, told);
}

void on_context(Attachment& to, Guard& guard, std::uint32_t cbid,
                const abi::ResourceData& data) noexcept {
  const bool made = cbid == abi::kContextCreated;
  const std::uint32_t number = made ? 0 : to.contexts.number_of(data.context);
  ContextEvent event;
  event.handle = reinterpret_cast<std::uintptr_t>(data.context);
  event.context = number;
  event.change = made ? ContextChange::made : ContextChange::destroyed;
  const bool wanted = to.channel<ContextEvent>().wanted();
  if (wanted) event.device = to.contexts.device_of(number, data.context, to.cupti.device_id);
  if (number != 0) {
    to.handles.context_gone(number);
    to.contexts.forget(number);
  }
  if (!wanted) return;
  event.thread = static_cast<std::int32_t>(run::this_tid());
  if (CallUnderWay* const now = guard.under_way(CallKind::context, to.hearer())) {
    CallUnderWay& call = *now;
    const Call& what = call.row->call;
    const bool same = what.kind == CallKind::context && what.change == event.change;
    if (call.muted || (same && call.context_told)) return;
    if (same) call.context_told = true;
    event.api = to.names[static_cast<std::size_t>(call.row - call_rows().data())];
    event.cbid = call.row->cbid;
    event.layer = layer_of(call);
    event.correlation = call.correlation;
  } else if (!to.options.own && in_subscriber()) {
    return to.tally.add(Tally::suppressed);
  }
  publish_made_by<ContextEvent>(to, guard, [&event]() noexcept { return event; });
}

}  // namespace ringmain::cuda
