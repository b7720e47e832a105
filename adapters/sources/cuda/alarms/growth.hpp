// Does live memory rise from step to step?
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>

#include "events/cuda.hpp"

#include "adapters/sources/cuda/cuda_alarm_options.hpp"

namespace ringmain::cuda::alarms {

/// Threads: one at a time.
class Growth {
 public:
  struct Risen {
    std::uint64_t bytes = 0;     // since before the first rise
    MemoryAllocation largest{};  // of the allocations since then
  };

  void allocate(const MemoryAllocation& call) noexcept {
    if (!counts(call.memory)) return;
    live_ += static_cast<std::int64_t>(call.bytes);
    if (call.bytes > largest_.bytes) largest_ = call;
  }
  /// `done` false: CUDA refused, and what was taken off comes back; or a subscriber did, before
  /// anything was told to be taken off. Throws std::bad_alloc.
  void release(const MemoryDeallocation& call, bool done) {
    if (!counts(call.memory)) return;
    const auto bytes = static_cast<std::int64_t>(call.bytes);
    if (!done) {
      const auto last = last_release_.find(call.thread);
      if (last == last_release_.end() || last->second != call.correlation) return;
      last_release_.erase(last);
      live_ += bytes;
      return;
    }
    if (call.bytes == 0) unsure_ = true;  // of an allocation that was not heard: it took off some
    live_ -= bytes;
    if (last_release_.size() >= kThreadsMax) last_release_.clear();
    last_release_[call.thread] = call.correlation;
  }
  std::optional<Risen> end_step(const AlarmOptions& options) noexcept {
    const std::int64_t before = last_;
    last_ = live_;
    const bool unsure = unsure_;
    unsure_ = false;
    if (++steps_ <= options.warmup_steps || unsure || live_ <= before) {
      rises_ = 0;
      largest_ = {};
      return std::nullopt;
    }
    if (rises_++ == 0) base_ = before;
    const auto bytes = static_cast<std::uint64_t>(live_ - base_);
    if (rises_ < options.rising_steps || bytes < options.rising_bytes) return std::nullopt;
    const Risen risen{bytes, largest_};
    rises_ = 0;
    largest_ = {};
    return risen;
  }
  /// The next steps are a warm-up again.
  void clear() noexcept { *this = Growth(); }

 private:
  static constexpr std::size_t kThreadsMax = 1024;  // that release at once

  /// Memory of the device, each byte once.
  static bool counts(MemoryClass memory) noexcept {
    return memory == MemoryClass::device || memory == MemoryClass::stream_ordered ||
           memory == MemoryClass::array || memory == MemoryClass::managed ||
           memory == MemoryClass::physical;
  }

  std::int64_t live_ = 0;  // of what was heard; what was there before counts as 0
  std::int64_t last_ = 0;  // at the end of the last step
  std::int64_t base_ = 0;  // before the first of the rises
  std::uint64_t steps_ = 0;
  std::uint64_t rises_ = 0;
  bool unsure_ = false;
  MemoryAllocation largest_{};
  std::unordered_map<std::int32_t, std::uint64_t> last_release_;  // its correlation, by thread
};

}  // namespace ringmain::cuda::alarms
