// A plugin that stands behind ringmain's among others, which may do anything to it: what it does to
// them, and what it saw. Numbers on their own, relaxed, so that they put no order between threads.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>

namespace ringmain::nccl {

struct HostilePlugin {
  // What it is told to do, before its first communicator.
  std::uint32_t wanted = 0;        // its mask
  bool gives_null = false;         // every second event
  bool gives_parents = false;      // as handles: those of its others, and NULL
  bool fails = false;              // every third call of each function
  bool scribbles = false;          // all over the descriptor
  bool changes_mask = false;       // at each event
  bool takes_its_time = false;     // now and then
  bool closes_itself = false;      // more often than it was opened, in finalize
  std::atomic<bool> notes{false};  // calls, for one thread at a time

  // What it saw.
  std::array<std::atomic<std::uint64_t>, 16> starts{};  // by the number of the type's bit
  std::atomic<std::uint64_t> stops{0}, records{0}, inits{0}, finalizes{0};
  std::atomic<std::uint64_t> orphans{0};  // operations under no call
  // Faults of who calls it.
  std::atomic<std::uint64_t> strange_handles{0}, stopped_twice{0}, strange_parents{0},
      strange_contexts{0}, torn{0};
  [[nodiscard]] std::uint64_t faults() const noexcept {
    return strange_handles + stopped_twice + strange_parents + strange_contexts + torn;
  }
  std::uint64_t noted = 0;  // a hash of its calls, in order, with all that they say
};

}  // namespace ringmain::nccl

extern "C" ringmain::nccl::HostilePlugin* hostile_plugin();
