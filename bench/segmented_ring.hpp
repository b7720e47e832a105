// Would an unbounded ring serve serial channels better than moodycamel? The candidate, bare.
//
// Segments of slots with the sequence inside the slot, linked as they are filled; the reader hands
// read segments back, so that a steady stream goes round in a few of them, in the cache. One
// writer, one reader, no bound, memory as it is used. Measured beside the raw loops; decision 3 of
// the design.
#pragma once
#include <atomic>
#include <cstdint>
#include <new>
#include <utility>

#include "bench/reference.hpp"

namespace ringmain::bench {

template <class E>
class SegmentedRing {
 public:
  SegmentedRing() : writing_(new Segment), reading_(writing_) {}
  SegmentedRing(const SegmentedRing&) = delete;
  SegmentedRing& operator=(const SegmentedRing&) = delete;
  ~SegmentedRing() {
    for (Segment* s = reading_; s != nullptr;) delete std::exchange(s, s->next.load());
    for (Segment* s = spare_.load(); s != nullptr;) delete std::exchange(s, s->next.load());
    for (Segment* s = kept_; s != nullptr;) delete std::exchange(s, s->next.load());
  }

  template <class Make>
  [[gnu::always_inline]] bool push(Make&& make) {
    if (at_ == kSlots) [[unlikely]]
      extend();
    Slot& slot = writing_->slots[at_++];
    ::new (slot.payload) E(make());
    slot.header.time_ns = 0;
    std::atomic_ref(slot.header.sequence).store(++written_, std::memory_order_release);
    return true;
  }
  /// Up to the end of a segment, at most a run.
  template <class Hear>
  std::size_t take(Hear& hear) {
    if (next_ == kSlots && !advance()) return 0;
    std::size_t n = 0;
    for (; n < kRun && next_ < kSlots; ++n, ++next_) {
      Slot& slot = reading_->slots[next_];
      if (std::atomic_ref(slot.header.sequence).load(std::memory_order_acquire) != taken_ + n + 1)
        break;
      hear(*reinterpret_cast<const E*>(slot.payload));
    }
    taken_ += n;
    return n;
  }

 private:
  enum : std::size_t { kSlots = 1024 };
  using Slot = engine::Slot<kSlotOf<E>>;
  struct alignas(engine::kLineBytes) Segment {
    Slot slots[kSlots]{};  // sequences only grow, so those of an earlier round are never taken for
                           // written
    alignas(engine::kLineBytes) std::atomic<Segment*> next{nullptr};
  };

  void extend() {
    if (kept_ == nullptr) kept_ = spare_.exchange(nullptr, std::memory_order_acquire);
    Segment* made = kept_;
    if (made == nullptr) {
      made = new Segment;
    } else {
      kept_ = made->next.load(std::memory_order_relaxed);
      made->next.store(nullptr, std::memory_order_relaxed);
    }
    writing_->next.store(made, std::memory_order_release);
    writing_ = made;
    at_ = 0;
  }
  bool advance() {
    Segment* after = reading_->next.load(std::memory_order_acquire);
    if (after == nullptr) return false;
    Segment* top = spare_.load(std::memory_order_relaxed);
    do reading_->next.store(top, std::memory_order_relaxed);
    while (!spare_.compare_exchange_weak(top, reading_, std::memory_order_release,
                                         std::memory_order_relaxed));
    reading_ = after;
    next_ = 0;
    return true;
  }

  // The writer's line, the line between the two, the reader's line.
  alignas(engine::kLineBytes) Segment* writing_;
  std::size_t at_ = 0;
  std::uint64_t written_ = 0;
  Segment* kept_ = nullptr;  // handed back earlier, not yet used again
  alignas(engine::kLineBytes) std::atomic<Segment*> spare_{nullptr};
  alignas(engine::kLineBytes) Segment* reading_;
  std::size_t next_ = 0;
  std::uint64_t taken_ = 0;
};

}  // namespace ringmain::bench
