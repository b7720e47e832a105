// What did each thread of a process publish last? The file of a flight recorder
// (docs/flight-ring.md) with its records as events: their types, names and channels from the file
// alone.
//
// Who wrote the file may have been anybody: what does not fit together is counted as undecoded.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/flight/ring_reader.hpp"

#include "bus/bus.hpp"

namespace ringmain::flight {

/// One record. Its views live as long as the RingDump.
struct RecordedEvent {
  std::string_view channel, thread_name;
  std::uint32_t thread = 0;        // 0: not known
  const Schema* schema = nullptr;  // nullptr: its type is not in the file
  const std::byte* event = nullptr;
  std::size_t bytes = 0;
  Stamp stamp;
  PublishCode code = PublishCode::accepted;

  [[nodiscard]] EventView view() const noexcept { return {channel, *schema, event, stamp}; }
};

struct RecordedRing {
  std::string pattern;
  bool ended = false;  // its last thread has ended
  std::uint64_t written = 0, overwritten = 0, unreadable = 0;
  std::uint64_t missed = 0;           // of signal handlers in signal handlers
  std::uint64_t under_way = 0;        // begun, and not whole
  std::vector<RecordedEvent> events;  // readable; by time
};

/// One that was asked for.
struct RecordedPattern {
  std::string_view pattern;
  std::uint64_t channels = 0;  // that went by it
  std::uint64_t rings = 0;     // of threads that recorded by it
};

/// It was issued and had not ended.
struct OpenCollective {
  std::string_view op, group, thread_name;
  std::uint64_t id = 0, sequence = 0, bytes = 0;
  std::int64_t time_ns = 0;
  std::uint32_t thread = 0;
};

/// Of a group's operations, the oldest sequence of which the rings still have the beginning, and
/// the youngest.
struct GroupMarks {
  std::uint64_t low = 0, high = 0, records = 0;
};

class RingDump {
 public:
  /// An Error with one sentence: it is no such file, it holds more than `bytes_max`, or nothing of
  /// it can be read. Throws std::bad_alloc.
  [[nodiscard]] static Result<RingDump> read(
      const std::string& path, std::uint64_t bytes_max = engine::flight::kAllThatIsRecorded);

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] const engine::flight::FlightRead& file() const noexcept { return file_; }
  [[nodiscard]] const std::vector<RecordedRing>& rings() const noexcept { return rings_; }
  /// In the order in which they are tried.
  [[nodiscard]] const std::vector<RecordedPattern>& patterns() const noexcept { return patterns_; }
  [[nodiscard]] const std::vector<OpenCollective>& open() const noexcept { return open_; }
  [[nodiscard]] const std::map<std::string, GroupMarks>& groups() const noexcept { return groups_; }
  /// The time of the youngest record or open operation, CLOCK_MONOTONIC; 0: there is none.
  [[nodiscard]] std::int64_t last_ns() const noexcept { return last_ns_; }
  /// What CLOCK_REALTIME said at that time of CLOCK_MONOTONIC, by the nearest pair of clocks; 0:
  /// not known.
  [[nodiscard]] std::int64_t realtime_of(std::int64_t monotonic_ns) const noexcept;

 private:
  using TextRead = engine::flight::TextRead;
  void index();
  void decode_rings();
  void decode(const engine::flight::TrackRead& track, RecordedRing& to);
  void decode_operations();
  void count_patterns();
  void mark_groups();
  [[nodiscard]] const TextRead* text(engine::flight::TextKind kind, std::uint64_t id) const;
  [[nodiscard]] const Schema* schema_with(std::uint64_t hash);
  [[nodiscard]] Name name_with(std::uint32_t id);
  void name_thread(std::uint64_t source, std::string_view& name, std::uint32_t& thread) const;

  std::string path_;
  engine::flight::FlightRead file_;
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::size_t> text_;
  std::map<std::uint64_t, const Schema*> schemas_;
  std::map<std::uint32_t, Name> names_;
  std::vector<std::unique_ptr<std::byte[]>> events_;  // with this process's Names in them
  std::vector<RecordedRing> rings_;
  std::vector<RecordedPattern> patterns_;
  std::vector<OpenCollective> open_;
  std::map<std::string, GroupMarks> groups_;
  std::int64_t last_ns_ = 0;
};

}  // namespace ringmain::flight
