// moodycamel's queue behind four functions per slot class: the only code that knows a queue's slot
// size at run time. Compiled once, in the library.
#pragma once
#include <cstddef>

#include "lane.hpp"

namespace ringmain::engine {

struct QueueOps {
  void* (*make)() noexcept;  // nullptr: out of memory
  void (*destroy)(void* queue) noexcept;
  QueueToken* (*make_token)(void* queue) noexcept;  // nullptr: out of memory
  /// Moves up to `max` slots of that token's sub-queue to `to`. Only the lane's owner may call it;
  /// 0 does not mean empty.
  std::size_t (*take)(void* queue, QueueToken& token, std::byte* to, std::size_t max) noexcept;
  /// Queues one slot built by `build`. False: out of memory.
  bool (*put)(void* queue, QueueToken& token, const SlotHeader& header,
              void (*build)(void* to, void* from) noexcept, void* from,
              std::size_t payload_offset) noexcept;
};
[[nodiscard]] const QueueOps& queue_ops(unsigned slot_class) noexcept;

}  // namespace ringmain::engine
