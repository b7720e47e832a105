// What the figures are compared with: the machine's own limits and raw loops over the same
// envelope.
//
// RawQueue is moodycamel with the same traits, the same slots, built in place in the same way;
// RawRing is the same single-writer ring with the sequence in the slot. Neither has a bound, a
// ledger, a gate, a subscriber list, a lease or a way to sleep: what ringmain adds is the
// difference.
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <new>
#include <pthread.h>
#include <sched.h>
#include <thread>
#include <vector>

#include "ringmain/engine/lane.hpp"
#include "ringmain/engine/wait_strategy.hpp"

namespace ringmain::bench {

/// 32 bytes, as in every row of the cost table.
struct Payload {
  std::uint64_t sent_ns;
  std::uint64_t number;
  std::uint64_t a, b;
};
enum : std::size_t { kSlot = engine::slot_bytes(engine::slot_class(sizeof(Payload))) };

inline void pin(unsigned core) {
  if (std::thread::hardware_concurrency() < 2) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  ::pthread_setaffinity_np(::pthread_self(), sizeof set, &set);
}

inline std::int64_t ticks_ns() {
  return engine::now_ns();
}

/// One way, core 0 to core 1, in nanoseconds: the median of chunks of ping-pong.
inline double core_to_core_ns() {
  alignas(128) std::atomic<std::uint32_t> word{0};
  enum : std::uint32_t { kTrips = 8000 };
  std::thread other([&word] {
    pin(1);
    for (std::uint32_t i = 0; i < kTrips; ++i) {
      while (word.load(std::memory_order_acquire) != 2 * i + 1) engine::pause();
      word.store(2 * i + 2, std::memory_order_release);
    }
  });
  pin(0);
  std::int64_t best = INT64_MAX;
  std::int64_t since = ticks_ns();
  for (std::uint32_t i = 0; i < kTrips; ++i) {
    word.store(2 * i + 1, std::memory_order_release);
    while (word.load(std::memory_order_acquire) != 2 * i + 2) engine::pause();
    if (i % 1000 == 999) {
      const std::int64_t now = ticks_ns();
      best = std::min(best, now - since);
      since = now;
    }
  }
  other.join();
  return static_cast<double>(best) / 2000.0;
}

/// moodycamel alone.
class RawQueue {
 public:
  RawQueue() : queue_(32), token_(queue_) {}
  template <class Make>
  bool push(Make&& make) {
    const std::uint64_t sequence = ++sequence_;
    auto build = [&make, sequence](engine::Slot<kSlot>& slot) noexcept {
      slot.header = {sequence, 0};
      ::new (slot.payload) Payload(make());
    };
    return queue_.enqueue_bulk(token_, engine::BuildInPlace<decltype(build)>{&build}, 1);
  }
  /// Calls `hear` for up to 256 events.
  template <class Hear>
  std::size_t take(Hear&& hear) {
    const std::size_t n = queue_.try_dequeue_bulk_from_producer(token_, room_.get(), 256);
    for (std::size_t i = 0; i < n; ++i) hear(*reinterpret_cast<const Payload*>(room_[i].payload));
    return n;
  }

 private:
  engine::Queue<kSlot> queue_;
  engine::QueueToken token_;
  alignas(128) std::uint64_t sequence_ = 0;
  alignas(128) std::unique_ptr<engine::Slot<kSlot>[]> room_ { new engine::Slot<kSlot>[ 256 ] };
};

/// A single-writer ring of 65,536 slots: the writer looks at `read_` only when its last look says
/// full.
class RawRing {
 public:
  enum : std::uint64_t { kSlots = 65536 };
  RawRing() : slots_(new (std::align_val_t{128}) engine::Slot<kSlot>[kSlots]()) {}
  ~RawRing() { ::operator delete[](slots_, std::align_val_t{128}); }
  RawRing(const RawRing&) = delete;
  RawRing& operator=(const RawRing&) = delete;

  template <class Make>
  bool push(Make&& make) {
    if (written_ - read_seen_ >= kSlots) {
      read_seen_ = read_.load(std::memory_order_acquire);
      if (written_ - read_seen_ >= kSlots) return false;
    }
    engine::Slot<kSlot>& slot = slots_[written_ & (kSlots - 1)];
    ::new (slot.payload) Payload(make());
    slot.header.time_ns = 0;
    std::atomic_ref(slot.header.sequence).store(++written_, std::memory_order_release);
    return true;
  }
  template <class Hear>
  std::size_t take(Hear&& hear) {
    std::size_t n = 0;
    for (; n < 256; ++n) {
      engine::Slot<kSlot>& slot = slots_[(taken_ + n) & (kSlots - 1)];
      if (std::atomic_ref(slot.header.sequence).load(std::memory_order_acquire) != taken_ + n + 1)
        break;
      hear(*reinterpret_cast<const Payload*>(slot.payload));
    }
    taken_ += n;
    if (n != 0) read_.store(taken_, std::memory_order_release);
    return n;
  }

 private:
  engine::Slot<kSlot>* slots_;
  alignas(128) std::uint64_t written_ = 0;
  std::uint64_t read_seen_ = 0;
  alignas(128) std::atomic<std::uint64_t> read_{0};
  alignas(128) std::uint64_t taken_ = 0;
};

/// A thread on core 1 that hands what a raw queue holds to `hear`, lingering as a worker does.
template <class Raw, class Hear>
class RawWorker {
 public:
  RawWorker(Raw& raw, Hear hear, std::int64_t linger_ns)
      : thread_([this, &raw, hear, linger_ns](const std::stop_token& stop) {
          pin(1);
          engine::WaitOptions options;
          options.linger_ns = linger_ns;
          engine::WaitStrategy wait(options);
          while (!stop.stop_requested()) {
            const std::size_t n = raw.take(hear);
            if (n != 0) {
              wait.worked(n);
            } else {
              engine::pause();
            }
          }
        }) {}

 private:
  std::jthread thread_;
};

}  // namespace ringmain::bench
