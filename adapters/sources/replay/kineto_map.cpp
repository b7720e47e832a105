#include "adapters/sources/replay/kineto_map.hpp"

#include <algorithm>
#include <limits>

#include "events/terms/collective_names.hpp"

#include "adapters/sources/replay/kineto_parse.hpp"

namespace ringmain::replay {
namespace {

/// Kineto writes 2^32 - 1 or -1 where no stream is meant.
std::uint64_t stream_of(std::int64_t recorded) {
  constexpr std::int64_t kNobody = 0xffffffff;
  return recorded < 0 || recorded == kNobody ? kNoStream : static_cast<std::uint64_t>(recorded);
}

std::uint64_t id_of(std::int64_t recorded) {
  return recorded == KinetoArgs::kAbsent ? 0 : static_cast<std::uint64_t>(recorded);
}

std::int64_t number_of(std::int64_t recorded) {
  return recorded == KinetoArgs::kAbsent ? 0 : recorded;
}

/// 0 for an operation that the trace does not show on a GPU.
std::int64_t queued_ns(const KinetoOperation& operation) {
  if (operation.kernels == 0) return 0;
  return std::max<std::int64_t>(operation.started_ns - operation.issued_ns, 0);  // two clocks
}

collective::Started started_of(const KinetoOperation& operation) {
  const collective::Issued& issued = operation.issued;
  collective::Started started;
  started.op_id = issued.op_id;
  started.sequence = issued.sequence;
  started.bytes = issued.bytes;
  started.correlation = issued.correlation;
  started.stream = issued.stream;
  started.queued_ns = queued_ns(operation);
  started.op = issued.op;
  started.group = issued.group;
  started.backend = issued.backend;
  started.kernel = operation.kernel;
  started.rank = issued.rank;
  started.group_size = issued.group_size;
  started.device = issued.device;
  started.source = issued.source;
  return started;
}

collective::Completed completed_of(const KinetoOperation& operation) {
  const collective::Issued& issued = operation.issued;
  collective::Completed completed;
  completed.op_id = issued.op_id;
  completed.sequence = issued.sequence;
  completed.bytes = issued.bytes;
  completed.correlation = issued.correlation;
  completed.stream = issued.stream;
  completed.queued_ns = queued_ns(operation);
  completed.duration_ns = operation.completed_ns - operation.started_ns;
  completed.op = issued.op;
  completed.group = issued.group;
  completed.dtype = issued.dtype;
  completed.backend = issued.backend;
  completed.kernel = operation.kernel;
  completed.rank = issued.rank;
  completed.group_size = issued.group_size;
  completed.device = issued.device;
  completed.kernels = operation.kernels;
  completed.source = issued.source;
  return completed;
}

std::uint64_t flow_id(const KinetoLabel& id) {
  std::int64_t number = id.number;
  if (id.numeric || parse_integer(id.text, number)) return static_cast<std::uint64_t>(number);
  std::uint64_t hash = 0xcbf29ce484222325ull;  // FNV-1a: equal words, equal ids
  for (const char c : id.text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  return id.text.empty() ? 0 : hash;
}

}  // namespace

Name KinetoMapper::name(std::string_view text) {
  if (text.empty()) return {};
  const auto known = names_.find(text);
  if (known != names_.end()) return known->second;
  const Name made(text);
  if (names_.size() < index_->names_max && made.view() == text) names_.emplace(made.view(), made);
  return made;
}

void KinetoMapper::begin() {
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  const std::int64_t base_ns = index_->header.base_ns;
  time_ns_ = index_->first_ns > kMax - base_ns ? kMax : index_->first_ns + base_ns;
}

void KinetoMapper::give_at(const KinetoEvent& event, std::int64_t time_ns) {
  made_.push_back({event, time_ns, place_.lane});
}

std::span<const KinetoMapped> KinetoMapper::map(const KinetoRecord& record) {
  made_.clear();
  place_ = index_->lanes.find(record);
  if (record.has_time) time_ns_ = record.ts_ns;
  switch (record.phase) {
    case 'X':
      map_complete(record);
      break;
    case 'B':
    case 'b':
    case 'S':
      map_slice(record, Slice::Phase::begin);
      break;
    case 'E':
    case 'e':
    case 'F':
      map_slice(record, Slice::Phase::end);
      break;
    case 's':
      map_flow(record, Flow::Phase::start);
      break;
    case 't':
      map_flow(record, Flow::Phase::step);
      break;
    case 'f':
      map_flow(record, Flow::Phase::end);
      break;
    case 'C':
      map_counter(record);
      break;
    case 'M':
      give(Metadata{name(record.name), name(record.args.value), place_.process, place_.thread});
      break;
    default:
      map_instant(record);
  }
  return made_;
}

void KinetoMapper::map_complete(const KinetoRecord& record) {
  const KinetoSide side = side_of(record.category);
  if (map_role(record, side)) return;
  if (is_call(side)) map_call(record, side);
  if (made_.empty()) map_slice(record, Slice::Phase::complete);
}

/// What the record says of a collective. False: nothing.
bool KinetoMapper::map_role(const KinetoRecord& record, KinetoSide side) {
  const KinetoRole role = index_->collectives.role_of(record.number);
  if (role.operation == nullptr) return false;
  const collective::Issued& issued = role.operation->issued;
  if (role.issues) give(issued);
  if (role.starts) give(started_of(*role.operation));
  const bool on_cpu = role.issues && issued.backend.view() == collective::kGloo;
  if (role.completes || on_cpu) {
    collective::Completed completed = completed_of(*role.operation);
    if (on_cpu) {
      completed.duration_ns = record.duration_ns;
      completed.thread = role.operation->issued.thread;
    }
    give_at(completed, time_ns_ + record.duration_ns);
  }
  return side != KinetoSide::gpu || role.starts || role.completes;
}

template <class E>
E KinetoMapper::call_event(const KinetoRecord& record, KinetoSide side) {
  E event;
  event.correlation = id_of(record.args.correlation);
  event.duration_ns = record.duration_ns;
  event.thread = static_cast<std::int32_t>(record.thread.number);
  event.api = name(record.name);
  event.cbid = static_cast<std::uint16_t>(std::clamp<std::int64_t>(record.args.cbid, 0, 65535));
  event.layer = side == KinetoSide::driver_call ? cuda::Layer::driver : cuda::Layer::runtime;
  event.device = device_number(record.args.device);
  if constexpr (requires { event.stream; }) event.stream = stream_of(record.args.stream);
  if (const KinetoSyncs::Sync* sync = index_->syncs.find(record.args.correlation)) {
    event.device = sync->device;
    event.context = static_cast<std::uint32_t>(id_of(sync->context));
    if constexpr (requires { event.stream; }) event.stream = stream_of(sync->stream);
    if constexpr (requires { event.event; }) event.event = id_of(sync->event);
  }
  return event;
}

void KinetoMapper::map_memory(const KinetoRecord& record, const cuda::Call& call, KinetoSide side) {
  const auto fill = [&](auto event) {
    event.address = id_of(record.args.address);
    event.bytes = static_cast<std::uint64_t>(std::max<std::int64_t>(record.args.bytes, 0));
    event.memory = call.memory;
    give(event);
  };
  if (call.kind == cuda::CallKind::memory_allocation)
    fill(call_event<cuda::MemoryAllocation>(record, side));
  else
    fill(call_event<cuda::MemoryDeallocation>(record, side));
}

void KinetoMapper::map_call(const KinetoRecord& record, KinetoSide side) {
  const cuda::Call call = call_of(record, side);
  switch (call.kind) {
    case cuda::CallKind::none:
    case cuda::CallKind::stream_deletion:
    case cuda::CallKind::context:
    case cuda::CallKind::capture:
      return;  // they stay slices
    case cuda::CallKind::event_creation:
      return give(call_event<cuda::EventCreation>(record, side));
    case cuda::CallKind::event_deletion:
      return give(call_event<cuda::EventDeletion>(record, side));
    case cuda::CallKind::event_record:
      return give(call_event<cuda::EventRecord>(record, side));
    case cuda::CallKind::event_wait:
      return give(call_event<cuda::EventWait>(record, side));
    case cuda::CallKind::memory_allocation:
    case cuda::CallKind::memory_deallocation:
      return map_memory(record, call, side);
    case cuda::CallKind::stream_creation:
      return give(call_event<cuda::StreamCreation>(record, side));
    case cuda::CallKind::device_synchronization:
      return give(call_event<cuda::DeviceSynchronization>(record, side));
    case cuda::CallKind::stream_synchronization:
      return give(call_event<cuda::StreamSynchronization>(record, side));
    case cuda::CallKind::event_synchronization:
      return give(call_event<cuda::EventSynchronization>(record, side));
  }
}

void KinetoMapper::map_slice(const KinetoRecord& record, Slice::Phase phase) {
  Slice slice;
  slice.duration_ns = record.duration_ns;
  slice.id = flow_id(record.id);
  slice.correlation = id_of(record.args.correlation);
  slice.external_id = id_of(record.args.external_id);
  slice.stream = stream_of(record.args.stream);
  slice.bytes = static_cast<std::uint64_t>(std::max<std::int64_t>(record.args.bytes, 0));
  slice.name = name(record.name);
  slice.category = name(record.category);
  slice.process = place_.process;
  slice.thread = place_.thread;
  slice.device = side_of(record.category) == KinetoSide::gpu ? device_of(record)
                                                             : device_number(record.args.device);
  slice.phase = phase;
  give(slice);
}

void KinetoMapper::map_instant(const KinetoRecord& record) {
  Instant instant;
  instant.address = id_of(record.args.address);
  instant.bytes = number_of(record.args.bytes);
  instant.allocated_bytes = number_of(record.args.allocated_bytes);
  instant.reserved_bytes = number_of(record.args.reserved_bytes);
  instant.name = name(record.name);
  instant.category = name(record.category);
  instant.process = place_.process;
  instant.thread = place_.thread;
  instant.letter = name({&record.phase, 1});
  if (record.args.device_type > 0) instant.device = device_number(record.args.device_id);
  give(instant);
}

void KinetoMapper::map_counter(const KinetoRecord& record) {
  Counter counter;
  counter.name = name(record.name);
  counter.category = name(record.category);
  counter.process = place_.process;
  counter.thread = place_.thread;
  if (record.series.empty()) give(counter);
  for (const KinetoSeries& series : record.series) {
    counter.series = name(series.name);
    counter.value = series.value;
    give(counter);
  }
}

void KinetoMapper::map_flow(const KinetoRecord& record, Flow::Phase phase) {
  give(Flow{flow_id(record.id), name(record.name), name(record.category), place_.process,
            place_.thread, phase});
}

}  // namespace ringmain::replay
