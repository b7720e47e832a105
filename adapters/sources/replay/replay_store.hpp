// How are a trace's events put into the order of time, whatever its size?
//
// An external merge sort: events are gathered until they reach the bound, sorted, and written to an
// unlinked file as one run; reading merges the runs. What fits is never written. Events of the same
// time keep the order of the file.
#pragma once
#include <cstdint>
#include <optional>
#include <queue>
#include <string>
#include <type_traits>
#include <vector>

#include "bus/result.hpp"

#include "adapters/sources/replay/kineto_trace.hpp"

namespace ringmain::replay {

static_assert(std::is_trivially_copyable_v<KinetoMapped>);

/// Threads: one at a time; after sort(), any number of readers.
class ReplayStore {
 public:
  explicit ReplayStore(std::uint64_t bytes_max);
  ReplayStore(ReplayStore&& other) noexcept;
  ReplayStore& operator=(ReplayStore&& other) noexcept;
  ~ReplayStore();

  /// An Error when the temporary file cannot be written.
  std::optional<Error> add(const KinetoMapped& event);
  /// After the last add().
  std::optional<Error> sort();

  [[nodiscard]] std::uint64_t size() const noexcept { return events_; }
  [[nodiscard]] std::uint64_t spilled_bytes() const noexcept { return file_bytes_; }

  /// Gives the events in order. The store must outlive it and not change.
  class Reader {
   public:
    explicit Reader(const ReplayStore& store);
    /// The next event; false after the last. An Error when the temporary file cannot be read.
    Result<bool> next(KinetoMapped& event);

   private:
    struct Cursor {  // of one run in the file
      std::uint64_t at = 0;
      std::uint64_t end = 0;
      std::vector<KinetoMapped> room;
      std::size_t used = 0;
    };
    struct Head {
      std::int64_t time_ns;
      std::size_t run;
      friend bool operator>(const Head& a, const Head& b) noexcept {
        return a.time_ns != b.time_ns ? a.time_ns > b.time_ns : a.run > b.run;
      }
    };
    Result<bool> fill(std::size_t run);

    const ReplayStore* store_;
    std::size_t room_events_ = 0;
    std::vector<Cursor> cursors_;
    std::priority_queue<Head, std::vector<Head>, std::greater<>> heads_;
    std::size_t in_memory_at_ = 0;
    std::optional<Error> failed_;
  };

 private:
  static constexpr std::size_t kBlockEvents = 4096;
  struct Key {
    std::int64_t time_ns;
    std::uint32_t index;
  };
  struct Run {
    std::uint64_t begin;  // events from the start of the file
    std::uint64_t end;
  };
  void sort_keys();
  std::optional<Error> spill();
  std::optional<Error> open_file();
  [[nodiscard]] const KinetoMapped& held(std::uint32_t index) const noexcept {
    return blocks_[index / kBlockEvents][index % kBlockEvents];
  }

  std::uint64_t bytes_max_;
  std::size_t held_max_;
  std::vector<std::vector<KinetoMapped>> blocks_;  // what is not in the file
  std::vector<Key> keys_;
  std::uint64_t events_ = 0;
  std::vector<Run> runs_;
  std::uint64_t file_bytes_ = 0;
  std::string folder_;
  int file_ = -1;
};

}  // namespace ringmain::replay
