// Where does the worker of a merged lane keep what it has taken and may not hand out yet?
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>

#include "../publish/lane.hpp"
#include "../subscribe/subscriber.hpp"

namespace ringmain::engine {

/// What was taken off a merged lane and is not yet due: at most a batch.
struct Ahead {
  enum : std::size_t { kMax = 256, kRoomBytes = 64 * 1024 };

  Run run;               // count 0: nothing
  std::uint32_t at = 0;  // run's first event has tickets[at]
  std::uint32_t max = kMax;
  std::uint64_t tickets[kMax];
  std::unique_ptr<std::byte[]> room;  // moodycamel lanes: the events; a ring's stay where they are

  [[nodiscard]] std::uint64_t head() const noexcept { return tickets[at]; }
};
/// False: out of memory.
[[nodiscard]] bool give_ahead(Lane& lane) noexcept;
void free_ahead(Lane& lane) noexcept;

}  // namespace ringmain::engine
