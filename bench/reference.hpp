// What the figures are compared with: raw loops over the same envelope, built in place in the same
// way.
//
// RawQueue is moodycamel with the same traits and slots, RawRing the same single-writer ring with
// the sequence in the slot. Both keep to the same footprint as a lane: at most kInFlight events.
// Neither has a ledger, a gate, a subscriber list, a lease, a way to sleep or to stop: what
// ringmain adds is the difference.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <new>
#include <thread>
#include <utility>

#include "engine/publish/mpmc_queue.hpp"
#include "engine/publish/push.hpp"
#include "engine/system/wait_strategy.hpp"

#include "bench/events.hpp"
#include "bench/machine.hpp"

namespace ringmain::bench {

enum : std::uint64_t { kInFlight = 65536 };
enum : std::size_t { kRun = 256 };  // a worker's quantum

template <class E>
constexpr std::size_t kSlotOf = engine::slot_bytes(engine::slot_class(sizeof(E)));

/// The writer's side of a bound: it looks at what was read only when its last look says full.
struct alignas(engine::kLineBytes) Bound {
  bool full() noexcept {
    if (written - read_seen < kInFlight) return false;
    read_seen = read->load(std::memory_order_acquire);
    return written - read_seen >= kInFlight;
  }
  std::uint64_t written = 0;
  std::uint64_t read_seen = 0;
  std::atomic<std::uint64_t>* read = nullptr;
};
struct alignas(engine::kLineBytes) ReadSoFar {
  void add(std::size_t n) noexcept { word.store(taken += n, std::memory_order_release); }
  std::atomic<std::uint64_t> word{0};
  std::uint64_t taken = 0;
};

/// moodycamel alone; kMax = 1: one dequeue for each event.
template <class E, std::size_t kMax = kRun>
class RawQueue {
 public:
  RawQueue() : queue_(32), token_(queue_) { bound_.read = &read_.word; }
  template <class Make>
  [[gnu::always_inline]] bool push(Make&& make) {
    if (bound_.full()) [[unlikely]]
      return false;
    const std::uint64_t sequence = ++bound_.written;
    auto build = [&make, sequence](Slot& slot) noexcept {
      slot.header = {sequence, 0};
      ::new (slot.payload) E(make());
    };
    return queue_.enqueue_bulk(token_, engine::BuildInPlace<decltype(build)>{&build}, 1);
  }
  template <class Hear>
  std::size_t take(Hear& hear) {
    const std::size_t n = queue_.try_dequeue_bulk_from_producer(token_, room_.get(), kMax);
    for (std::size_t i = 0; i < n; ++i) hear(*reinterpret_cast<const E*>(room_[i].payload));
    if (n != 0) read_.add(n);
    return n;
  }

 private:
  using Slot = engine::Slot<kSlotOf<E>>;
  engine::Queue<kSlotOf<E>> queue_;
  engine::QueueToken token_;
  Bound bound_;
  ReadSoFar read_;
  std::unique_ptr<Slot[]> room_{new Slot[kMax]};
};
template <class E>
using RawSingleQueue = RawQueue<E, 1>;
template <class E>
using RawBulkQueue = RawQueue<E, kRun>;

/// A preallocated single-writer ring.
template <class E>
class RawRing {
 public:
  RawRing() : slots_(new (std::align_val_t{engine::kLineBytes}) Slot[kInFlight]()) {
    bound_.read = &read_.word;
  }
  ~RawRing() { ::operator delete[](slots_, std::align_val_t{engine::kLineBytes}); }
  RawRing(const RawRing&) = delete;
  RawRing& operator=(const RawRing&) = delete;

  template <class Make>
  [[gnu::always_inline]] bool push(Make&& make) {
    if (bound_.full()) [[unlikely]]
      return false;
    Slot& slot = slots_[bound_.written & (kInFlight - 1)];
    ::new (slot.payload) E(make());
    slot.header.time_ns = 0;
    std::atomic_ref(slot.header.sequence).store(++bound_.written, std::memory_order_release);
    return true;
  }
  template <class Hear>
  std::size_t take(Hear& hear) {
    std::size_t n = 0;
    for (; n < kRun; ++n) {
      Slot& slot = slots_[(read_.taken + n) & (kInFlight - 1)];
      if (std::atomic_ref(slot.header.sequence).load(std::memory_order_acquire) !=
          read_.taken + n + 1)
        break;
      hear(*reinterpret_cast<const E*>(slot.payload));
    }
    if (n != 0) read_.add(n);
    return n;
  }

 private:
  using Slot = engine::Slot<kSlotOf<E>>;
  Slot* slots_;
  Bound bound_;
  ReadSoFar read_;
};

/// A thread that hands what a raw queue holds to `hear`, lingering as a bus's worker does.
template <class Queue, class Hear>
class RawWorker {
 public:
  RawWorker(Queue& queue, Hear& hear, std::int64_t linger_ns)
      : thread_([&queue, &hear, linger_ns](const std::stop_token& stop) {
          pin_worker();
          engine::WaitOptions options;
          options.linger_ns = linger_ns;
          options.spin_ns = INT64_MAX;
          engine::WaitStrategy wait(options);
          while (!stop.stop_requested()) {
            if (const std::size_t n = queue.take(hear); n != 0) {
              wait.worked(n);
            } else {
              (void)wait.look_again();
            }
          }
        }) {}

 private:
  std::jthread thread_;
};

/// A queue and its worker as a system that can be published to.
template <template <class> class Queue, std::int64_t kLingerNs>
struct Raw {
  template <class E, class Hear>
  class System {
   public:
    explicit System(Hear& hear) : worker_(queue_, hear, kLingerNs) {}
    template <class Make>
    [[gnu::always_inline]] bool push(Make&& make) {
      return queue_.push(make);
    }

   private:
    Queue<E> queue_;
    RawWorker<Queue<E>, Hear> worker_;
  };
};

}  // namespace ringmain::bench
