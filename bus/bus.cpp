#include "bus/bus.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "engine/channel/accounts.hpp"
#include "engine/publish/missed.hpp"

#include "bus/copies.hpp"
#include "bus/core/bus_core.hpp"
#include "bus/core/door_core.hpp"
#include "bus/core/first_use.hpp"
#include "bus/core/mailbox_hold.hpp"
#include "bus/core/or_error.hpp"
#include "bus/core/ordered.hpp"
#include "bus/core/recording_core.hpp"
#include "bus/core/subscription_core.hpp"

namespace ringmain {
Bus::Bus(const BusOptions& options) : Bus(new detail::BusCore(options)) {}

Bus::Bus(detail::BusCore* core) noexcept : core_(core) {
  core_->hold();
  detail::list_bus(*core);
  detail::open_door_of_environment();
}

Bus::~Bus() {
  const auto end = [](detail::BusCore* core) noexcept {
    core->end();
    detail::unlist_bus(*core);
    core->release();
  };
  if (!engine::in_callback()) {
    end(core_);
    return;
  }
  // A worker that waited here might wait for itself, so a new thread does it. Where the system
  // gives no thread, or there is no memory for one, the core is leaked rather than freed under its
  // workers.
  try {
    std::thread(end, core_).detach();
  } catch (const std::exception&) {
  }
}

Bus& Bus::process() {
  // Never destroyed: threads publish until the process ends. A once_flag, because a fork in the
  // middle resets it, which it does not do with the guard of a static.
  static std::once_flag once;
  static Bus* bus = nullptr;
  std::call_once(once, [] {
    bus = new Bus;
    engine::count_missed_of(bus->core_->engine());
    detail::tell_of_copies();
    detail::say_process_bus_is_made();
  });
  auto* const tell = detail::told_of_first_use();
  if (tell != nullptr && !bus->core_->forked()) [[unlikely]]
    tell();
  return *bus;
}

engine::ChannelCore& Bus::find(std::string_view name, const Schema& schema,
                               const ChannelOptions* options) {
  auto found = core_->channel(name, schema, options);
  if (!found) {
    std::fprintf(stderr, "ringmain: %s\n", found.error().message.c_str());
    std::abort();
  }
  return *found.value();
}

detail::TakenLane detail::take_default_lane(Bus* bus, std::string_view channel,
                                            const Schema& schema) {
  Bus& of = bus == nullptr ? Bus::process() : *bus;
  return take_default_lane(of.find(channel, schema, nullptr));
}

Result<engine::ChannelCore*> Bus::configure_core(std::string_view name, const Schema& schema,
                                                 const ChannelOptions& options) {
  if (options.lanes_max == 0)
    return Error{Error::Code::refused, "lanes_max is 0: nobody could publish; use 1 or more"};
  if (options.delivery == Delivery::parallel && options.order == Order::total) {
    return Error{Error::Code::refused,
                 "Delivery::parallel has no order to be total; leave one of the two out"};
  }
  if (options.delivery == Delivery::parallel && options.lanes == LaneKind::ring) {
    return Error{Error::Code::refused,
                 "a ring's events are heard in place, one run after another: Delivery::parallel "
                 "needs LaneKind::moodycamel"};
  }
  return core_->channel(name, schema, &options);
}

Result<std::unique_ptr<Bus>> Bus::try_make(const BusOptions& options) noexcept {
  return detail::or_error([&] { return std::make_unique<Bus>(options); });
}

Result<Subscription> Bus::try_subscribe_core(std::string_view pattern,
                                             engine::Subscriber* subscriber,
                                             SubscribeOptions options) noexcept {
  if (subscriber == nullptr) return detail::out_of_memory();
  return detail::or_error([&] { return subscribe_core(pattern, subscriber, std::move(options)); });
}

Subscription Bus::subscribe_core(std::string_view pattern, engine::Subscriber* subscriber,
                                 SubscribeOptions options) {
  detail::Orphan orphan{subscriber};
  if (core_->forked()) return {};
  detail::check(options, true);
  const engine::Ref<detail::MailboxHold> mailbox = new detail::MailboxHold(
      core_->engine(), options.name.empty() ? "mailbox of " + std::string(pattern) : options.name,
      detail::drained_by(options, core_->engine()), options);
  const engine::Ref<detail::SubscriptionCore> made =
      new detail::SubscriptionCore(subscriber, mailbox, std::move(options));
  orphan.subscriber = nullptr;
  made->set_host(core_);
  made->listen(mailbox->core());
  made->start_thread(pattern);
  core_->add_pattern(*made, pattern);
  return detail::handle_of(*made);
}

Subscription Bus::subscribe_once_made(const Schema& schema, engine::Subscriber* subscriber,
                                      SubscribeOptions options) {
  detail::Orphan orphan{subscriber};
  if (core_->forked()) return {};
  detail::check(options, false);
  const engine::Ref<detail::SubscriptionCore> made =
      new detail::SubscriptionCore(subscriber, {}, std::move(options));
  orphan.subscriber = nullptr;
  made->set_host(core_);
  made->set_awaited(schema);
  core_->add_pattern(*made, schema.name);
  return detail::handle_of(*made);
}

Subscription Bus::subscribe_ordered_core(std::span<engine::ChannelCore* const> channels,
                                         engine::Subscriber* subscriber, OrderOptions options) {
  detail::Orphan orphan{subscriber};
  if (channels.front()->inert()) return {};
  const engine::Ref<detail::MailboxHold> mailbox = detail::make_ordered_mailbox(channels, options);
  SubscribeOptions consumer;
  consumer.name = std::move(options.name);
  consumer.on_throw = options.on_throw;
  const engine::Ref<detail::SubscriptionCore> made =
      new detail::SubscriptionCore(subscriber, mailbox, std::move(consumer));
  orphan.subscriber = nullptr;
  made->set_host(core_);
  made->listen(mailbox->core());
  for (engine::ChannelCore* c : channels) made->feed_from(*c);
  return detail::handle_of(*made);
}

Subscription Bus::on_interest_core(engine::ChannelCore* channel, std::string_view pattern,
                                   engine::Subscriber* subscriber, SubscribeOptions options) {
  detail::Orphan orphan{subscriber};
  if (core_->forked()) return {};
  const engine::Ref<detail::SubscriptionCore> made =
      new detail::SubscriptionCore(subscriber, {}, std::move(options));
  orphan.subscriber = nullptr;
  made->set_host(core_);
  made->watch(channel, pattern);
  return detail::handle_of(*made);
}

Result<Recording> Bus::record(std::string_view patterns, RecordOptions options) {
  if (core_->forked()) {
    return Error{Error::Code::refused,
                 "the bus belongs to the process that forked this one; make a Bus in the child"};
  }
  auto list = detail::patterns_of(patterns);
  if (!list) return list.error();
  try {
    const engine::Ref<detail::RecordingCore> made =
        new detail::RecordingCore(std::move(list).value(), std::move(options));
    if (!core_->begin_recording(*made)) {
      return Error{Error::Code::refused, "a bus has " +
                                             std::to_string(engine::flight::kRecordingsMax) +
                                             " recordings at most; end one first"};
    }
    made->hold();
    return Recording(made.get());
  } catch (const std::invalid_argument& wrong) {
    return Error{Error::Code::refused, wrong.what()};
  } catch (const std::system_error& no_room) {
    return Error{Error::Code::no_memory, no_room.what()};
  }
}

bool Bus::wait_told(nanoseconds limit) {
  return !core_->forked() && core_->engine().house().await_round(limit.count());
}

AnyMailbox Bus::mailbox(std::string_view pattern, SubscribeOptions options) {
  return AnyMailbox(detail::make_pull_mailbox(*core_, pattern, std::move(options)));
}

bool Bus::flush(nanoseconds limit) {
  return core_->engine().flush(limit.count());
}

namespace {
std::vector<std::string> unbalanced(const detail::BusCore& core);
}

Stopped Bus::stop(StopMode mode, nanoseconds limit) {
  auto s = core_->engine().stop(mode == StopMode::abort, limit.count());
  Stopped stopped{s.refused, s.left, std::move(s.stuck), {}};
  if (!stopped.refused && !core_->forked() && stopped.left == 0 && stopped.stuck.empty())
    stopped.unbalanced = unbalanced(*core_);
  return stopped;
}

Stats Bus::stats() const {
  return detail::stats_of(*core_);
}

Stats detail::stats_of(const BusCore& bus) {
  Stats all;
  if (bus.forked()) return all;
  for (const auto& c : bus.channels()) all.channels.push_back(stats_of(*c));
  for (const auto& c : bus.engine().channels()) {
    if (c->options().mailbox) all.channels.push_back(stats_of(*c));
  }
  for (const auto& w : bus.engine().counts())
    all.workers.push_back({w.parks, w.wakes, w.batches, w.events});
  bus.for_each_subscription(
      [&all](const SubscriptionCore& a) { all.subscriptions.push_back(a.row()); });
  all.housekeeper = {bus.engine().house().running(), bus.engine().house().wakes()};
  return all;
}

namespace {

/// "", or which account does not balance.
std::string unbalanced(const engine::ChannelCore& channel) {
  const engine::Accounts a = engine::look_at_accounts(channel);
  if (a.offered_add_up && a.accepted_add_up) return {};
  const auto n = [](std::uint64_t count) { return std::to_string(count); };
  return "channel '" + channel.options().name + "' does not balance (" +
         (a.offered_add_up ? "I2" : "I1") + "): offered " + n(a.offered) + ", accepted " +
         n(a.accepted) + ", refused " + n(a.refused) + ", delivered " + n(a.drained + a.observed) +
         ", observed " + n(a.observed) + ", dispatched " + n(a.dispatched) + ", evicted " +
         n(a.evicted) + ", discarded " + n(a.discarded) + ", pending " + n(a.pending);
}

std::vector<std::string> unbalanced(const detail::BusCore& core) {
  std::vector<std::string> sentences;
  const auto add = [&sentences](std::string sentence) {
    if (!sentence.empty()) sentences.push_back(std::move(sentence));
  };
  for (const auto& c : core.channels()) add(unbalanced(*c));
  for (const auto& c : core.engine().channels()) {
    if (!c->options().named()) add(unbalanced(*c));
  }
  core.for_each_subscription([&add](const detail::SubscriptionCore& a) { add(a.unbalanced()); });
  return sentences;
}

}  // namespace

Result<bool> Bus::verify_accounting() const {
  if (core_->forked()) return true;
  auto sentences = unbalanced(*core_);
  if (sentences.empty()) return true;
  return Error{Error::Code::conflict, std::move(sentences.front())};
}

std::vector<std::string> Bus::channel_names() const {
  std::vector<std::string> names;
  for (const auto& c : core_->channels()) names.push_back(c->options().name);
  return names;
}

unsigned Bus::workers() const noexcept {
  return core_->engine().running();
}

}  // namespace ringmain
