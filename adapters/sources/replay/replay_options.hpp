// How is a recorded trace played?
#pragma once
#include <cstdint>
#include <functional>
#include <string>

namespace ringmain::replay {

/// `thread`: each recorded thread has a thread that publishes its events in their recorded order.
/// `recorded`: one thread publishes all events in their recorded order, each through its recorded
/// thread's own publishers.
enum class Order : std::uint8_t { thread, recorded };

struct ReplayOptions {
  double speed = 1;  // recorded time per time; 0: as fast as possible
  Order order = Order::thread;
  std::uint32_t loops = 1;
  std::string select = ">";  // pattern of channel names: others are read and left out
  /// All that reading, sorting and queueing may hold; at least kMemoryMin. What does not fit while
  /// sorting goes to an unlinked file in $TMPDIR, else /var/tmp. Names are outside it: they live in
  /// the process's table, which has its own bound.
  std::uint64_t memory_max = std::uint64_t{1} << 30;
  bool visitors = false;         // let subscribers come and go while it plays, and watch them
  std::function<void()> done{};  // called once, in a thread of the source, when all is published

  static constexpr std::uint64_t kMemoryMin = std::uint64_t{32} << 20;
  [[nodiscard]] std::uint64_t reading_bytes() const noexcept { return memory_max / 4; }
  [[nodiscard]] std::uint64_t sorting_bytes() const noexcept { return memory_max / 2; }
  [[nodiscard]] std::uint64_t queueing_bytes() const noexcept { return memory_max / 8; }
};

}  // namespace ringmain::replay
