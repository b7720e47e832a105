// What does a subscription ask of its bus? To show it in figures, to stop feeding it, to keep it,
// to tell that it waits. Seldom, so it is virtual. The bus's core is behind it; so
// subscriptions know no table of channels, and the core may know subscriptions. Not for users of
// the library.
#pragma once
#include <cstdint>
#include <string>

#include "../../engine/channel/channel_core.hpp"
#include "../../engine/system/arrivals.hpp"

namespace ringmain::detail {

class SubscriptionCore;

/// Threads: any.
class SubscriptionHost : public engine::Counted {
 public:
  /// The one whose channel this is.
  [[nodiscard]] static SubscriptionHost* of(const engine::ChannelCore& channel) noexcept {
    return static_cast<SubscriptionHost*>(channel.options().owner);
  }
  /// Counts each subscriber that was listed on one of its channels, mailboxes and hook rows.
  [[nodiscard]] engine::Arrivals& arrivals() noexcept { return arrivals_; }

  /// It is among the figures from here to forget().
  virtual void remember(SubscriptionCore& subscription) noexcept = 0;
  virtual void forget(SubscriptionCore& subscription) noexcept = 0;
  /// No channel that comes feeds it any more.
  virtual void remove_pattern(const SubscriptionCore& subscription) noexcept = 0;
  /// Until the end of the bus, or of the hook row it is on. False: that was already.
  [[nodiscard]] virtual bool keep_until_the_end(SubscriptionCore& subscription) noexcept = 0;

  /// Tells `subscriber`, which holds for each call an InterestTold in its run, who listens to
  /// `channel`, or to each that matches `pattern`. `again`: also about every second and whenever a
  /// round is asked for, though nothing has changed; for a channel only. Takes over one holder.
  /// Throws std::bad_alloc.
  virtual void watch_interest(engine::Subscriber* subscriber,
                              engine::Ref<engine::ChannelCore> channel, std::string pattern,
                              bool again) = 0;
  /// It is closed: what no round has seen of it yet is given back now.
  virtual void unwatch_interest(const engine::Subscriber& subscriber) noexcept = 0;
  /// A reset() has begun to wait for long; the answer is for waits_no_more(). Throws
  /// std::bad_alloc.
  [[nodiscard]] virtual std::uint64_t waits(std::string subscriber, std::string channel,
                                            std::int64_t since_ns) = 0;
  virtual void waits_no_more(std::uint64_t which) noexcept = 0;

 private:
  engine::Arrivals arrivals_;
};

}  // namespace ringmain::detail
