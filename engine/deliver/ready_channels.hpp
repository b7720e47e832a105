// Whose turn is it? The channels that wait for a worker, in one circular order for all workers.
//
// A channel waits with its lease (`passed`: a worker held it and went on to another channel) or
// without (`signals`: a publisher found no worker there). Workers take one channel at a time: the
// first that waits at or after a place that all workers share; the worker that takes it moves the
// place past it. So a waiting channel is reached after at most W * (n - 1) + (W - 1) turns for W
// workers and n channels: W turns of each other channel, and the takes that were under way (model:
// ready_channels.pml). A channel's index is its place.
#pragma once
#include <array>
#include <bit>
#include <cstdint>

#include "../system/atomics.hpp"
#include "../system/cache_line.hpp"

namespace ringmain::engine {

class ReadyChannels {
 public:
  enum : std::uint32_t { kChannelsMax = 4096, kWords = kChannelsMax / 64 };
  static_assert(kChannelsMax % 64 == 0, "each bit of each word is a channel's");
  struct Turn {
    enum Kind : std::uint8_t { none, passed, signalled } kind = none;
    std::uint32_t index = 0;
  };

  /// From now on the words of that many channels are looked at. Threads: one at a time.
  void use(std::uint32_t channels) noexcept {
    words_.store((channels + 63) / 64, std::memory_order_release);  // e.listed
  }
  [[nodiscard]] std::uint32_t words() const noexcept {
    return words_.load(std::memory_order_acquire);  // e.listed
  }

  /// The channel waits without its lease: the worker that takes it asks for that.
  void signal(std::uint32_t index) noexcept {
    signals_[index / 64].fetch_or(bit(index), std::memory_order_seq_cst);  // s.signal
  }
  /// The same, unless it is signalled already.
  void signal_once(std::uint32_t index) noexcept {
    const std::uint64_t word = signals_[index / 64].load(std::memory_order_seq_cst);  // s.signal
    if ((word & bit(index)) == 0) signal(index);
  }
  /// The channel waits with its lease: the worker that takes it has it.
  void pass(std::uint32_t index) noexcept {
    passed_[index / 64].fetch_or(bit(index), std::memory_order_seq_cst);  // e.passed, s.signal
  }
  /// Relaxed: a look at one moment.
  [[nodiscard]] bool waits(std::uint32_t index) const noexcept {
    return ((passed_[index / 64].load(std::memory_order_relaxed) |    // relaxed
             signals_[index / 64].load(std::memory_order_relaxed)) &  // relaxed
            bit(index)) != 0;
  }
  [[nodiscard]] bool anything() const noexcept {
    for (std::uint32_t i = 0, n = words(); i < n; ++i) {
      if (passed_[i].load(std::memory_order_seq_cst) != 0) return true;   // s.signal
      if (signals_[i].load(std::memory_order_seq_cst) != 0) return true;  // s.signal
    }
    return false;
  }

  /// Takes the channel whose turn it is. Progress: lock-free.
  [[nodiscard]] Turn take() noexcept {
    const std::uint32_t words = this->words();
    const std::uint64_t at =
        turn_.load(std::memory_order_relaxed);  // relaxed: an older one is fair too
    const auto first = static_cast<std::uint32_t>(at % kChannelsMax);
    // The first word from the place on, then the other words, then the first word up to the place.
    for (std::uint32_t i = 0, word = first / 64; i <= words; ++i, ++word) {
      const std::uint64_t lap = at / kChannelsMax + (first / 64 + i >= words ? 1 : 0);
      if (word >= words) word = 0;
      std::uint64_t mask = ~std::uint64_t{0};
      if (i == 0 && word == first / 64) mask <<= first % 64;
      if (const Turn turn = take_of(word, mask); turn.kind != Turn::none) {
        raise(lap * kChannelsMax + turn.index + 1);
        return turn;
      }
    }
    return {};
  }

  /// Takes that channel with its lease, out of its turn. False: another worker has taken it.
  [[nodiscard]] bool take_passed(std::uint32_t index) noexcept {
    return (passed_[index / 64].fetch_and(~bit(index), std::memory_order_acq_rel) &  // e.passed
            bit(index)) != 0;
  }
  /// Which channels of a word wait with their leases, as bits: a look, they stay.
  [[nodiscard]] std::uint64_t look_at_passed(std::uint32_t word) const noexcept {
    return passed_[word].load(std::memory_order_relaxed);  // relaxed: a look
  }
  /// Takes all channels of a word at once, as bits: for a worker that is alone.
  [[nodiscard]] std::uint64_t take_all_passed(std::uint32_t word) noexcept {
    if (look_at_passed(word) == 0) return 0;
    return passed_[word].exchange(0, std::memory_order_acquire);  // e.passed
  }
  [[nodiscard]] std::uint64_t take_all_signals(std::uint32_t word) noexcept {
    // Relaxed: a look; park() looks again in the order s.signal.
    if (signals_[word].load(std::memory_order_relaxed) == 0) return 0;
    return signals_[word].exchange(0, std::memory_order_seq_cst);  // s.signal
  }

 private:
  static constexpr std::uint64_t bit(std::uint32_t index) noexcept { return 1ull << (index % 64); }

  Turn take_of(std::uint32_t word, std::uint64_t mask) noexcept {
    // Relaxed looks: the read-modify-writes after them decide.
    const std::uint64_t with_lease = passed_[word].load(std::memory_order_relaxed) & mask;
    std::uint64_t waiting = with_lease | (signals_[word].load(std::memory_order_relaxed) & mask);
    for (; waiting != 0; waiting &= waiting - 1) {
      const std::uint64_t one = waiting & -waiting;
      const auto index = word * 64 + static_cast<std::uint32_t>(std::countr_zero(one));
      if ((with_lease & one) != 0) {
        if ((passed_[word].fetch_and(~one, std::memory_order_acq_rel) & one) != 0)  // e.passed
          return {Turn::passed, index};
      } else if ((signals_[word].fetch_and(~one, std::memory_order_seq_cst) & one) !=
                 0) {  // s.signal
        return {Turn::signalled, index};
      }
    }
    return {};
  }

  /// Never moves the place back: a worker that was delayed since its look would have channels
  /// served twice.
  void raise(std::uint64_t place) noexcept {
    std::uint64_t now = turn_.load(std::memory_order_relaxed);  // relaxed: a place, nothing else
    while (now < place &&
           !turn_.compare_exchange_weak(now, place, std::memory_order_relaxed)) {  // relaxed
    }
  }

  Atomic<std::uint32_t> words_{0};
  alignas(kLineBytes) Atomic<std::uint64_t> turn_{0};  // laps * kChannelsMax + index
  alignas(kLineBytes) std::array<Atomic<std::uint64_t>, kWords> signals_{};
  alignas(kLineBytes) std::array<Atomic<std::uint64_t>, kWords> passed_{};
};

}  // namespace ringmain::engine
