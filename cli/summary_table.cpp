#include "cli/summary_table.hpp"

#include <algorithm>
#include <array>
#include <tuple>

#include "bus/text.hpp"

namespace ringmain::cli {
namespace {

constexpr std::size_t kTextMax = 240;     // a longer name of an operation is cut
constexpr std::size_t kKeysMax = 256;     // of measures, in all
constexpr std::size_t kMeasuresMax = 12;  // of one cell
constexpr std::size_t kToldMax = 4096;
constexpr std::string_view kOthers = "(others)";

std::string cut(std::string_view text) {
  return std::string(text.substr(0, ringmain::detail::utf8_prefix(text, kTextMax)));
}

std::size_t mixed(std::uint64_t a, std::uint64_t b) noexcept {
  std::uint64_t x = a * 0x9e3779b97f4a7c15ull + b;
  x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93ull;
  return static_cast<std::size_t>(x ^ (x >> 32));
}

std::string in_hexadecimal(std::uint64_t origin) {
  std::string text(16, '0');
  for (std::size_t i = 16; i > 0; --i, origin >>= 4) text[i - 1] = "0123456789abcdef"[origin & 15];
  return text;
}

}  // namespace

void SummaryCell::add(const SummaryCell& other) {
  events += other.events;
  for (const auto& [key, sketch] : other.measures) measure(key).add(sketch);
}

Sketch& SummaryCell::measure(std::uint32_t key) {
  for (auto& [number, sketch] : measures) {
    if (number == key) return sketch;
  }
  return measures.emplace_back(key, Sketch{}).second;
}

std::size_t SummaryTable::PlaceHash::operator()(const Place& place) const noexcept {
  return mixed(std::uint64_t{place.kind} << 32 | place.process, place.step);
}
std::size_t SummaryTable::PairHash::operator()(const OpenKey& key) const noexcept {
  return mixed(key.first, key.second);
}

SummaryTable::SummaryTable(bool by_step, SummaryLimits limits)
    : by_step_(by_step), limits_(limits) {}

std::optional<std::uint32_t> SummaryTable::kind_with_room(std::string_view channel,
                                                          std::string_view operation,
                                                          std::size_t room) {
  words_.assign(channel).append(1, '\0').append(operation);
  const auto found = kind_numbers_.find(words_);
  if (found != kind_numbers_.end()) return found->second;
  if (kinds_.size() >= room) return std::nullopt;
  const auto next = static_cast<std::uint32_t>(kinds_.size());
  kinds_.push_back({std::string(channel), std::string(operation)});
  kind_numbers_.emplace(words_, next);
  return next;
}

std::uint32_t SummaryTable::kind_of(std::string_view channel, std::string_view operation) {
  channel = channel.substr(0, ringmain::detail::utf8_prefix(channel, kTextMax));
  operation = operation.substr(0, ringmain::detail::utf8_prefix(operation, kTextMax));
  if (const auto kind = kind_with_room(channel, operation, limits_.kinds)) return *kind;
  ++beyond_.operations;
  // Room for as many channels of which only the sum is told, and for one for all the rest.
  if (const auto kind = kind_with_room(channel, kOthers, 2 * limits_.kinds)) return *kind;
  return *kind_with_room(kOthers, "", 2 * limits_.kinds + 1);
}

std::uint32_t SummaryTable::others() {
  if (!others_) {
    others_ = static_cast<std::uint32_t>(processes_.size());
    processes_.emplace_back();
    processes_.back().origin = kOthers;
  }
  return *others_;
}

std::uint32_t SummaryTable::process_of(const SummaryLine& line) {
  const auto next = static_cast<std::uint32_t>(processes_.size());
  auto found = process_numbers_.find(line.event.origin);
  if (found == process_numbers_.end()) {
    if (process_numbers_.size() >= limits_.processes) {
      ++beyond_.processes;
      return others();
    }
    found = process_numbers_.emplace(line.event.origin, next).first;
    processes_.emplace_back();
    processes_.back().origin = in_hexadecimal(line.event.origin);
  }
  SummaryProcess& process = processes_[found->second];
  if (line.process && !process.to_realtime_ns) {
    process.rank = line.process->rank;
    process.pid = line.process->pid;
    process.host = cut(line.process->host);
    process.program = cut(line.process->program);
    process.job = cut(line.process->job);
    process.to_realtime_ns = line.event.to_realtime_ns;
  }
  const std::int64_t at = line.event.time_ns;
  process.first_ns = process.events == 0 ? at : std::min(process.first_ns, at);
  process.last_ns = process.events == 0 ? at : std::max(process.last_ns, at);
  ++process.events;
  return found->second;
}

std::optional<std::uint32_t> SummaryTable::key_of(std::string_view key) {
  const auto found = std::find(keys_.begin(), keys_.end(), key);
  if (found != keys_.end()) return static_cast<std::uint32_t>(found - keys_.begin());
  if (keys_.size() >= kKeysMax || key.size() > kTextMax) return std::nullopt;
  keys_.emplace_back(key);
  return static_cast<std::uint32_t>(keys_.size() - 1);
}

/// Two steps become one, and so on, until there is room.
void SummaryTable::widen_steps() {
  ++widened_;
  Cells wider;
  for (auto& [place, cell] : cells_) {
    Place to = place;
    if (to.step != kNoStep) to.step &= ~(step_width() - 1);
    const auto [there, is_new] = wider.try_emplace(to);
    if (is_new) {
      there->second = std::move(cell);
    } else {
      there->second.add(cell);
    }
  }
  cells_ = std::move(wider);
  sketch_bytes_ = 0;
  for (const auto& [place, cell] : cells_) {
    for (const auto& [key, sketch] : cell.measures) sketch_bytes_ += sketch.bytes();
  }
}

SummaryCell& SummaryTable::cell_of(std::uint32_t kind, std::uint32_t process,
                                   std::optional<std::uint64_t> step) {
  Place place{kind, process, kNoStep};
  const auto step_now = [&] {
    if (by_step_ && step && *step != kNoStep) place.step = *step & ~(step_width() - 1);
  };
  step_now();
  auto found = cells_.find(place);
  if (found != cells_.end()) return found->second;
  while (cells_.size() >= limits_.cells && place.step != kNoStep && widened_ < 62) {
    widen_steps();
    step_now();
  }
  if (cells_.size() >= limits_.cells && !cells_.contains(place)) {
    ++beyond_.cells;
    place = {kind, others(), kNoStep};  // at most as many as there are kinds
  }
  return cells_[place];
}

void SummaryTable::measure(SummaryCell& cell, std::string_view key, std::uint64_t value) {
  const auto number = key_of(key);
  if (!number) return;
  const bool has = std::any_of(cell.measures.begin(), cell.measures.end(),
                               [&](const auto& one) { return one.first == *number; });
  if (!has && cell.measures.size() >= kMeasuresMax) return;
  Sketch& sketch = cell.measure(*number);
  const std::size_t before = sketch.bytes();
  sketch.add(value, coarser_);
  sketch_bytes_ += sketch.bytes() - before;
  if (sketch_bytes_ <= limits_.sketch_bytes || coarser_ == Sketch::kBits) return;
  ++coarser_;
  sketch_bytes_ = 0;
  for (auto& [place, one] : cells_) {
    for (auto& [k, all] : one.measures) {
      all.coarsen();
      sketch_bytes_ += all.bytes();
    }
  }
}

void SummaryTable::follow_sequence(const SummaryLine& line, std::uint32_t kind,
                                   std::uint32_t process) {
  if (!line.publisher || !line.sequence || *line.sequence == 0) return;
  const OpenKey key{process, *line.publisher};
  auto found = sequences_.find(key);
  if (found == sequences_.end()) {
    if (sequences_.size() >= limits_.publishers) {
      ++beyond_.sequences;
      return;
    }
    found = sequences_.emplace(key, SummarySequence{kind, process, *line.sequence}).first;
  }
  SummarySequence& sequence = found->second;
  if (*line.sequence <= sequence.latest) ++sequence.backward;
  sequence.latest = *line.sequence;
  sequence.first = std::min(sequence.first, *line.sequence);
  sequence.last = std::max(sequence.last, *line.sequence);
  ++sequence.lines;
}

/// The line of an operation's end may stand in front of that of its issue: they have other
/// publishers.
void SummaryTable::pair_up(const SummaryLine& line, std::uint32_t kind, std::uint32_t process) {
  const bool issued = line.channel == "collective.issued";
  const bool ended = line.channel == "collective.completed" || line.channel == "collective.failed";
  if ((!issued && !ended) || !line.op_id || *line.op_id == 0) return;
  const OpenKey key{process, *line.op_id};
  const auto found = open_.find(key);
  if (found == open_.end()) {
    if (open_.size() >= limits_.operations) {
      ++beyond_.pairs;
      return;
    }
    open_.emplace(key, SummaryOpen{process, kind, *line.op_id, line.event.time_ns, ended});
    return;
  }
  if (found->second.ended == ended) return;  // the same event again
  const std::int64_t from = ended ? found->second.time_ns : line.event.time_ns;
  const std::int64_t to = ended ? line.event.time_ns : found->second.time_ns;
  std::int64_t took = 0;
  const std::uint32_t of = ended ? kind : found->second.kind;
  if (!__builtin_sub_overflow(to, from, &took) && took > 0) {
    measure(cell_of(of, process, line.step), "since_issued_ns", static_cast<std::uint64_t>(took));
  }
  open_.erase(found);
}

void SummaryTable::note_losses(const SummaryLine& line, std::uint32_t process) {
  for (const LineFigure& lost : line.losses.all()) {
    const Told key{cut(line.lost_of), std::string(lost.key), process};
    if (told_.size() >= kToldMax && !told_.contains(key)) continue;
    std::uint64_t& sum = told_[key];
    // A notice of the bus is of new losses, a source's word of all since it began.
    sum = line.channel == "bus.loss" ? sum + lost.value : std::max(sum, lost.value);
  }
}

void SummaryTable::add(const SummaryLine& line) {
  ++events_;
  const std::uint32_t kind = kind_of(line.channel, line.operation);
  const std::uint32_t process = process_of(line);
  SummaryCell& cell = cell_of(kind, process, line.step);
  ++cell.events;
  for (const LineFigure& one : line.measures.all()) measure(cell, one.key, one.value);
  follow_sequence(line, kind, process);
  pair_up(line, kind, process);
  note_losses(line, process);
}

std::vector<SummarySequence> SummaryTable::sequences() const {
  std::vector<SummarySequence> all;
  all.reserve(sequences_.size());
  for (const auto& [key, sequence] : sequences_) all.push_back(sequence);
  return all;
}

std::vector<SummaryOpen> SummaryTable::open() const {
  std::vector<SummaryOpen> all;
  for (const auto& [key, one] : open_) {
    if (!one.ended) all.push_back(one);
  }
  std::sort(all.begin(), all.end(), [](const SummaryOpen& a, const SummaryOpen& b) {
    return std::tie(a.time_ns, a.process, a.op_id) < std::tie(b.time_ns, b.process, b.op_id);
  });
  return all;
}

}  // namespace ringmain::cli
