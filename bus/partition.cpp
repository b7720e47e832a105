#include "bus/partition.hpp"

#include <string>
#include <vector>

#include "bus/core/feed.hpp"
#include "bus/core/subscription_core.hpp"

namespace ringmain::detail {

class Parts {
 public:
  Parts(engine::ChannelCore& channel, std::size_t n, const SubscribeOptions& options)
      : channel_(&channel), options_(options) {
    lanes_.reserve(n);
    subscriptions_.reserve(n);
  }
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;
  ~Parts() {
    for (engine::Lane* lane : lanes_) {
      engine::ChannelCore::give_lane(*lane);
      // The mailbox's own thread may wait for the feeder to go.
      if (lane->channel->options().own_thread) engine::tell_reader(lane->channel->pull);
    }
  }

  void add(engine::Subscriber* consumer) {
    Orphan orphan{consumer};
    const std::string name = options_.name.empty() ? channel_->options().name : options_.name;
    const std::string part = name + " part " + std::to_string(lanes_.size());
    const engine::Ref<MailboxHold> mailbox =
        new MailboxHold(channel_->host(), part, drained_by(options_, channel_->host()), options_);
    const engine::Ref<SubscriptionCore> made = new SubscriptionCore(consumer, mailbox, options_);
    orphan.subscriber = nullptr;
    made->set_host(SubscriptionHost::of(*channel_));
    made->listen(mailbox->core());
    made->start_thread(part);
    engine::Lane* lane = mailbox->core().take_lane(mailbox->lanes(), *channel_);
    if (lane == nullptr) throw std::bad_alloc();
    lanes_.push_back(lane);
    subscriptions_.push_back(made);
  }
  void feed(std::size_t part, const engine::Run& run, std::uint32_t i) noexcept {
    (void)feed_one(*lanes_[part], run, i);
  }
  [[nodiscard]] const std::vector<engine::Ref<SubscriptionCore>>& subscriptions() const {
    return subscriptions_;
  }
  [[nodiscard]] bool want_time() const { return want_time_; }
  void set_want_time(bool want) { want_time_ = want; }

 private:
  engine::Ref<engine::ChannelCore> channel_;
  const SubscribeOptions options_;
  std::vector<engine::Lane*> lanes_;
  std::vector<engine::Ref<SubscriptionCore>> subscriptions_;  // they hold the mailboxes
  bool want_time_ = false;
};

void FreeParts::operator()(Parts* parts) const noexcept {
  delete parts;
}

Result<PartsPtr> make_parts(engine::ChannelCore& channel, std::size_t n,
                            const SubscribeOptions& options) {
  enum : std::size_t { kPartsMax = 1024 };
  if (channel.inert()) {
    return Error{Error::Code::refused,
                 "channel '" + channel.options().name +
                     "' belongs to the process that forked this one; make a Bus in the child"};
  }
  if (n == 0 || n > kPartsMax) {
    return Error{Error::Code::refused, "partition_by with " + std::to_string(n) +
                                           " partitions; use 1 to 1024, about as many as workers"};
  }
  if (channel.options().parallel) {
    return Error{Error::Code::refused,
                 "channel '" + channel.options().name +
                     "' delivers in parallel, so no key could keep its order; configure it with "
                     "Delivery::serial"};
  }
  check(options, true);
  return PartsPtr(new Parts(channel, n, options));
}

void add_part(Parts& parts, engine::Subscriber* consumer) {
  parts.set_want_time(consumer->wants_time);
  parts.add(consumer);
}

void feed_part(Parts& parts, std::size_t part, const engine::Run& run, std::uint32_t i) noexcept {
  parts.feed(part, run, i);
}

Subscription attach_parts(engine::ChannelCore& channel, Parts& parts, engine::Subscriber* sorter,
                          SubscribeOptions options) {
  Orphan orphan{sorter};
  if (channel.inert()) return {};
  sorter->wants_time = parts.want_time();
  options.served = Served::shared;  // the sorter itself only copies
  const engine::Ref<SubscriptionCore> made =
      new SubscriptionCore(sorter, {}, std::move(options), parts.subscriptions());
  orphan.subscriber = nullptr;
  made->set_host(SubscriptionHost::of(channel));
  made->listen(channel);
  return handle_of(*made);
}

}  // namespace ringmain::detail
