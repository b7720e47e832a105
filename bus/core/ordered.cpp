#include "bus/core/ordered.hpp"

#include <climits>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "engine/deliver/merge.hpp"

#include "bus/core/feed.hpp"

namespace ringmain::detail {
namespace {

/// An ordered feeder's captures: its lanes in the mailbox, and what keeps tickets wanted.
class OrderedFeed {
 public:
  static constexpr bool wants_time() { return false; }

  OrderedFeed(engine::Ref<MailboxHold> mailbox, engine::Ref<engine::ChannelCore> source)
      : mailbox_(std::move(mailbox)), source_(std::move(source)) {
    if (!source_->want_tickets()) {
      source_ = {};
      throw std::bad_alloc();
    }
  }
  OrderedFeed(OrderedFeed&& other) noexcept
      : mailbox_(std::move(other.mailbox_)),
        source_(std::move(other.source_)),
        lanes_(std::move(other.lanes_)) {
    other.source_ = {};
  }
  OrderedFeed& operator=(OrderedFeed&&) = delete;
  ~OrderedFeed() {
    if (!source_) return;
    source_->unwant_tickets();
    for (engine::Lane* lane : lanes_) {
      if (lane != nullptr) engine::ChannelCore::give_lane(*lane);
    }
  }

  void operator()(engine::Subscriber& s, const engine::Run& run) noexcept {
    engine::Lane* to = lane_for(*run.lane);
    std::uint32_t i = 0;
    for (; i < run.count && !s.gate.closed(); ++i) {
      if (to == nullptr) {
        mailbox_->core().count_refused(engine::Pushed::no_memory);
      } else {
        (void)feed_one(*to, run, i, engine::ticket_of(run, i));
      }
    }
    if (to != nullptr) engine::hand_over(*to, run, i);
    s.count(s.delivered, i);
    if (i < run.count) s.count(s.skipped, run.count - i);
  }

 private:
  /// nullptr: out of memory.
  engine::Lane* lane_for(const engine::Lane& from) noexcept {
    try {
      if (from.index >= lanes_.size()) lanes_.resize(from.index + 1);
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
    engine::Lane*& lane = lanes_[from.index];
    if (lane == nullptr) {
      lane = mailbox_->core().take_lane(mailbox_->lanes(), *source_, &from);
    }
    return lane;
  }

  engine::Ref<MailboxHold> mailbox_;
  engine::Ref<engine::ChannelCore> source_;
  std::vector<engine::Lane*> lanes_;  // by the index of the channel's lane that feeds them
};

}  // namespace

engine::Ref<MailboxHold> make_ordered_mailbox(std::span<engine::ChannelCore* const> channels,
                                              const OrderOptions& options) {
  engine::ChannelCoreOptions order;
  order.name = options.name.empty() ? "ordered mailbox" : options.name;
  order.merged = true;
  order.order_gap_ns_max = engine::ns_of_us(options.gap_us_max.count());
  for (engine::ChannelCore* c : channels) {
    if (c->options().parallel) {
      throw std::invalid_argument("ringmain: channel '" + c->options().name +
                                  "' delivers in parallel and so has no order; subscribe to it "
                                  "without one, or configure it with Delivery::serial");
    }
    order.sources.emplace_back(c);
  }
  return new MailboxHold(channels.front()->host(), std::move(order),
                         feeding_options(options.queue_events));
}

engine::Subscriber* make_ordered_feeder(const engine::Ref<MailboxHold>& mailbox,
                                        engine::ChannelCore& source) {
  engine::Subscriber* feeder = make_subscriber(OrderedFeed(mailbox, &source));
  feeder->priority = INT_MAX;  // it only copies, so it comes before subscribers that may be slow
  return feeder;
}

}  // namespace ringmain::detail
