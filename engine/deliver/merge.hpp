// In which order does one channel hand out the events of many lanes? In that of their tickets.
//
// A ticket is one step of a counter that the whole bus shares. A publisher takes it while its lane
// says "busy", before it says "published". So a look at a lane tells which tickets may still come
// from it: from its head on, if it has one; if it is empty and not busy, none older than the
// counter was before the look; while a publisher is busy there, any. A lane that is listed after
// the look brings none older than that counter either. The smallest head is due once no lane can
// bring a smaller one. The merge waits for a busy publisher up to a bound, then passes it over;
// what that publisher says later is handed out late.
//
// A mailbox of several channels is merged in the same way: the merge looks at the channels' lanes
// and takes the events from the mailbox's, which has one for each of them. Cost: per round a look
// at each lane; per run a step in a heap. Model: tests/model/ticket_order.pml, with the edges
// t.wanted, t.counter and t.fed.
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

/// The ticket of an event in flight; 0 if it was published before tickets were wanted. Threads: the
/// holder of the channel's lease.
[[nodiscard]] std::uint64_t ticket_of(const Lane& lane, std::uint64_t index) noexcept;
/// The same for event `i` of the run that is being handed out.
[[nodiscard]] std::uint64_t ticket_of(const Run& run, std::uint32_t i) noexcept;
/// Says that the first `count` events of the run are in `to` now, a lane of a merged mailbox.
void hand_over(Lane& to, const Run& run, std::uint32_t count) noexcept;

/// Threads: the holder of the channel's lease; any thread may read the counts.
class Merge final : public LaneOrder {
 public:
  /// `sources`: the channels whose lanes are looked at; where there are none, `own`. Sets room
  /// aside for all lanes that they may ever have. Throws std::bad_alloc.
  Merge(ChannelCore& own, const std::vector<Ref<ChannelCore>>& sources, std::int64_t gap_ns);
  Merge(const Merge&) = delete;
  Merge& operator=(const Merge&) = delete;

  /// Hands out what is due, at most `quantum` events. Returns how many it took.
  std::size_t drain(Drainer& drainer, std::size_t quantum) noexcept override;

 private:
  struct Source {
    const ChannelCore* channel;
    std::uint32_t lanes = 0;  // so many of its lanes are among fronts_
  };
  struct Front {
    const Lane* lane;         // where it is published
    Lane* mine;               // where it is taken; nullptr until something has come
    std::uint64_t word = 0;   // lane's, at the last look
    std::uint64_t upto = 0;   // how many events of `mine` count for that look
    bool fed = false;         // all that was published by that look is in `mine`
    std::uint64_t bound = 0;  // no event to come has a smaller ticket
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
  std::uint32_t own_lanes_ = 0;  // of a mailbox: how many of its lanes are among fronts_
  std::vector<Front> fronts_;
  std::vector<Key> heap_;
  std::uint64_t now_ = 0;   // the counter before the last look
  std::uint64_t last_ = 0;  // the youngest ticket handed out
  bool waits_ = true;       // false: nobody listens, so order does not matter
};

/// A channel, with its merge if its options ask for one. Throws std::bad_alloc.
[[nodiscard]] Ref<ChannelCore> make_channel_core(Ref<ChannelHost> host, ChannelCoreOptions options);

}  // namespace ringmain::engine
