// What goes through right now? Counts events by channel and writes a line of them every so often.
//
//   summary: 41203 events, 20511/s: replay.slice 38551, replay.flow 2652
#pragma once
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "../../bus/bus.hpp"

#include "../provider.hpp"

namespace ringmain::sinks {

class Summary final : public registry::Sink, public registry::Periodic {
 public:
  struct Line {
    std::string channel;
    std::uint64_t events = 0;
  };

  static registry::Provider provider() {
    return registry::sink_provider<Summary>(
        {.summary = "a line of figures per second on standard error"});
  }
  static Result<std::unique_ptr<Summary>> open(std::string_view) {
    return std::make_unique<Summary>(stderr);
  }
  /// Writes a line every `period` in which there were events, and one at the end. nullptr: only
  /// counts.
  explicit Summary(std::FILE* to, milliseconds period = milliseconds(1000))
      : to_(to),
        period_(std::clamp<milliseconds>(period, milliseconds(1), std::chrono::hours(24 * 365))) {}
  ~Summary() override { write(); }

  void hear(const EventView& event) override {
    const std::lock_guard lock(mutex_);
    ++line_of(event.channel()).events;
  }
  void idle() override {
    if (Clock::now() < due_) return;
    due_ += period_;
    write();
  }
  [[nodiscard]] milliseconds idle_every() const noexcept override {
    return to_ == nullptr ? milliseconds(0) : period_;
  }

  /// One line per channel that was heard. Threads: any.
  [[nodiscard]] std::vector<Line> lines() const {
    const std::lock_guard lock(mutex_);
    return lines_;
  }
  [[nodiscard]] std::uint64_t events() const {
    std::uint64_t sum = 0;
    for (const Line& line : lines()) sum += line.events;
    return sum;
  }

 private:
  using Clock = std::chrono::steady_clock;

  Line& line_of(std::string_view channel) {
    for (Line& line : lines_) {
      if (line.channel == channel) return line;
    }
    return lines_.emplace_back(Line{std::string(channel)});
  }
  /// Writes the busiest channels first, as many as fit into a line.
  void write() {
    if (to_ == nullptr) return;
    std::vector<Line> all = lines();
    std::stable_sort(all.begin(), all.end(),
                     [](const Line& a, const Line& b) { return a.events > b.events; });
    std::uint64_t sum = 0;
    std::string busiest;
    for (const Line& line : all) {
      sum += line.events;
      if (line.events > 0 && busiest.size() < 100) {
        busiest += (busiest.empty() ? "" : ", ") + line.channel + " " + std::to_string(line.events);
      }
    }
    if (sum == before_) return;
    const auto now = Clock::now();
    const double seconds = std::chrono::duration<double>(now - written_).count();
    std::fprintf(to_, "summary: %llu %s, %.0f/s: %s\n", static_cast<unsigned long long>(sum),
                 sum == 1 ? "event" : "events",
                 static_cast<double>(sum - before_) / std::max(seconds, 1e-9), busiest.c_str());
    std::fflush(to_);
    before_ = sum;
    written_ = now;
  }

  std::FILE* to_;
  milliseconds period_;
  mutable std::mutex mutex_;
  std::vector<Line> lines_;
  std::uint64_t before_ = 0;
  Clock::time_point written_ = Clock::now();
  Clock::time_point due_ = written_ + period_;
};

}  // namespace ringmain::sinks
