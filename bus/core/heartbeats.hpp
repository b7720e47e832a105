// Who looks at this process regularly, and is it still at it? The bus knows no watchdog; those that
// are there say so here, for a door's stats.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace ringmain::detail {

/// Of one watchdog. Threads: any; it is beaten by who looks.
struct Heartbeat {
  std::string bus;
  std::int64_t period_ns = 0;  // between two looks; 0: nobody looks by itself
  std::atomic<std::uint64_t> looks{0};
  std::atomic<std::int64_t> last_look_ns{0};      // CLOCK_MONOTONIC: it began; 0: none yet
  std::atomic<std::int64_t> looking_since_ns{0};  // 0: it is not inside a look
  std::atomic<std::int64_t> calling_since_ns{0};  // the program's function; 0: it has returned
};

/// As long as somebody holds it, heartbeats() has it. Throws std::bad_alloc.
[[nodiscard]] std::shared_ptr<Heartbeat> begin_heartbeat(std::string bus, std::int64_t period_ns);
/// Throws std::bad_alloc.
[[nodiscard]] std::vector<std::shared_ptr<const Heartbeat>> heartbeats();

}  // namespace ringmain::detail
