// All options, with units and defaults: one struct for each side.
#pragma once
#include <cstdint>
#include <string>

#include "../engine/publish/lane_kind.hpp"
#include "../engine/publish/overflow.hpp"
#include "../engine/system/durations.hpp"

namespace ringmain {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

/// segments: memory as used, the default; where Delivery::parallel or a mailbox takes runs out of
/// the lane it is moodycamel. moodycamel: a sub-queue of that library's. ring: preallocated, so
/// that no publish asks for memory.
using engine::LaneKind;
using engine::Overflow;  // drop_newest, drop_oldest, block
enum class OnThrow : std::uint8_t {
  keep,
  detach,
  quarantine,  // after throws_max within a second it is skipped, until Subscription::readmit()
  veto         // subscribe_inline only: the event is refused as well; otherwise a throw allows it
};
enum class Served : std::uint8_t {
  shared,     // on the worker that drains the channel, one subscriber after another
  isolated,   // own mailbox, drained by workers in its own turn: a slow one slows no other
  own_thread  // own mailbox and own thread, named after it: it may block for as long as it likes
};

enum class Delivery : std::uint8_t {
  serial,   // one worker at a time: callbacks of a channel never overlap, publishers keep their
            // order
  parallel  // several at once: no order, and callbacks must bear being called by several threads
};
enum class Order : std::uint8_t {
  publisher,  // each publisher's events in order, none across: publishers share nothing
  total       // all events in one order: an event published earlier is heard earlier
};

/// How the workers treat a channel. Fixed when the channel is made.
struct ChannelOptions {
  LaneKind lanes = LaneKind::segments;  // what publishers get unless they ask for another
  std::uint32_t lanes_max = 1024;       // live publishers; one more gets no_memory
  Delivery delivery = Delivery::serial;
  Order order = Order::publisher;  // total: each publish takes a ticket of a counter that all share
  /// Order::total: how long to wait for a publisher that was stopped in the middle of a publish.
  /// After that the other events go on (order_gaps), and its event comes late (order_late).
  microseconds order_gap_us_max{100'000};
  std::uint32_t latency_every = 0;  // measure publish → dispatch of each n-th event; 0: never
};

/// How one publishing thread behaves: it belongs to the thread, not to the channel. Threads that
/// publish without a Publisher get the default, or what Channel::set_thread_lanes() said.
struct PublisherOptions {
  std::uint32_t capacity_events = 65536;  // exact: this publisher's events in flight
  /// drop_oldest: of the events that are not being heard yet, the last capacity_events are kept.
  /// Those that are pushed out stay in flight until a worker looks, and a publisher that is twice
  /// capacity_events ahead gets `full`.
  Overflow overflow = Overflow::drop_newest;
  microseconds block_us_max{1'000'000};  // with Overflow::block: then `full`
  LaneKind lane = LaneKind::segments;
  bool realtime = false;     // never a system call: ring lane, memory touched first; refuses block
  bool source_time = false;  // the caller gives each event's time_ns: publish_at()
};

struct SubscribeOptions {
  Served served = Served::shared;
  int priority = 0;    // higher first, within the channel; equal ones in order of subscription
  std::string name{};  // shown in stats and messages
  OnThrow on_throw = OnThrow::keep;
  /// OnThrow::quarantine: 1 to 65,536, of which each takes 8 bytes at once.
  std::uint32_t throws_max = 10;
  // Isolated, own_thread, by pattern, and mailboxes:
  std::uint32_t queue_events = 65536;  // capacity per feeding channel, at least 1
  /// drop_newest or drop_oldest, as PublisherOptions::overflow. block is refused: a worker feeds
  /// the queue, and must never wait.
  Overflow overflow = Overflow::drop_newest;
  /// A turn (a run of up to 256 events handed to it) that takes longer is told on
  /// `bus.slow_subscriber` and counted; 0: never. While workers are busy the bus looks at them
  /// every half of its smallest budget, so a small budget costs a wake-up as often. Inline
  /// subscribers and mailboxes that their users drain are not watched.
  microseconds budget_us{100'000};
  /// Mailboxes: its events may wait while a worker rests, if all subscribers that hear them are
  /// patient. Workers rest where Python's callbacks linger (Bus.linger_ms), and nowhere else.
  bool patient = false;
};

/// For subscribe_ordered().
struct OrderOptions {
  microseconds gap_us_max{100'000};  // as ChannelOptions::order_gap_us_max
  std::string name{};                // shown in stats and messages
  OnThrow on_throw = OnThrow::keep;
  std::uint32_t queue_events = 65536;  // capacity per publisher of each channel, at least 1
};

struct BusOptions {
  unsigned workers = 0;           // 0: max(1, min(4, cores / 8)); at most 32
  std::string worker_cpus{};      // "0-3,8": the workers use those that exist; empty: inherit
  int worker_nice = 0;            // added to the process's niceness
  std::string name = "ringmain";  // names the worker threads: "<name>/0"
  microseconds spin_us{50};       // a worker looks this long for work before it parks
  // How long to wait after a short batch for a longer one, at most 1 ms; 0: lowest latency. While
  // a worker keeps catching up with its publishers it waits up to 16 times as long.
  nanoseconds linger_ns{300};
  microseconds realtime_us_max{20000};  // realtime lanes are looked at at least this often
};

}  // namespace ringmain
