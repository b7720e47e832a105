// What does a flight recorder remember? The last operations of its groups, the oldest overwritten
// and counted, and of each group how far it came.
//
// All of it lies in memory that is taken beforehand: recording allocates for the first operation of
// a group that nobody registered (a part of a split) and never else, and a dump allocates nothing.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <tuple>
#include <unordered_map>

#include "engine/system/fork.hpp"

#include "bus/result.hpp"

#include "adapters/sources/collective/communicator.hpp"
#include "adapters/sources/collective/flight_recorder_copy.hpp"
#include "adapters/sources/collective/flight_recorder_open.hpp"
#include "adapters/sources/collective/single_flight.hpp"

namespace ringmain::collective::detail {

using flight::FlightState;
using flight::FlightTensors;

/// Threads: any.
class FlightRing {
 public:
  /// Throws std::bad_alloc.
  explicit FlightRing(std::size_t max_entries);
  /// It holds so many from here on, if they are more. Throws std::bad_alloc.
  void grow(std::size_t max_entries);
  /// Throws std::bad_alloc.
  void add_group(const CommunicatorCore& comm);
  /// Throws std::bad_alloc, in which case nothing of it is there.
  void issued(const PreHookArgs& args, const CommunicatorCore& comm);
  void started(std::uint64_t op_id) noexcept;
  void ended(const CompletionHookArgs& args) noexcept;
  void reset() noexcept;
  [[nodiscard]] std::size_t size() const noexcept;
  [[nodiscard]] bool enabled() const noexcept;
  /// This process's, as its largest group says it; -1: it has none.
  [[nodiscard]] std::int64_t rank_in_the_world() const noexcept;
  /// In memory of its own. Throws std::bad_alloc.
  [[nodiscard]] std::unique_ptr<FlightCopy> copy() const;
  /// In the memory that is there for it: with writes_file held, until which is let go it is good.
  [[nodiscard]] std::shared_ptr<FlightCopy> copy_for_file() noexcept;

  /// By path, prefix of names and whether completed ones are in it: calls for the same file.
  using File = std::tuple<std::string, std::string, bool>;
  SingleFlight<File, Result<std::string>> files;
  /// One file at a time. It may take as long as the file system does.
  engine::FreshMutex writes_file{engine::kForkFlight};

 private:
  /// What holds the operations.
  struct Room {
    explicit Room(std::size_t max_entries);
    std::size_t entry_count, word_count;
    std::unique_ptr<FlightEntry[]> entries;  // by record id
    std::unique_ptr<std::int64_t[]> words;   // sizes and types of their tensors
    OpenOperations open;
    std::shared_ptr<FlightCopy> for_file;
  };
  struct End {
    std::uint64_t op_id = 0;
    bool completed = false;
    std::int64_t time_of_day_ns = 0, ns = 0, duration_ns = 0;
  };
  std::size_t group_of(const CommunicatorCore& comm);
  [[nodiscard]] FlightEntry& entry(std::uint64_t record_id) const noexcept {
    return room_->entries[record_id % room_->entry_count];
  }
  void append(FlightEntry made, Tensors input, Tensors output) noexcept;
  void add_parts(const FlightEntry& of, const BatchOpIssue& batch, std::int32_t rank) noexcept;
  void drop_oldest() noexcept;
  void move_to(Room& room) noexcept;
  void copy_to(FlightCopy& copy) const noexcept;
  void start(OpenOperations::Records which) noexcept;
  void end(OpenOperations::Records which, const End& said) noexcept;
  template <class F>
  void each_of(OpenOperations::Records which, F change) noexcept;

  // Inside of a ledger's, outside of the names'.
  mutable engine::ForkMutex mutex_{engine::kForkBus};
  std::unique_ptr<Room> room_;
  std::uint64_t first_ = 0, next_ = 0;  // record ids of what is there, which have no holes
  std::uint64_t next_word_ = 0;         // counts on over the end of the words
  Grown<FlightGroup> groups_;
  std::size_t group_count_ = 0;
  std::unordered_map<std::uint64_t, std::size_t> group_by_name_;  // and by rank
  // The last ends of what is not there: who hears that an operation is issued may end it before the
  // recorder's hook is asked.
  std::array<End, 64> early_{};
  std::size_t early_at_ = 0;
  bool enabled_ = false;
};

}  // namespace ringmain::collective::detail
