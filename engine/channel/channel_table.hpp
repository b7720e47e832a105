// Which channels does a bus have? A table by index: workers find a channel by its bit's number,
// without a lock. A channel that was taken out is freed once no worker looks at it (l.visiting).
#pragma once
#include <array>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include "../deliver/ready_channels.hpp"
#include "../system/atomics.hpp"
#include "../system/ref.hpp"
#include "channel_core.hpp"
#include "channel_host.hpp"

namespace ringmain::engine {

/// Threads: any.
class ChannelTable {
 public:
  enum : std::uint32_t { kChannelsMax = ReadyChannels::kChannelsMax };
  using Entry = Atomic<ChannelCore*>;

  /// Throws std::bad_alloc; from then on it allocates nothing.
  ChannelTable();
  ChannelTable(const ChannelTable&) = delete;
  ChannelTable& operator=(const ChannelTable&) = delete;

  /// Takes a holder of `channel` and gives it an index; from then on workers find it, and `ready`
  /// has its bit. Not if `host` has stopped: no worker will drain the channel, and no thread can
  /// publish to it. False: kChannelsMax are there.
  [[nodiscard]] bool add(ChannelCore& channel, const ChannelHost& host,
                         ReadyChannels& ready) noexcept;
  /// From now on a channel that is added is closed.
  void close() noexcept {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  /// Takes the channel out. Called by the worker that holds its lease, and keeps it: no other
  /// worker can get at the channel. `visited(channel)`: is a worker looking at it? Then it is freed
  /// later.
  template <class Visited>
  void dispose(ChannelCore& channel, Visited visited) noexcept {
    const std::lock_guard lock(mutex_);
    Entry& entry = table_[channel.index()];
    if (entry.load(std::memory_order_relaxed) != &channel) return;  // relaxed: under our lock
    entry.store(nullptr, std::memory_order_release);                // e.listed
    free_.push_back(channel.index());
    disposed_.push_back(&channel);
    free_disposed(visited);
  }
  /// Frees channels that were taken out and that no worker looks at.
  template <class Visited>
  void trim(Visited visited) noexcept {
    const std::lock_guard lock(mutex_);
    if (!disposed_.empty()) free_disposed(visited);
  }
  /// Lets go of all channels.
  void clear() noexcept;
  /// In the only thread of a forked child. Takes no lock, as a thread that is gone may hold it.
  void become_forked() noexcept;

  [[nodiscard]] Entry& entry(std::uint32_t index) noexcept { return table_[index]; }
  [[nodiscard]] std::vector<Ref<ChannelCore>> channels() const;
  /// Without an allocation: the next channel at or after `index`, which moves on to the place after
  /// it. Empty: there are no more.
  [[nodiscard]] Ref<ChannelCore> next_channel(std::uint32_t& index) const noexcept;
  /// The channel at that place; `more` is false past the last.
  [[nodiscard]] Ref<ChannelCore> at(std::uint32_t index, bool& more) const noexcept {
    const std::lock_guard lock(mutex_);
    more = index < next_;
    return more ? table_[index].load(std::memory_order_relaxed) : nullptr;  // relaxed: as below
  }
  /// `f(channel)`, under the lock: `f` must not use the table.
  template <class F>
  void for_each_locked(F f) const noexcept {
    const std::lock_guard lock(mutex_);
    for (std::uint32_t i = 0; i < next_; ++i) {
      if (const ChannelCore* c = table_[i].load(std::memory_order_relaxed))
        f(*c);  // relaxed: written under our lock
    }
  }
  /// `f(subscriber, channel)` for the subscriber of that id, if it is still there. Throws
  /// std::bad_alloc.
  template <class F>
  void with_subscriber(std::uint32_t watch_id, F f) const {
    for (const auto& channel : channels()) {
      bool found = false;
      channel->for_each_subscriber([&](Subscriber& s) {
        if (s.watch_id == watch_id && !std::exchange(found, true)) f(s, *channel);
      });
      if (found) return;
    }
  }

 private:
  template <class Visited>
  void free_disposed(Visited visited) noexcept {
    asymmetric_fence_heavy();  // l.visiting
    std::erase_if(disposed_, [&visited](ChannelCore* c) {
      if (visited(*c)) return false;
      c->release();
      return true;
    });
  }

  std::array<Entry, kChannelsMax> table_{};
  mutable std::mutex mutex_;  // table_, free_, disposed_
  std::vector<std::uint32_t> free_;
  std::uint32_t next_ = 0;
  std::vector<ChannelCore*> disposed_;
  bool closing_ = false;
};

}  // namespace ringmain::engine
