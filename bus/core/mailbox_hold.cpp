#include "bus/core/mailbox_hold.hpp"

#include <new>
#include <stdexcept>
#include <utility>

#include "engine/deliver/merge.hpp"

#include "bus/core/feed.hpp"

namespace ringmain::detail {

DrainedBy drained_by(const SubscribeOptions& options, const engine::ChannelHost& host) noexcept {
  return options.served == Served::own_thread && !host.manual() ? DrainedBy::own_thread
                                                                : DrainedBy::workers;
}

void check(const SubscribeOptions& options, bool has_mailbox) {
  if (options.overflow == Overflow::block) {
    throw std::invalid_argument(
        "ringmain: a worker feeds the subscriber's queue and must never wait, so Overflow::block "
        "is refused; use drop_newest or drop_oldest, or let the publishers block");
  }
  if (!has_mailbox && options.overflow != Overflow::drop_newest) {
    throw std::invalid_argument(
        "ringmain: a shared subscriber has no queue that could overflow; use Served::isolated, or "
        "PublisherOptions::overflow");
  }
}

namespace {

engine::ChannelCoreOptions mailbox_options(std::string name, DrainedBy by) {
  engine::ChannelCoreOptions options;
  options.name = std::move(name);
  options.pulled = by != DrainedBy::workers;
  options.own_thread = by == DrainedBy::own_thread;
  return options;
}

engine::LaneOptions lanes_of(const SubscribeOptions& options) {
  engine::LaneOptions lanes = feeding_options(options.queue_events);
  lanes.overflow = options.overflow;
  return lanes;
}

}  // namespace

MailboxHold::MailboxHold(engine::ChannelHost& host, std::string name, DrainedBy by,
                         const SubscribeOptions& options)
    : MailboxHold(host, mailbox_options(std::move(name), by), lanes_of(options)) {}

MailboxHold::MailboxHold(engine::ChannelHost& host, engine::ChannelCoreOptions options,
                         const engine::LaneOptions& lanes)
    : lanes_(lanes) {
  options.mailbox = true;
  options.lanes_max = engine::ChannelCore::kLanesMax;
  const bool for_its_user = options.for_its_user();
  core_ = engine::make_channel_core(&host, std::move(options));
  if (!host.add(*core_)) throw std::bad_alloc();
  if (for_its_user) core_->begin_listening();
}

MailboxHold::~MailboxHold() {
  if (core_) core_->host().retire(*core_);
}

}  // namespace ringmain::detail
