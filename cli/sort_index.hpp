// In which order do the lines of several files belong? An index has each line's place and its
// event's time: 24 bytes per line, without the text.
#pragma once
#include <algorithm>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "cli/sort_event.hpp"
#include "cli/sort_input.hpp"

namespace ringmain::cli {

/// How times of several processes are compared.
enum class SortClock { wall, monotonic };

class LineIndex {
 public:
  /// Lines that are no events are left out and counted; otherwise the first of them is refused.
  explicit LineIndex(bool leave_out) : leave_out_(leave_out) {}

  /// Reads all of `input`; order() gets it again, in the place of its number. Throws CannotSort.
  void add(const Input& input);
  /// After the last add(). Throws CannotSort if no line tells a process's clocks.
  void order(SortClock clock, const std::vector<Input>& inputs);

  struct Line {
    std::uint32_t input;
    std::uint32_t length;  // without the line's end
    std::uint64_t at;
  };
  /// Calls `take(line)` for each in its order: by time, then as they came.
  template <class Take>
  void each(Take&& take);

  [[nodiscard]] std::uint64_t lines() const noexcept { return lines_; }
  [[nodiscard]] std::size_t processes() const noexcept { return origins_.size(); }
  [[nodiscard]] std::uint64_t left_out() const noexcept { return left_out_; }
  [[nodiscard]] const std::string& first_left_out() const noexcept { return first_left_out_; }

  static constexpr std::size_t kInputsMax = 1 << 16;

 private:
  static constexpr unsigned kAtBits = 48;
  static constexpr std::size_t kRunLines = 1 << 16;  // sorted together, then merged

  struct Place {
    std::int64_t time_ns;
    std::uint64_t where;  // input and offset: the order in which they came
    std::uint32_t length;
    std::uint32_t origin;

    friend bool operator<(const Place& a, const Place& b) noexcept {
      return a.time_ns != b.time_ns ? a.time_ns < b.time_ns : a.where < b.where;
    }
  };
  static_assert(sizeof(Place) == 24);

  struct Origin {
    bool known = false;
    std::int64_t to_realtime_ns = 0;
    std::uint64_t first;  // its first line, for a sentence
  };

  void read_line(const Input& input, std::uint64_t number, std::uint64_t at, std::string_view line,
                 bool ended);
  void refuse(const Input& input, std::uint64_t number, std::string_view why);
  std::uint32_t origin_of(const LineEvent& event, std::uint64_t where);
  [[nodiscard]] static std::string place_of(std::uint64_t where, const std::vector<Input>& inputs);

  const bool leave_out_;
  LineReader reader_;
  std::vector<std::vector<Place>> runs_;
  std::unordered_map<std::uint64_t, std::uint32_t> numbers_;  // of origins
  std::vector<Origin> origins_;
  std::uint64_t inputs_ = 0;
  std::uint64_t lines_ = 0;
  std::uint64_t left_out_ = 0;
  std::string first_left_out_;
};

template <class Take>
void LineIndex::each(Take&& take) {
  struct Next {
    std::size_t run, at;
  };
  const auto later = [this](const Next& a, const Next& b) {
    return runs_[b.run][b.at] < runs_[a.run][a.at];
  };
  std::vector<Next> heap;
  for (std::size_t run = 0; run < runs_.size(); ++run) heap.push_back({run, 0});
  std::make_heap(heap.begin(), heap.end(), later);
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), later);
    Next& next = heap.back();
    const Place& place = runs_[next.run][next.at];
    take(Line{static_cast<std::uint32_t>(place.where >> kAtBits), place.length,
              place.where & ((std::uint64_t{1} << kAtBits) - 1)});
    if (++next.at < runs_[next.run].size()) {
      std::push_heap(heap.begin(), heap.end(), later);
    } else {
      heap.pop_back();
    }
  }
}

}  // namespace ringmain::cli
