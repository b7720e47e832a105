// What ringmain does in a process that belongs to a run: its sinks, the sources that live in it,
// and their end, for which there is one deadline.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include "bus/bus.hpp"
#include "bus/rank.hpp"

#include "adapters/launch/files.hpp"
#include "adapters/launch/plan.hpp"
#include "adapters/launch/run_sinks.hpp"
#include "adapters/launch/run_sources.hpp"
#include "adapters/launch/text.hpp"
#include "adapters/launch/thread.hpp"

namespace ringmain::run {

/// What runs in this process. Never destroyed: other threads publish until the process is gone.
class Running {
 public:
  Running(Plan plan, std::vector<FileAtStart> files)
      : plan_(std::move(plan)), sinks_(bus_, me_, std::move(files)) {}
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  [[nodiscard]] bool in_child() const noexcept { return ::getpid() != pid_; }

  /// Opens sinks and sources. What cannot be opened is left out, and said.
  void open() noexcept;
  /// nullptr: the run did not ask for that source.
  [[nodiscard]] Bus* join(std::string_view source) {
    return sources_.join(source) ? &bus_ : nullptr;
  }
  void miss(std::string_view source, std::string_view why) { sources_.miss(source, why); }
  void at_end(std::function<void(nanoseconds)> say_last) { sources_.at_end(std::move(say_last)); }

  /// Has the run's thread do the errand, and waits for that until the deadline.
  void ask(RunThread::Errand errand) noexcept;
  /// In that thread: flushes or finishes, for no longer than `limit`.
  void errand(RunThread::Errand errand, nanoseconds limit);

 private:
  void record();
  void flush(nanoseconds limit);
  void finish();
  /// Time is up while a thread still ends the run: counts and says what it has not done, and leaves
  /// it alone.
  void late(nanoseconds limit);
  /// A flush ran out of time, is still under way, and no event has arrived anywhere since.
  [[nodiscard]] bool is_stuck() const noexcept;
  /// `lost`: what the sinks lost.
  void say_end(std::uint64_t lost) const;

  const Plan plan_;
  const pid_t pid_ = ::getpid();
  const RankIdentity me_ = read_rank_identity();
  const nanoseconds limit_ = end_limit();
  Bus& bus_ = Bus::process();
  Recording flight_;
  RunSinks sinks_;
  RunSources sources_{bus_, me_, plan_.sources};
  std::atomic<std::uint32_t> under_way_{0};                 // errands
  std::atomic<bool> over_{false};                           // the end was said
  std::atomic<std::uint64_t> stuck_at_{~std::uint64_t{0}};  // what had arrived when time was up
};

}  // namespace ringmain::run
