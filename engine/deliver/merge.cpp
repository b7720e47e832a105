#include "engine/deliver/merge.hpp"

#include <algorithm>

#include "engine/channel/channel_core.hpp"
#include "engine/deliver/drain.hpp"

namespace ringmain::engine {
namespace {

enum : std::uint64_t { kNever = ~std::uint64_t{0} };
enum : std::uint32_t { kNotListed = ~std::uint32_t{0} };  // in a front's place: lanes to come

bool has_head(const Lane* lane) noexcept {
  return lane != nullptr && lane->ahead->run.count != 0;
}

std::uint64_t taken_off(const Lane& lane) noexcept {
  // Relaxed: our own while we hold the lease.
  return lane.consumed.load(std::memory_order_relaxed) + lane.ahead->run.count;
}

}  // namespace

std::uint64_t ticket_of(const Lane& lane, std::uint64_t index) noexcept {
  const Tickets* tickets = lane.ordered.tickets.load(std::memory_order_acquire);  // t.wanted
  if (tickets == nullptr) return 0;
  const std::uint64_t ticket = tickets->of[index & tickets->mask];
  // A smaller ticket is an older event's, left from the last time that tickets were wanted.
  return ticket < lane.channel->tickets_since() ? 0 : ticket;
}

std::uint64_t ticket_of(const Run& run, std::uint32_t i) noexcept {
  // Relaxed: raised after the run, by the lease's holder.
  return ticket_of(*run.lane, run.lane->consumed.load(std::memory_order_relaxed) + i);
}

void hand_over(Lane& to, const Run& run, std::uint32_t count) noexcept {
  to.ordered.fed.store(
      run.lane->consumed.load(std::memory_order_relaxed) + count,  // relaxed: as above
      std::memory_order_release);                                  // t.fed
}

Merge::Merge(ChannelCore& own, const std::vector<Ref<ChannelCore>>& sources, std::int64_t gap_ns)
    : own_(own), gap_ns_(gap_ns), held_(sources) {
  if (sources.empty()) sources_.push_back({&own});
  for (const auto& s : sources) sources_.push_back({s.get()});
  std::size_t lanes = 0;
  for (const Source& s : sources_)
    lanes += std::min<std::uint32_t>(s.channel->options().lanes_max, ChannelCore::kLanesMax);
  fronts_.reserve(lanes);
  heap_.reserve(lanes + 1);  // and kNotListed
}

// --- looking ---

/// Room for all lanes that there may be was set aside: an ordered subscriber never waits for
/// memory.
void Merge::find_lanes() noexcept {
  for (Source& s : sources_) {
    for (const std::uint32_t count = s.channel->lane_count(); s.lanes < count; ++s.lanes) {
      Lane& lane = s.channel->lane(s.lanes);
      fronts_.push_back({&lane, s.channel == &own_ ? &lane : nullptr});
    }
  }
}

/// Finds a mailbox's lanes, which its feeders made. All that `fed_by` has handed over is in them.
bool Merge::find_own_lanes() noexcept {
  if (sources_.front().channel == &own_) return true;
  for (const std::uint32_t count = own_.lane_count(); own_lanes_ < count; ++own_lanes_) {
    Lane& lane = own_.lane(own_lanes_);
    const auto at = std::find_if(fronts_.begin(), fronts_.end(),
                                 [&lane](const Front& f) { return f.lane == lane.ordered.fed_by; });
    if (at == fronts_.end()) return false;  // younger than the look: begin again
    at->mine = &lane;
  }
  return true;
}

/// Reads the counter, then the lanes' words, then their heads. So what a lane did not show yet, and
/// all that comes from a lane that was not listed yet, has a younger ticket than `now_`. False:
/// look again.
bool Merge::look() noexcept {
  now_ = own_.host().tickets_taken();  // t.counter
  waits_ = own_.line.heard();
  find_lanes();
  for (Front& f : fronts_) {
    f.word = f.lane->word.load(std::memory_order_acquire);  // e.published
    f.upto = f.word >> 1;
    f.fed = f.lane == f.mine ||
            (f.mine != nullptr &&
             f.mine->ordered.fed.load(std::memory_order_acquire) == f.upto) ||  // t.fed
            f.lane->consumed.load(std::memory_order_acquire) == f.upto;         // e.consumed
    if (f.word != f.passed_word) f.passed_word = 0;
  }
  if (!find_own_lanes()) return false;
  heap_.clear();
  for (std::uint32_t i = 0; i < fronts_.size(); ++i) {
    Front& f = fronts_[i];
    if (f.mine != f.lane) f.upto = f.mine == nullptr ? 0 : f.mine->published();
    if (f.mine != nullptr && !has_head(f.mine)) refill(f);
    push(i);
  }
  push(kNotListed);
  return true;
}

void Merge::refill(Front& front) noexcept {
  Lane& lane = *front.mine;
  Ahead& ahead = *lane.ahead;
  const std::size_t bytes = ahead.room == nullptr ? 0 : std::size_t{ahead.max} * lane.slot_bytes;
  ahead.run = take_run(lane, {ahead.room.get(), bytes}, ahead.max);
  ahead.at = 0;
  const std::uint64_t first = lane.consumed.load(std::memory_order_relaxed);  // relaxed: our own
  for (std::uint32_t i = 0; i < ahead.run.count; ++i) ahead.tickets[i] = ticket_of(lane, first + i);
}

// --- choosing ---

/// The ticket of the lane's head, or else one that its next event is not older than.
Merge::Key Merge::key_of(std::uint32_t front) noexcept {
  if (front == kNotListed) return {waits_ ? now_ : std::uint64_t{kNever}, false, front};
  Front& f = fronts_[front];
  if (has_head(f.mine)) return {f.mine->ahead->head(), true, front};
  const bool drained = f.fed && (f.mine == nullptr || taken_off(*f.mine) >= f.upto);
  const bool busy = (f.word & 1) != 0;
  if (drained && (!busy || f.word == f.passed_word)) f.bound = std::max(f.bound, now_);
  return {waits_ ? f.bound : std::uint64_t{kNever}, false, front};
}

void Merge::push(std::uint32_t front) noexcept {
  heap_.push_back(key_of(front));
  std::push_heap(heap_.begin(), heap_.end(), [](const Key& a, const Key& b) {
    return a.ticket != b.ticket ? a.ticket > b.ticket : a.is_head < b.is_head;
  });
}

Merge::Key Merge::pop() noexcept {
  std::pop_heap(heap_.begin(), heap_.end(), [](const Key& a, const Key& b) {
    return a.ticket != b.ticket ? a.ticket > b.ticket : a.is_head < b.is_head;
  });
  const Key least = heap_.back();
  heap_.pop_back();
  return least;
}

/// How many of a lane's events come before the next event of every other lane: at least its head.
std::uint32_t Merge::due(const Ahead& ahead, std::size_t max) noexcept {
  const std::uint64_t next = heap_.empty() ? std::uint64_t{kNever} : heap_.front().ticket;
  const auto limit = static_cast<std::uint32_t>(std::min<std::size_t>(max, ahead.run.count));
  std::uint32_t n = 0;
  std::uint64_t overtaken = 0;
  for (; n < limit && (n == 0 || ahead.tickets[ahead.at + n] <= next); ++n) {
    const std::uint64_t ticket = ahead.tickets[ahead.at + n];
    if (ticket == 0 || !waits_)
      continue;  // published before tickets were wanted, or heard by nobody
    overtaken += ticket < last_;
    last_ = std::max(last_, ticket);
  }
  if (overtaken != 0) late.add(overtaken);
  return n;
}

std::size_t Merge::drain(Drainer& drainer, std::size_t quantum) noexcept {
  if (!look()) return 0;
  if (own_.host().aborting()) return discard(drainer);
  std::size_t taken = 0;
  while (taken < quantum && !heap_.empty()) {
    const Key least = pop();
    if (!least.is_head) {
      if (taken == 0) wait_for(least.ticket);
      break;
    }
    Front& f = fronts_[least.front];
    Ahead& ahead = *f.mine->ahead;
    Run run = ahead.run;
    run.count = due(ahead, quantum - taken);
    if (taken == 0) drainer.before_callbacks(own_);
    taken += run.count;
    ahead.run.first += std::size_t{run.count} * run.stride;
    ahead.run.count -= run.count;
    ahead.at += run.count;
    f.bound = std::max(f.bound, ahead.tickets[ahead.at - 1] + 1);
    hand_out(drainer, own_, *f.mine, run);
    if (ahead.run.count == 0) refill(f);
    push(least.front);
  }
  return taken;
}

/// For a head that lanes hold up which may bring an older event. A publisher that has been busy for
/// too long is passed over; an event that is published but has not arrived here is waited for.
void Merge::wait_for(std::uint64_t bound) noexcept {
  std::uint64_t oldest = kNever;
  for (const Front& f : fronts_) {
    if (has_head(f.mine)) oldest = std::min(oldest, f.mine->ahead->head());
  }
  if (oldest == kNever || oldest <= bound) return;
  const std::int64_t now = now_ns();
  for (Front& f : fronts_) {
    const bool drained = f.fed && (f.mine == nullptr || taken_off(*f.mine) >= f.upto);
    if (has_head(f.mine) || !drained || (f.word & 1) == 0 || f.bound >= oldest) continue;
    if (f.stuck_word != f.word) {
      f.stuck_word = f.word;
      f.stuck_since_ns = now;
    } else if (now - f.stuck_since_ns >= gap_ns_) {
      f.passed_word = f.word;
      gaps.add(1);
    }
  }
}

std::size_t Merge::discard(Drainer& drainer) noexcept {
  std::size_t taken = 0;
  for (Front& f : fronts_) {
    for (; has_head(f.mine); refill(f)) {
      if (taken == 0) drainer.before_callbacks(own_);
      taken += f.mine->ahead->run.count;
      const Run run = std::exchange(f.mine->ahead->run, Run{});
      discard_run(own_, *f.mine, run);
    }
  }
  return taken;
}

Ref<ChannelCore> make_channel_core(Ref<ChannelHost> host, ChannelCoreOptions options) {
  const Ref<ChannelCore> made(new ChannelCore(std::move(host), std::move(options)));
  if (made->options().merged) {
    made->set_lane_order(
        std::make_unique<Merge>(*made, made->options().sources, made->options().order_gap_ns_max));
  }
  return made;
}

}  // namespace ringmain::engine
