// Which events does a recorded trace become? Each record becomes typed events, in the file's order.
//
//   call of one of the ten CUDA kinds    its cuda.* event, at its start, phase instant
//   annotation nccl:* outside the GPU    collective.issued, at its start
//   annotation gloo:*                    collective.issued and, at its end, collective.completed
//   NCCL kernel                          collective.started and, at its end, collective.completed
//   any other X, B, E, b, e, S, F        replay.slice
//   C                                    replay.counter, one per series
//   s, t, f                              replay.flow
//   M                                    replay.metadata
//   every other phase                    replay.instant
//
// In a trace without annotations record_param_comms takes their place. Of several kernels of one
// collective the first to begin starts it, the last to end completes it, others are slices.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "bus/text.hpp"

#include "events/collective.hpp"
#include "events/cuda.hpp"
#include "events/replay.hpp"

#include "adapters/sources/replay/kineto_calls.hpp"
#include "adapters/sources/replay/kineto_index.hpp"
#include "adapters/sources/replay/kineto_record.hpp"

namespace ringmain::replay {

using KinetoEvent =
    std::variant<cuda::EventCreation, cuda::EventDeletion, cuda::EventRecord, cuda::EventWait,
                 cuda::MemoryAllocation, cuda::MemoryDeallocation, cuda::StreamCreation,
                 cuda::DeviceSynchronization, cuda::StreamSynchronization,
                 cuda::EventSynchronization, collective::Issued, collective::Started,
                 collective::Completed, Slice, Instant, Counter, Flow, Metadata>;

struct KinetoMapped {
  KinetoEvent event;
  std::int64_t time_ns = 0;  // since the Unix epoch where the trace says its base, else as recorded
  std::uint8_t lane = 0;     // index into KinetoTrace::lanes()
};

/// The number of the operation that the event is about; nullptr where it is about none.
inline std::uint64_t* op_id_of(KinetoEvent& event) noexcept {
  return std::visit(
      [](auto& one) -> std::uint64_t* {
        if constexpr (requires { one.op_id; }) return &one.op_id;
        return nullptr;
      },
      event);
}

/// Threads: one at a time. Makes Names, which live in the process's table.
class KinetoMapper {
 public:
  /// `index` must outlive the mapper.
  explicit KinetoMapper(KinetoIndex& index) : index_(&index) {}

  /// The record's events, at least one, valid until the next call. Records come in the file's
  /// order.
  std::span<const KinetoMapped> map(const KinetoRecord& record);
  /// Before the first record.
  void begin();

 private:
  bool map_role(const KinetoRecord& record, KinetoSide side);
  void map_complete(const KinetoRecord& record);
  void map_slice(const KinetoRecord& record, Slice::Phase phase);
  void map_call(const KinetoRecord& record, KinetoSide side);
  void map_memory(const KinetoRecord& record, const cuda::Call& call, KinetoSide side);
  template <class E>
  E call_event(const KinetoRecord& record, KinetoSide side);
  void map_instant(const KinetoRecord& record);
  void map_counter(const KinetoRecord& record);
  void map_flow(const KinetoRecord& record, Flow::Phase phase);
  void give(const KinetoEvent& event) { give_at(event, time_ns_); }
  void give_at(const KinetoEvent& event, std::int64_t time_ns);
  Name name(std::string_view text);

  KinetoIndex* index_;
  KinetoLanes::Place place_;
  std::int64_t time_ns_ = 0;  // the record's, or of the last one that had any
  std::vector<KinetoMapped> made_;
  std::unordered_map<std::string_view, Name> names_;  // views of the Names themselves
};

}  // namespace ringmain::replay
