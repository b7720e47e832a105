// What does a flight recorder remember? The last operations of its groups, the oldest overwritten
// and counted, and of each group how far it came.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "adapters/sources/collective/communicator.hpp"

namespace ringmain::collective::detail {

struct FlightTensors {
  std::vector<std::vector<std::int64_t>> sizes;
  std::vector<Name> dtypes;
  void add(const Tensor& tensor);
};

enum class FlightState : std::uint8_t { scheduled, started, completed };

/// Times are nanoseconds: of the day (CLOCK_REALTIME) where not said otherwise.
struct FlightEntry {
  std::uint64_t record_id = 0;
  std::uint64_t op_id = 0;
  std::int64_t sequence = 0;
  std::int64_t transfer = 0;  // of sends and receives, their own count; else 0
  std::int64_t created_ns = 0;
  std::int64_t created_monotonic_ns = 0;
  std::int64_t started_ns = 0;    // 0: not said
  std::int64_t completed_ns = 0;  // 0: it has not completed
  std::int64_t duration_ns = 0;
  std::int64_t timeout_ms = 0;  // 0: not known
  std::size_t group = 0;        // of FlightSnapshot::groups
  Name op;
  std::int32_t from = kNoRank;  // of a send or a receive
  std::int32_t to = kNoRank;
  std::int32_t thread = 0;
  std::string thread_name;
  FlightTensors input, output;
  FlightState state = FlightState::scheduled;
  bool retired = false;  // its end was said, whether it completed or not
  bool is_p2p = false;
};

struct FlightGroup {
  std::string name, description, backend;
  std::vector<int> ranks;  // in the world; empty: not known
  std::int32_t rank = kNoRank, size = 0;
  std::int64_t enqueued = -1, started = -1, completed = -1;  // numbers of collectives
  std::int64_t transfers = 0;
  std::int64_t dropped = 0;      // entries of it that were overwritten
  std::int64_t whole_from = -1;  // the first collective from which on none was overwritten
};

struct FlightSnapshot {
  std::vector<FlightGroup> groups;
  std::deque<FlightEntry> entries;  // oldest first
};

/// Threads: any.
class FlightRing {
 public:
  explicit FlightRing(std::size_t max_entries) : capacity_(max_entries) {}
  /// It holds so many from here on, if they are more.
  void grow(std::size_t max_entries);
  /// Throws std::bad_alloc.
  void add_group(const CommunicatorCore& comm);
  void issued(const PreHookArgs& args, const CommunicatorCore& comm);
  void started(std::uint64_t op_id) noexcept;
  void ended(const CompletionHookArgs& args) noexcept;
  void reset() noexcept;
  [[nodiscard]] std::size_t size() const noexcept;
  [[nodiscard]] bool enabled() const noexcept;
  [[nodiscard]] FlightSnapshot copy() const;

  std::mutex writes_file;  // one file at a time

 private:
  struct Entries {  // of one operation: record ids
    std::uint64_t first, last;
  };
  std::size_t group_of(const CommunicatorCore& comm);
  void append(FlightEntry entry);
  void add_parts(const FlightEntry& of, const BatchOpIssue& batch, std::int32_t rank);
  void drop_oldest() noexcept;
  template <class F>
  void each_of(Entries which, F change) noexcept;

  mutable std::mutex mutex_;
  std::size_t capacity_;
  std::deque<FlightEntry> entries_;  // oldest first; their record ids have no holes
  std::uint64_t next_ = 0;           // record id
  std::vector<FlightGroup> groups_;
  std::unordered_map<std::uint64_t, std::size_t> group_by_name_;  // and by rank
  std::unordered_map<std::uint64_t, Entries> open_;               // by op_id
  bool enabled_ = false;
};

}  // namespace ringmain::collective::detail
