// Question: what of moodycamel's queue makes a publish on its lane dear: the blocks, the bound, the
// bytes, or the way in? One changed at a time, nobody at the lines and a worker that takes.
//
// What was learnt: docs/notes/2026-11-27-the-default-lane.md.
#include <cstddef>
#include <cstdint>
#include <memory>

#include "engine/publish/mpmc_queue.hpp"

#include "bench/questions.hpp"
#include "bench/reference.hpp"

namespace ringmain::bench {
namespace {

/// kCounted: blocks say by a shared count that they are empty, not by a flag for each slot.
template <std::size_t kBlock, bool kCounted = false>
struct Blocks : engine::QueueTraits {
  static const std::size_t BLOCK_SIZE = kBlock;
  static const std::size_t EXPLICIT_BLOCK_EMPTY_COUNTER_THRESHOLD = kCounted ? 32 : kBlock;
};

/// What is queued: a whole slot, the event alone, or 17 bytes of it.
struct WholeSlot {
  template <class Build>
  explicit WholeSlot(Build& build) noexcept : header{build.sequence, 0}, event(build.make()) {}
  WholeSlot() = default;
  [[nodiscard]] const Payload& heard() const noexcept { return event; }
  engine::SlotHeader header;
  Payload event;
};
struct EventAlone {
  template <class Build>
  explicit EventAlone(Build& build) noexcept : event(build.make()) {}
  EventAlone() = default;
  [[nodiscard]] const Payload& heard() const noexcept { return event; }
  Payload event;
};
struct [[gnu::packed]] Few {
  template <class Build>
  explicit Few(Build& build) noexcept {
    const Payload event = build.make();
    number = event.number;
    sent = event.sent;
    kind = 1;
  }
  Few() = default;
  [[nodiscard]] Payload heard() const noexcept { return make_event<Payload>(number, sent); }
  std::uint64_t number;
  std::int64_t sent;
  std::uint8_t kind;
};
static_assert(sizeof(WholeSlot) == 48 && sizeof(Few) == 17);

enum class Way { in_place, copied };

template <class Item, class Traits, bool kBounded, Way kWay>
class Varied {
 public:
  Varied() : queue_(Traits::BLOCK_SIZE), token_(queue_) { bound_.read = &read_.word; }
  template <class Make>
  [[gnu::always_inline]] bool push(Make&& make) {
    if constexpr (kBounded) {
      if (bound_.full()) [[unlikely]]
        return false;
    }
    struct Build {
      std::uint64_t sequence;
      Make& make;
    } build{++bound_.written, make};
    if constexpr (kWay == Way::copied) {
      return queue_.enqueue(token_, Item(build));
    } else {
      return queue_.enqueue_bulk(token_, engine::BuildInPlace<Build>{&build}, 1);
    }
  }
  template <class Hear>
  std::size_t take(Hear& hear) {
    const std::size_t n = queue_.try_dequeue_bulk_from_producer(token_, room_.get(), kRun);
    for (std::size_t i = 0; i < n; ++i) hear(room_[i].heard());
    if (n != 0) read_.add(n);
    return n;
  }

 private:
  moodycamel::ConcurrentQueue<Item, Traits> queue_;
  engine::QueueToken token_;
  Bound bound_;
  ReadSoFar read_;
  std::unique_ptr<Item[]> room_{new Item[kRun]};
};

template <class Item, class Traits, bool kBounded, Way kWay>
struct Kind {
  template <class E>
  using Queue = Varied<Item, Traits, kBounded, kWay>;
};

template <class Item, class Traits, bool kBounded = true, Way kWay = Way::in_place>
bool variant(const char* name) {
  using This = Kind<Item, Traits, kBounded, kWay>;
  return add("queue_alone", name, {}, publish_alone<Raw<This::template Queue, 300>, Payload>) &&
         add("queue_live", name, {}, publish_live<Raw<This::template Queue, 300>, Payload>) &&
         add("queue_latency", name, {{"per_second", 1'000'000}},
             [](Repetition& r) { latency<Raw<This::template Queue, 0>>(r, 1'000'000); });
}

[[maybe_unused]] const bool kAdded[] = {
    variant<WholeSlot, Blocks<32>>("as_it_is"),
    variant<WholeSlot, Blocks<64>>("block_64"),
    variant<WholeSlot, Blocks<128>>("block_128"),
    variant<WholeSlot, Blocks<256>>("block_256"),
    variant<WholeSlot, Blocks<1024>>("block_1024"),
    variant<WholeSlot, Blocks<65536, true>>("block_65536_counted"),
    variant<WholeSlot, Blocks<256, true>>("block_256_counted"),
    variant<WholeSlot, Blocks<32>, false>("no_bound"),
    variant<EventAlone, Blocks<32>>("event_alone"),
    variant<Few, Blocks<32>>("bytes_17"),
    variant<WholeSlot, Blocks<32>, true, Way::copied>("copied"),
    variant<Few, Blocks<65536, true>, false>("bytes_17_block_65536_no_bound"),
};

}  // namespace
}  // namespace ringmain::bench
