// What goes through right now? Counts events by channel and, if asked to, writes a line of them
// every so often.
//
//   summary: 41203 events, 20511/s: replay.slice 38551, replay.flow 2652
//
// listen() counts on the channel's worker and misses nothing; attach() hears a pattern through a
// mailbox, in its own thread.
#pragma once
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "../../bus/bus.hpp"

namespace ringmain::sinks {

/// Counts until it is destroyed. The bus must outlive it.
class Summary {
 public:
  struct Line {
    std::string channel;
    std::uint64_t events = 0;
  };

  /// Counts nothing yet: listen() says what. With `to`, a line there every `period`.
  static Result<Summary> open(std::FILE* to = nullptr, milliseconds period = milliseconds(1000)) {
    return Summary(to, period).start();
  }
  /// All channels that match, present and future. What its mailbox could not hold is dropped:
  /// dropped().
  static Result<Summary> attach(Bus& bus, std::FILE* to, std::string_view pattern = ">",
                                milliseconds period = milliseconds(1000)) {
    Summary made(to, period);
    made.core_->box = bus.mailbox(pattern, {.name = "summary"});
    return std::move(made).start();
  }
  template <Described E>
  void listen(Channel<E>& channel) {
    Core::Counter* counter = core_->counter_of(channel.name());
    core_->said.push_back(channel.subscribe_batch(
        [counter](Batch<E> batch) { counter->events += batch.size(); }, {.name = "summary"}));
  }

  /// One event from somewhere else. Threads: any.
  void hear(const EventView& event) { ++core_->counter_of(event.channel())->events; }

  /// One per channel that was heard or is listened to. Threads: any.
  [[nodiscard]] std::vector<Line> lines() const { return core_->lines(); }
  [[nodiscard]] std::uint64_t events() const {
    std::uint64_t sum = 0;
    for (const Line& line : lines()) sum += line.events;
    return sum;
  }
  [[nodiscard]] std::uint64_t dropped() const { return core_->box.stats().dropped; }

 private:
  using Clock = std::chrono::steady_clock;

  struct Core {
    struct Counter {
      explicit Counter(std::string_view name) : channel(name) {}
      const std::string channel;
      std::atomic<std::uint64_t> events{0};
    };

    Core(std::FILE* to_, milliseconds period_) : to(to_), period(period_) {}
    ~Core() {
      said.clear();
      thread = {};  // before what it uses
    }

    Counter* counter_of(std::string_view channel) {
      const std::lock_guard lock(mutex);
      for (Counter& c : counters) {
        if (c.channel == channel) return &c;
      }
      return &counters.emplace_back(channel);
    }
    std::vector<Line> lines() const {
      const std::lock_guard lock(mutex);
      std::vector<Line> all;
      for (const Counter& c : counters) all.push_back({c.channel, c.events});
      return all;
    }
    void run(const std::stop_token& stop) {
      std::mutex unused;
      std::condition_variable_any stopped;
      std::unique_lock lock(unused);
      auto due = Clock::now() + period;
      while (!stop.stop_requested()) {
        if (box.attached()) {
          if (box.wait_for(milliseconds(50))) hear();
        } else {
          stopped.wait_until(lock, stop, due, [] { return false; });
        }
        if (Clock::now() < due) continue;
        due += period;
        write();
      }
      if (box.attached()) hear();
      write();
    }
    void hear() {
      while (box.drain([this](const EventView& e) { ++counter_of(e.channel())->events; }) != 0) {
      }
    }
    /// Busiest first, as many as a line holds.
    void write() {
      if (to == nullptr) return;
      std::vector<Line> all = lines();
      std::stable_sort(all.begin(), all.end(),
                       [](const Line& a, const Line& b) { return a.events > b.events; });
      std::uint64_t sum = 0;
      std::string busiest;
      for (const Line& line : all) {
        sum += line.events;
        if (line.events > 0 && busiest.size() < 100) {
          busiest +=
              (busiest.empty() ? "" : ", ") + line.channel + " " + std::to_string(line.events);
        }
      }
      if (sum == before) return;
      const auto now = Clock::now();
      const double seconds = std::chrono::duration<double>(now - written).count();
      std::fprintf(to, "summary: %llu events, %.0f/s: %s\n", static_cast<unsigned long long>(sum),
                   static_cast<double>(sum - before) / std::max(seconds, 1e-9), busiest.c_str());
      std::fflush(to);
      before = sum;
      written = now;
    }

    std::FILE* to;
    milliseconds period;
    mutable std::mutex mutex;
    std::deque<Counter> counters;
    AnyMailbox box;
    std::vector<Subscription> said;
    std::uint64_t before = 0;
    Clock::time_point written = Clock::now();
    std::jthread thread;
  };

  Summary(std::FILE* to, milliseconds period)
      : core_(std::make_unique<Core>(
            to, std::clamp<milliseconds>(period, milliseconds(1), std::chrono::hours(24 * 365)))) {}

  Result<Summary> start() && {
    if (core_->to == nullptr && !core_->box.attached()) return std::move(*this);
    try {
      core_->thread =
          std::jthread([core = core_.get()](const std::stop_token& stop) { core->run(stop); });
    } catch (const std::system_error& failed) {
      return Error{Error::Code::system, std::string("no thread for the summary: ") + failed.what()};
    }
    return std::move(*this);
  }

  std::unique_ptr<Core> core_;
};

}  // namespace ringmain::sinks
