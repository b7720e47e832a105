// How does a thread wait for a word to change, without a descriptor and in a signal handler, too?
#pragma once
#include <atomic>
#include <cstdint>

namespace ringmain::run {

/// Waits while `word` is `value`, at most until `until_ns` of CLOCK_MONOTONIC. Async-signal-safe.
void await_change(const std::atomic<std::uint32_t>& word, std::uint32_t value,
                  std::int64_t until_ns) noexcept;
/// Whoever awaits a change of `word` looks again. Async-signal-safe.
void wake_all(std::atomic<std::uint32_t>& word) noexcept;

}  // namespace ringmain::run
