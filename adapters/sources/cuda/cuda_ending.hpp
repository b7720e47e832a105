// May CUPTI still be called? Not once the process's end has begun: what CUPTI made for itself is
// destroyed then, while the bus's housekeeper, and threads of the program, go on.
//
// exit() calls what was registered last first. So the end is watched for after CUPTI has taken a
// subscriber, and is known before what CUPTI had made until then goes. What it registers later goes
// earlier, and nobody can hear of that. quick_exit(), _exit() and signals destroy nothing.
#pragma once
#include <atomic>

#include "engine/system/presence.hpp"

#include "bus/result.hpp"

namespace ringmain::cuda {

class Ending {
 public:
  /// Once in a process; without memory for it the end is not known of.
  void watch_for() noexcept;
  [[nodiscard]] bool begun() const noexcept { return begun_; }

  /// Made by each thread before it calls CUPTI. False: it must not. While one lives that says true,
  /// the end waits for it, but for five seconds at most, as CUPTI may itself wait for who ends the
  /// process; and not in its own thread. Where there is no memory for a thread's first, it is not
  /// waited for.
  class Asking {
   public:
    explicit Asking(Ending& ending) noexcept : ending_(ending), seen_(ending.asking_.enter()) {}
    Asking(const Asking&) = delete;
    Asking& operator=(const Asking&) = delete;
    ~Asking() {
      if (seen_) ending_.asking_.leave();
    }
    explicit operator bool() const noexcept { return !ending_.begun_; }

   private:
    Ending& ending_;
    const bool seen_;
  };

 private:
  void begin() noexcept;

  engine::Presence asking_;  // entered first, and `begun_` read then: one of both sides sees it
  std::atomic<bool> begun_{false};
  std::atomic<bool> watched_for_{false};
};
extern constinit Ending ending;

/// Why a call of the source's is refused once the end has begun.
[[nodiscard]] Error too_late();

}  // namespace ringmain::cuda
