// How does a bus without threads deliver? The thread that calls deliver() is the worker meanwhile.
//
// Channels, lanes, ledgers and drain() are the same as with threads, but the order is fixed and the
// thread is one, so that tests of users' subscribers run the same every time. Every channel counts
// as leased, so publishers never signal. The state of the first worker, which has no thread here,
// shows which snapshot is read.
#pragma once
#include <cstddef>
#include <cstdint>

#include "../channel/channel_table.hpp"
#include "../system/clock.hpp"
#include "workers.hpp"

namespace ringmain::engine {

/// Threads: any; one at a time delivers.
class ManualDelivery {
 public:
  ManualDelivery(ChannelHost& host, ChannelTable& table, Workers& workers) noexcept
      : host_(host), table_(table), workers_(workers) {}

  /// As ChannelHost::deliver().
  std::size_t deliver(std::size_t max, std::int64_t limit_ns) noexcept;

 private:
  std::size_t round(std::size_t max, const Deadline& deadline) noexcept;

  ChannelHost& host_;
  ChannelTable& table_;
  Workers& workers_;
  Atomic<std::uint32_t> delivering_{0};  // 1 while a thread delivers, callbacks included
};

}  // namespace ringmain::engine
