// What do all lines say together? Counts, times and sizes for each channel, operation, process and,
// if wished, step; which events are missing; which operations did not end.
//
// One pass, in bounded memory: what a file may hold any number of (operations, processes, steps,
// publishers, open operations) has a limit each, and what is beyond it is put together and counted.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cli/summary_line.hpp"
#include "cli/summary_sketch.hpp"

namespace ringmain::cli {

struct SummaryLimits {
  std::size_t kinds = 1 << 14;  // pairs of channel and operation
  std::size_t processes = 1 << 14;
  std::size_t cells = 1 << 16;  // kinds by process and step
  std::size_t publishers = 1 << 18;
  std::size_t operations = 1 << 18;     // issued and not ended, or the other way round
  std::size_t sketch_bytes = 64 << 20;  // above it all sketches are made coarser
};

struct SummaryKind {
  std::string channel, operation;
};

/// One origin: a process from its start, fork or exec on.
struct SummaryProcess {
  std::string origin, host, program, job;  // but for the first, as its first line says
  std::optional<std::int64_t> rank, pid;
  std::optional<std::int64_t> to_realtime_ns;
  std::uint64_t events = 0;
  std::int64_t first_ns = 0, last_ns = 0;
};

/// What lines have in common that belong together.
struct SummaryCell {
  std::uint64_t events = 0;
  std::vector<std::pair<std::uint32_t, Sketch>> measures;  // by number of their key
  void add(const SummaryCell& other);
  Sketch& measure(std::uint32_t key);
};

/// A publisher's sequence numbers, as far as they are in the files.
struct SummarySequence {
  std::uint32_t kind = 0, process = 0;
  std::uint64_t first = 0, last = 0, lines = 0, latest = 0;
  std::uint64_t backward = 0;  // lines that came with no higher number than the one before them
  /// Numbers that no line has.
  [[nodiscard]] std::uint64_t missing() const noexcept {
    const std::uint64_t all = last - first + 1;
    return all > lines ? all - lines : 0;
  }
};

struct SummaryOpen {
  std::uint32_t process = 0, kind = 0;  // of its issue
  std::uint64_t op_id = 0;
  std::int64_t time_ns = 0;
  bool ended = false;  // its end is known and its issue is not
};

class SummaryTable {
 public:
  static constexpr std::uint64_t kNoStep = ~std::uint64_t{0};
  /// Where a cell belongs: `step` is the first of step_width() steps, or kNoStep.
  struct Place {
    std::uint32_t kind = 0, process = 0;
    std::uint64_t step = kNoStep;
    friend bool operator==(const Place&, const Place&) = default;
  };
  struct PlaceHash {
    std::size_t operator()(const Place& place) const noexcept;
  };
  using Cells = std::unordered_map<Place, SummaryCell, PlaceHash>;

  explicit SummaryTable(bool by_step, SummaryLimits limits = {});
  void add(const SummaryLine& line);

  [[nodiscard]] std::uint64_t events() const noexcept { return events_; }
  [[nodiscard]] const std::vector<SummaryKind>& kinds() const noexcept { return kinds_; }
  [[nodiscard]] const std::vector<SummaryProcess>& processes() const noexcept { return processes_; }
  [[nodiscard]] const Cells& cells() const noexcept { return cells_; }
  /// The keys of measures, by their numbers.
  [[nodiscard]] const std::vector<std::string>& keys() const noexcept { return keys_; }
  [[nodiscard]] std::uint64_t step_width() const noexcept { return std::uint64_t{1} << widened_; }
  [[nodiscard]] unsigned coarser() const noexcept { return coarser_; }
  [[nodiscard]] std::vector<SummarySequence> sequences() const;
  /// The oldest first.
  [[nodiscard]] std::vector<SummaryOpen> open() const;
  /// Of bus.loss and of sources: by channel, what, and process.
  struct Told {
    std::string channel, what;
    std::uint32_t process = 0;
    friend auto operator<=>(const Told&, const Told&) = default;
  };
  [[nodiscard]] const std::map<Told, std::uint64_t>& told() const noexcept { return told_; }
  /// Lines that were put together with others because a limit was reached, by the limit.
  struct Beyond {
    std::uint64_t operations = 0, processes = 0, cells = 0, sequences = 0, pairs = 0;
  };
  [[nodiscard]] const Beyond& beyond() const noexcept { return beyond_; }

 private:
  using OpenKey = std::pair<std::uint32_t, std::uint64_t>;
  struct PairHash {
    std::size_t operator()(const OpenKey& key) const noexcept;
  };

  std::uint32_t kind_of(std::string_view channel, std::string_view operation);
  std::optional<std::uint32_t> kind_with_room(std::string_view channel, std::string_view operation,
                                              std::size_t room);
  std::uint32_t process_of(const SummaryLine& line);
  /// For lines that have no room elsewhere.
  std::uint32_t others();
  std::optional<std::uint32_t> key_of(std::string_view key);
  SummaryCell& cell_of(std::uint32_t kind, std::uint32_t process,
                       std::optional<std::uint64_t> step);
  void widen_steps();
  void measure(SummaryCell& cell, std::string_view key, std::uint64_t value);
  void follow_sequence(const SummaryLine& line, std::uint32_t kind, std::uint32_t process);
  void pair_up(const SummaryLine& line, std::uint32_t kind, std::uint32_t process);
  void note_losses(const SummaryLine& line, std::uint32_t process);

  const bool by_step_;
  const SummaryLimits limits_;
  std::uint64_t events_ = 0;
  std::vector<SummaryKind> kinds_;
  std::unordered_map<std::string, std::uint32_t> kind_numbers_;
  std::vector<SummaryProcess> processes_;
  std::unordered_map<std::uint64_t, std::uint32_t> process_numbers_;  // by origin
  std::optional<std::uint32_t> others_;
  std::vector<std::string> keys_;
  Cells cells_;
  std::unordered_map<OpenKey, SummarySequence, PairHash> sequences_;
  std::unordered_map<OpenKey, SummaryOpen, PairHash> open_;
  std::map<Told, std::uint64_t> told_;
  Beyond beyond_;
  std::string words_;  // for looking a kind up
  std::size_t sketch_bytes_ = 0;
  unsigned coarser_ = 0;
  unsigned widened_ = 0;
};

}  // namespace ringmain::cli
