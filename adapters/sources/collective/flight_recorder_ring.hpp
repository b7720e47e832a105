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

#include "engine/system/fork.hpp"

#include "adapters/flight/snapshot.hpp"
#include "adapters/sources/collective/communicator.hpp"

namespace ringmain::collective::detail {

using flight::FlightEntry;
using flight::FlightGroup;
using flight::FlightSnapshot;
using flight::FlightState;
using flight::FlightTensors;

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
  void forget_from(std::uint64_t first) noexcept;
  template <class F>
  void each_of(Entries which, F change) noexcept;

  // Inside of a ledger's, outside of the names'.
  mutable engine::ForkMutex mutex_{engine::kForkBus};
  std::size_t capacity_;
  std::deque<FlightEntry> entries_;  // oldest first; their record ids have no holes
  std::uint64_t next_ = 0;           // record id
  std::vector<FlightGroup> groups_;
  std::unordered_map<std::uint64_t, std::size_t> group_by_name_;  // and by rank
  std::unordered_map<std::uint64_t, Entries> open_;               // by op_id
  bool enabled_ = false;
};

}  // namespace ringmain::collective::detail
