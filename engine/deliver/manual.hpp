// How does a bus without threads deliver? Whoever calls deliver() is the worker, for that long.
//
// The same channels, lanes, ledgers and drain(), in a fixed order and in one thread: tests of
// users' subscribers run the same every time. Every channel counts as leased, so that publishers
// never signal; the first worker's state, which has no thread, shows what is read.
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
  Atomic<std::uint32_t> delivering_{0};  // 1 while somebody delivers, callbacks included
};

}  // namespace ringmain::engine
