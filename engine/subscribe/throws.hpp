// Which subscriber throws too often, and what did the last exception say? Noted where the exception
// is caught; the housekeeper tells it.
//
// A ring has the times of the last throws, so that "so many within a second" is exact at every
// moment, also when several threads throw at once. Nothing here waits: a thread that finds the lock
// of the words taken does not replace them. Cost: nothing until something throws.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "../system/atomics.hpp"

namespace ringmain::engine {

class Throws {
 public:
  enum : std::int64_t { kWindowNs = 1'000'000'000 };

  /// From here on `max` throws within a second are too many; 0: never. Throws std::bad_alloc.
  void set_max(std::uint32_t max);
  /// Notes a throw. True: it is one too many. Threads: any. Progress: wait-free.
  [[nodiscard]] bool too_many(std::int64_t now_ns) noexcept;
  void forget() noexcept;
  [[nodiscard]] std::uint32_t max() const noexcept { return max_; }

  enum : std::uint32_t { kThrew = 1, kQuarantined = 2 };
  /// Would that be news? If so call say() first, then news().
  [[nodiscard]] bool wants_words(std::uint32_t what) const noexcept;
  void news(std::uint32_t what) noexcept;
  void say(const char* what) noexcept;
  /// The housekeeper: takes and returns which of `what` are news.
  [[nodiscard]] std::uint32_t take(std::uint32_t what) noexcept;
  [[nodiscard]] bool waits() const noexcept {
    return news_.load(std::memory_order_acquire) != 0;  // x.words
  }
  [[nodiscard]] std::string words();
  std::int64_t told_ns = 0;  // the housekeeper's
  std::uint64_t told_count = 0;

 private:
  std::uint32_t max_ = 0;
  std::unique_ptr<Atomic<std::int64_t>[]> times_;
  Atomic<std::uint32_t> next_{0};
  Atomic<std::uint32_t> news_{0};
  std::mutex words_lock_;
  std::array<char, 120> words_{};
};

}  // namespace ringmain::engine
