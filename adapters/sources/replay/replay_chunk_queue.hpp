// How do events get from the thread that reads them to the threads that publish them? In bounded
// chunks, one queue per recorded thread.
#pragma once
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <stop_token>
#include <utility>
#include <vector>

#include "adapters/sources/replay/kineto_map.hpp"

namespace ringmain::replay {

struct Due {
  KinetoMapped mapped;
  std::int64_t due_ns = 0;
};
using Chunk = std::vector<Due>;

/// Threads: one gives, one takes.
class ChunkQueue {
 public:
  static constexpr std::size_t kChunkEvents = 64;
  static constexpr std::size_t kChunksMax = 4;

  /// Waits for room; false: stop was requested.
  bool give(Chunk chunk, const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait(lock, stop, [this] { return chunks_.size() < kChunksMax; })) return false;
    chunks_.push_back(std::move(chunk));
    changed_.notify_all();
    return true;
  }
  [[nodiscard]] bool full() const {
    const std::lock_guard lock(mutex_);
    return chunks_.size() >= kChunksMax;
  }
  /// No more will be given.
  void close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }
  /// Waits for a chunk; false: closed and empty, or stop was requested.
  bool take(Chunk& chunk, const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait(lock, stop, [this] { return closed_ || !chunks_.empty(); })) return false;
    if (chunks_.empty()) return false;
    chunk = std::move(chunks_.front());
    chunks_.pop_front();
    changed_.notify_all();
    return true;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<Chunk> chunks_;
  bool closed_ = false;
};

}  // namespace ringmain::replay
