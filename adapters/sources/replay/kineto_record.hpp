// What does one record of a Kineto trace say? Its fields as recorded, the known arguments by name.
#pragma once
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "adapters/sources/replay/kineto_options.hpp"

namespace ringmain::replay {

/// A process, thread or id: a number as it was written, or the characters of a string.
struct KinetoLabel {
  std::string_view text;
  std::int64_t number = 0;
  bool numeric = false;  // text reads as `number`
};

/// Arguments that something is done with. Texts are empty and numbers kAbsent where the record has
/// none, or has null, or something that is not such a value.
struct KinetoArgs {
  static constexpr std::int64_t kAbsent = std::numeric_limits<std::int64_t>::min();

  // of GPU work and of calls
  std::int64_t correlation = kAbsent;
  std::int64_t external_id = kAbsent;
  std::int64_t cbid = kAbsent;
  std::int64_t device = kAbsent;
  std::int64_t context = kAbsent;
  std::int64_t stream = kAbsent;
  std::int64_t bytes = kAbsent;
  // of cuda_sync
  std::int64_t wait_on_stream = kAbsent;
  std::int64_t wait_on_event = kAbsent;        // an id of Kineto's own
  std::int64_t wait_on_correlation = kAbsent;  // of the call that recorded that event
  // of [memory]
  std::int64_t address = kAbsent;
  std::int64_t device_type = kAbsent;  // 0 is the CPU
  std::int64_t device_id = kAbsent;
  std::int64_t allocated_bytes = kAbsent;
  std::int64_t reserved_bytes = kAbsent;
  // of record_param_comms, and in newer traces of the kernels that it led to
  std::string_view collective;
  std::string_view group;
  std::string_view dtype;
  std::int64_t in_elements = kAbsent;
  std::int64_t out_elements = kAbsent;
  std::int64_t group_size = kAbsent;
  std::int64_t rank = kAbsent;  // the caller's; of rooted collectives the root's
  std::int64_t source_rank = kAbsent;
  std::int64_t target_rank = kAbsent;
  std::int64_t sequence = kAbsent;
  bool asynchronous = false;
  std::string_view input_dims;   // JSON as written: [[19618307], []]
  std::string_view input_types;  // JSON as written: ["float", ""]
  // of metadata
  std::string_view value;  // of "name", "labels" or "sort_index"
};

/// One numeric argument of a counter record.
struct KinetoSeries {
  std::string_view name;
  double value = 0;
};

/// The views stay valid until the reader's next record.
struct KinetoRecord {
  std::uint64_t number = 0;  // 1 for the first of the file; skipped ones count
  char phase = '\0';         // X, i, s, f, C, M …
  bool has_time = false;     // metadata may come without
  std::string_view name;
  std::string_view category;
  KinetoLabel process;
  KinetoLabel thread;
  KinetoLabel id;          // of flows and async slices
  std::int64_t ts_ns = 0;  // as recorded, without baseTimeNanoseconds
  std::int64_t duration_ns = 0;
  KinetoArgs args;
  std::vector<KinetoSeries> series;  // of counters
};

}  // namespace ringmain::replay
