// What has been counted? The numbers are exact while no thread publishes and nothing is in flight;
// otherwise each is right for some moment during the call.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "options.hpp"

namespace ringmain {

/// Identities (docs/guarantees.md): offered = accepted + refused (I1); accepted = delivered +
/// evicted + discarded + pending (I2).
struct ChannelStats {
  std::string name;
  bool mailbox = false;  // an isolated subscriber's or a pull mailbox's own queue
  std::uint64_t offered = 0, accepted = 0;
  std::uint64_t full = 0, closed = 0, no_memory = 0, too_deep = 0,
                vetoed = 0;     // refused, by reason
  std::uint64_t delivered = 0;  // taken by a worker and handed to all subscribers, or observed
  std::uint64_t observed = 0;   // of those: never queued, because all subscribers were inline
  std::uint64_t evicted = 0;    // pushed out by newer ones: Overflow::drop_oldest
  std::uint64_t discarded = 0;  // by stop(abort), or left when stop(drain) ran out of time
  std::uint64_t pending = 0;
  /// Of channels in the order of tickets: publishers that were passed over because they were
  /// stopped in the middle of a publish, and events that came after a younger one.
  std::uint64_t order_gaps = 0, order_late = 0;
  std::uint64_t depth_max = 0;   // the highest `pending` that the housekeeper or this call saw
  std::uint32_t publishers = 0;  // live lanes
  std::uint32_t lanes = 0;       // ever made: the peak of live ones
  std::uint32_t subscribers = 0;
  /// Nanoseconds from publish to dispatch, of each latency_every-th event; 0 where it is not
  /// measured.
  std::uint64_t latency_count = 0, latency_p50_ns = 0, latency_p90_ns = 0, latency_p99_ns = 0,
                latency_max_ns = 0;
};
struct WorkerStats {
  std::uint64_t parks = 0;  // went to sleep
  std::uint64_t wakes = 0;  // was woken; other parks ended by a timer, for realtime publishers
  std::uint64_t batches = 0, events = 0;
};

/// Events this subscriber was due, and what became of each. While no batch is running and the
/// subscription lives: offered = delivered + threw + filtered + skipped + dropped +
/// coalesced + pending (I3).
struct SubscriberStats {
  std::uint64_t offered = 0;
  std::uint64_t delivered = 0;  // the callback returned
  std::uint64_t threw = 0;
  std::uint64_t filtered = 0;
  std::uint64_t skipped = 0;  // it was closed, or its owner was gone
  std::uint64_t dropped = 0;  // its mailbox was full, pushed it out, or discarded it at stop(abort)
  std::uint64_t coalesced = 0;  // a newer one of its key took its place in the mailbox
  std::uint64_t pending = 0;    // in its mailbox
  std::uint64_t slow = 0;       // turns over its budget
  std::int64_t longest_ns = 0;  // of those, as far as it was seen
  std::uint64_t order_gaps = 0, order_late = 0;  // subscribe_ordered() only: as in ChannelStats
};

struct SubscriptionStats {
  std::string name;
  std::string channel;  // or its mailbox; "" for one that is told of interest by pattern
  Served served = Served::shared;
  bool called_inline = false;
  bool pulled = false;  // a mailbox that its user drains
  int priority = 0;
  bool attached = true;  // false: a removal waits for a call that is running
  bool quarantined = false;
  SubscriberStats figures;
};
struct HousekeeperStats {
  bool running = false;  // false: the system gave no thread for it, or the bus has stopped
  std::uint64_t wakes = 0;
};
struct Stats {
  std::vector<ChannelStats> channels;
  std::vector<WorkerStats> workers;
  std::vector<SubscriptionStats> subscriptions;
  HousekeeperStats housekeeper;
};

}  // namespace ringmain
