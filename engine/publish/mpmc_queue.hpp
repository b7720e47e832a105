// The queue of moodycamel lanes. No other file names moodycamel::ConcurrentQueue, and no header
// that users see includes this one: what compiles against ringmain needs neither the queue's header
// nor its time.
//
// Rules (why: docs/guarantees.md, "The queue"): explicit tokens only, one per lane; only the lane's
// owner dequeues; a worker parks by the lane's own counters, never because the queue says "nothing
// there".
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iterator>

// GCC 12 warns of a null block in enqueue_bulk when it is inlined with a count of 1; the block is
// never null.
#pragma GCC diagnostic push
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wstringop-overflow"
#endif
#if __has_include(<concurrentqueue/moodycamel/concurrentqueue.h>)
#include <concurrentqueue/moodycamel/concurrentqueue.h>
#elif __has_include(<concurrentqueue/concurrentqueue.h>)
#include <concurrentqueue/concurrentqueue.h>
#elif __has_include(<moodycamel/concurrentqueue.h>)
#include <moodycamel/concurrentqueue.h>
#elif __has_include(<concurrentqueue.h>)
#include <concurrentqueue.h>
#else
#error \
    "moodycamel's concurrentqueue.h was not found; on Debian: apt-get install libconcurrentqueue-dev"
#endif
#pragma GCC diagnostic pop

#include "../system/cache_line.hpp"
#include "lane.hpp"
#include "slot.hpp"

namespace ringmain::engine {

struct QueueTraits : moodycamel::ConcurrentQueueDefaultTraits {
  static const std::size_t BLOCK_SIZE = 32;                          // the flag path, safe in 1.0.3
  static const std::size_t EXPLICIT_INITIAL_INDEX_SIZE = 8;          // small lanes stay small
  static const std::size_t INITIAL_IMPLICIT_PRODUCER_HASH_SIZE = 0;  // no implicit producers
  // Line-aligned: a producer that straddles lines costs 60-80 ns a hand-over.
  static void* malloc(std::size_t bytes) {
    return std::aligned_alloc(kLineBytes, (bytes + kLineBytes - 1) / kLineBytes * kLineBytes);
  }
  static void free(void* memory) { std::free(memory); }  // NOLINT: the pair of malloc above
};

/// How many more fit into the block that a sub-queue writes once `written` have been.
constexpr std::size_t queue_block_left(std::uint64_t written) noexcept {
  return QueueTraits::BLOCK_SIZE - static_cast<std::size_t>(written % QueueTraits::BLOCK_SIZE);
}

template <std::size_t kBytes>
using Queue = moodycamel::ConcurrentQueue<Slot<kBytes>, QueueTraits>;

/// Gives moodycamel's bulk enqueue the same builder for each slot: events are built in the queue.
template <class Build>
struct BuildInPlace {
  using iterator_category = std::input_iterator_tag;
  using value_type = Build;
  using difference_type = std::ptrdiff_t;
  using pointer = Build*;
  using reference = Build&;

  Build* build;
  Build& operator*() const noexcept { return *build; }
  BuildInPlace& operator++() noexcept { return *this; }
  BuildInPlace operator++(int) noexcept { return *this; }
};

}  // namespace ringmain::engine
