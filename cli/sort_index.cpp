#include "cli/sort_index.hpp"

#include <algorithm>
#include <utility>

#include "cli/each_line.hpp"

namespace ringmain::cli {
namespace {

std::string at_line(const Input& input, std::uint64_t number) {
  return input.name() + ", line " + std::to_string(number) + ": ";
}

}  // namespace

void LineIndex::refuse(const Input& input, std::uint64_t number, std::string_view why) {
  const std::string sentence = at_line(input, number) + "it is " + std::string(why);
  if (!leave_out_) {
    throw CannotSort(sentence + "; nothing was written (--skip-torn leaves such lines out)");
  }
  if (left_out_++ == 0) first_left_out_ = sentence;
}

std::uint32_t LineIndex::origin_of(const LineEvent& event, std::uint64_t where) {
  const auto next = static_cast<std::uint32_t>(origins_.size());
  const auto [found, is_new] = numbers_.try_emplace(event.origin, next);
  if (is_new) origins_.push_back({.first = where});
  Origin& origin = origins_[found->second];
  if (event.to_realtime_ns && !origin.known) {
    origin.known = true;
    origin.to_realtime_ns = *event.to_realtime_ns;
  }
  return found->second;
}

void LineIndex::read_line(const Input& input, std::uint64_t number, std::uint64_t at,
                          std::string_view line, bool ended) {
  if (is_blank(line)) return;
  const auto event = reader_.read(line);
  if (!event) {
    return refuse(input, number, ended ? reader_.fault() : kTorn);
  }
  const std::uint64_t where = inputs_ << kAtBits | at;
  if (runs_.empty() || runs_.back().size() == kRunLines) runs_.emplace_back();
  runs_.back().push_back(
      {event->time_ns, where, static_cast<std::uint32_t>(line.size()), origin_of(*event, where)});
  ++lines_;
}

void LineIndex::add(const Input& input) {
  if (input.bytes() >> kAtBits != 0) throw CannotSort(input.name() + " is longer than 256 TiB");
  std::uint64_t taken = 0;
  each_line(
      LineReader::padding(),
      [&](char* into, std::size_t most) {
        const std::size_t got = input.read(taken, into, most);
        taken += got;
        return got;
      },
      [&](const LinePlace& place, std::string_view line, bool ended) {
        read_line(input, place.number, place.at, line, ended);
      },
      [&](const LinePlace& place) { refuse(input, place.number, "longer than 64 MiB"); });
  ++inputs_;
}

std::string LineIndex::place_of(std::uint64_t where, const std::vector<Input>& inputs) {
  const Input& input = inputs[where >> kAtBits];
  return at_line(input, input.line_number(where & ((std::uint64_t{1} << kAtBits) - 1)));
}

void LineIndex::order(SortClock clock, const std::vector<Input>& inputs) {
  const bool compared = clock == SortClock::wall && origins_.size() > 1;
  for (const Origin& origin : origins_) {
    if (!compared || origin.known) continue;
    throw CannotSort(place_of(origin.first, inputs) +
                     "nothing says how its process's clock compares with others': its line with "
                     "\"origin_process\" is missing; give the file that has it, or say --clock "
                     "monotonic for processes of one host");
  }
  for (auto& run : runs_) {
    for (Place& place : run) {
      const std::int64_t more = compared ? origins_[place.origin].to_realtime_ns : 0;
      if (__builtin_add_overflow(place.time_ns, more, &place.time_ns)) {
        throw CannotSort(place_of(place.where, inputs) +
                         "its time of day is beyond what 64 bits can count");
      }
    }
    std::sort(run.begin(), run.end());
  }
}

}  // namespace ringmain::cli
