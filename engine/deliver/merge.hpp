// In which order does one channel hand out the events of many lanes? In that of their tickets.
//
// A ticket is one step of a counter that the whole bus shares, taken between "busy" and "published"
// of the lane. So a lane shows what may still come from it: its head; or, if it is empty and not
// busy, nothing older than the counter as it was before we looked; or, while a publisher is busy
// there, anything. A lane that is listed after our look brings nothing older than that counter
// either. The smallest head is due once no lane can bring a smaller one. A busy publisher is waited
// for up to a bound, then passed over: what it says after all is handed out late.
//
// The same for a mailbox of several channels: then the lanes looked at are the channels' own, and
// the events are taken from the mailbox's lanes, one for each of them.
// Cost: per round a look at each lane; per run a step in a heap. Model:
// tests/model/ticket_order.pml; edges t.wanted, t.counter, t.fed by the same names.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "../channel/ahead.hpp"
#include "../channel/channel_core.hpp"
#include "../channel/lane_order.hpp"
#include "../publish/lane.hpp"
#include "../subscribe/subscriber.hpp"
#include "../system/ref.hpp"

namespace ringmain::engine {

struct Drainer;

/// The ticket of an event in flight; 0: it was published before anybody wanted one. Threads: the
/// holder of the channel's lease.
[[nodiscard]] std::uint64_t ticket_of(const Lane& lane, std::uint64_t index) noexcept;
/// Of event `i` of the run that is being handed out.
[[nodiscard]] std::uint64_t ticket_of(const Run& run, std::uint32_t i) noexcept;
/// The first `count` events of the run are in `to`, a lane of a merged mailbox.
void hand_over(Lane& to, const Run& run, std::uint32_t count) noexcept;

/// Threads: the holder of the channel's lease; the counts may be read by anybody.
class Merge final : public LaneOrder {
 public:
  /// `sources`: whose lanes are looked at; none: own's. Sets room aside for as many as they may
  /// have. Throws std::bad_alloc.
  Merge(ChannelCore& own, const std::vector<Ref<ChannelCore>>& sources, std::int64_t gap_ns);
  Merge(const Merge&) = delete;
  Merge& operator=(const Merge&) = delete;

  /// Hands out what is due, at most `quantum` events. Returns the events taken.
  std::size_t drain(Drainer& drainer, std::size_t quantum) noexcept override;

 private:
  struct Source {
    const ChannelCore* channel;
    std::uint32_t lanes = 0;  // of them are among fronts_
  };
  struct Front {
    const Lane* lane;         // where it is published
    Lane* mine;               // where it is taken; nullptr: nothing has come yet
    std::uint64_t word = 0;   // lane's, at the last look
    std::uint64_t upto = 0;   // mine's events that count for that look
    bool fed = false;         // all that was published then is in mine
    std::uint64_t bound = 0;  // nothing to come has a smaller ticket
    std::uint64_t stuck_word = 0, passed_word = 0;  // busy words: never 0
    std::int64_t stuck_since_ns = 0;
  };
  struct Key {
    std::uint64_t ticket;
    bool is_head;
    std::uint32_t front;
  };

  bool look() noexcept;
  void find_lanes() noexcept;
  bool find_own_lanes() noexcept;
  void refill(Front& front) noexcept;
  [[nodiscard]] Key key_of(std::uint32_t front) noexcept;
  void push(std::uint32_t front) noexcept;
  Key pop() noexcept;
  std::uint32_t due(const Ahead& ahead, std::size_t max) noexcept;
  void wait_for(std::uint64_t oldest_head) noexcept;
  std::size_t discard(Drainer& drainer) noexcept;

  ChannelCore& own_;
  const std::int64_t gap_ns_;
  const std::vector<Ref<ChannelCore>> held_;
  std::vector<Source> sources_;
  std::uint32_t own_lanes_ = 0;  // of them are among fronts_: a mailbox's
  std::vector<Front> fronts_;
  std::vector<Key> heap_;
  std::uint64_t now_ = 0;   // the counter before the last look
  std::uint64_t last_ = 0;  // the youngest ticket handed out
  bool waits_ = true;       // false: nobody listens, so order does not matter
};

/// A channel, with its merge if its options ask for one. Throws std::bad_alloc.
[[nodiscard]] Ref<ChannelCore> make_channel_core(Ref<ChannelHost> host, ChannelCoreOptions options);

}  // namespace ringmain::engine
