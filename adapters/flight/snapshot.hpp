// What did a recorder of collective operations hold, and how is a dump made of it?
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "bus/text.hpp"

#include "events/collective.hpp"

#include "adapters/flight/document_stream.hpp"

namespace ringmain::flight {

/// Where the sizes and types of tensors lie (tensor_runs.hpp) in a row that may begin anew at its
/// end: word `from` modulo its length, and no run goes over the end.
struct FlightTensors {
  std::uint64_t from = 0;
  std::uint32_t words = 0;
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
  std::size_t group = 0;        // of FlightSource
  FlightTensors input, output;
  Name op;
  std::int32_t from = collective::kNoRank;  // of a send or a receive
  std::int32_t to = collective::kNoRank;
  std::int32_t thread = 0;
  Text<32> thread_name;
  FlightState state = FlightState::scheduled;
  bool retired = false;  // its end was said, whether it completed or not
  bool is_p2p = false;
};
static_assert(std::is_trivially_copyable_v<FlightEntry>);

/// How far a group came: numbers of collectives, and counts.
struct FlightFigures {
  std::int64_t enqueued = -1, started = -1, completed = -1;
  std::int64_t transfers = 0;
  std::int64_t dropped = 0;      // entries of it that were overwritten
  std::int64_t whole_from = -1;  // the first collective from which on none was overwritten
};

struct FlightGroup {
  std::string name, description, backend;
  std::vector<int> ranks;  // in the world; empty: not known
  std::int32_t rank = collective::kNoRank, size = 0;
  FlightFigures figures;
};

/// What a dump is written of.
class FlightSource {
 public:
  [[nodiscard]] virtual std::size_t groups() const noexcept = 0;
  [[nodiscard]] virtual const FlightGroup& group(std::size_t at) const noexcept = 0;
  /// Of that group, at the moment that is told.
  [[nodiscard]] virtual const FlightFigures& figures(std::size_t at) const noexcept = 0;
  [[nodiscard]] virtual std::size_t entries() const noexcept = 0;
  [[nodiscard]] virtual const FlightEntry& entry(
      std::size_t at) const noexcept = 0;  // oldest first
  [[nodiscard]] virtual std::span<const std::int64_t> words() const noexcept = 0;

  [[nodiscard]] std::span<const std::int64_t> runs(const FlightTensors& tensors) const noexcept {
    if (tensors.words == 0) return {};
    return words().subspan(tensors.from % words().size(), tensors.words);
  }

 protected:
  ~FlightSource() = default;
};

struct FlightSnapshot {
  std::vector<FlightGroup> groups;
  std::vector<FlightEntry> entries;  // oldest first
  std::vector<std::int64_t> words;
};

struct FlightDump {
  DumpFormat format = DumpFormat::json;
  /// Of the names that are written, in place of each group's; "": each group's.
  std::string_view backend{};
  std::int64_t rank = -1;
  bool include_completed = true;
};
/// Allocates nothing; throws what the sink does.
void write_flight_dump(const FlightSource& what, const FlightDump& how, ByteSink& to,
                       PickleMemo& memo);
/// Throws std::bad_alloc.
[[nodiscard]] std::string write_flight_dump(const FlightSource& what, const FlightDump& how);
[[nodiscard]] std::string write_flight_dump(const FlightSnapshot& what, const FlightDump& how);

}  // namespace ringmain::flight
