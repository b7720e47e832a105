#include "engine/subscribe/throws.hpp"

namespace ringmain::engine {

void Throws::set_max(std::uint32_t max) {
  if (max > 1) times_ = std::make_unique<Atomic<std::int64_t>[]>(max - 1);
  max_ = max;
}

bool Throws::too_many(std::int64_t now_ns) noexcept {
  if (max_ <= 1) return max_ == 1;
  const std::uint32_t i = next_.fetch_add(1, std::memory_order_relaxed);  // relaxed: a place
  // Relaxed: a time, no more. 0: none yet.
  const std::int64_t before = times_[i % (max_ - 1)].exchange(now_ns, std::memory_order_relaxed);
  return before != 0 && now_ns - before <= kWindowNs;
}

void Throws::forget() noexcept {
  for (std::uint32_t i = 0; i + 1 < max_; ++i)
    times_[i].store(0, std::memory_order_relaxed);  // relaxed: a time, no more
}

bool Throws::wants_words(std::uint32_t what) const noexcept {
  return (news_.load(std::memory_order_acquire) & what) != what;  // x.words
}

void Throws::news(std::uint32_t what) noexcept {
  news_.fetch_or(what, std::memory_order_acq_rel);  // x.words
}

void Throws::say(const char* what) noexcept {
  if (!words_lock_.try_lock()) return;
  std::size_t n = 0;
  for (; what[n] != 0 && n + 1 < words_.size(); ++n) words_[n] = what[n];
  words_[n] = 0;
  words_lock_.unlock();
}

std::uint32_t Throws::take(std::uint32_t what) noexcept {
  if ((news_.load(std::memory_order_acquire) & what) == 0) return 0;  // x.words
  return news_.fetch_and(~what, std::memory_order_acq_rel) & what;    // x.words
}

std::string Throws::words() {
  const std::lock_guard lock(words_lock_);
  return words_.data();
}

}  // namespace ringmain::engine
