// How does C subscribe? By a callback on a worker or inline, or by a mailbox that it drains.
#include <memory>
#include <string>
#include <utility>

#include "bus/in_subscriber.hpp"
#include "bus/mailbox.hpp"

#include "bindings/c/handles.hpp"
#include "bindings/c/user.hpp"

namespace ringmain::c {
namespace {

static_assert(same(RINGMAIN_TIME_OF_WORKER, TimeFrom::worker) &&
              same(RINGMAIN_TIME_OF_PUBLISHER, TimeFrom::publisher) &&
              same(RINGMAIN_TIME_OF_SOURCE, TimeFrom::source));

ringmain_event event_of(const engine::Run& run, std::size_t i) noexcept {
  const Stamp stamp = ringmain::detail::stamp_of(run, i);
  const auto& from = run.source->options();
  return {sizeof(ringmain_event),
          from.payload_bytes,
          run.payload(i),
          from.name.c_str(),
          stamp.time_ns,
          stamp.sequence,
          stamp.publisher,
          static_cast<std::uint32_t>(stamp.time_from),
          from.schema};
}

struct Hear {
  static constexpr bool wants_time() { return false; }
  User user;
  ringmain_hear_fn hear;
  void operator()(engine::Subscriber& s, const engine::Run& run) noexcept {
    ringmain::detail::for_each_event(s, run, [&](std::size_t i) {
      const ringmain_event event = event_of(run, i);
      hear(user.get(), &event);
      return true;
    });
  }
};

struct Judge {
  User user;
  ringmain_judge_fn judge;
  const engine::ChannelCore* channel;
};

engine::Judgement judge(engine::Subscriber& self, const std::byte* at) noexcept {
  const auto& by = *std::launder(static_cast<const Judge*>(self.captures()));
  const auto& from = by.channel->options();
  const ringmain_event event{
      sizeof(ringmain_event),  from.payload_bytes, at, from.name.c_str(), 0, 0, 0,
      RINGMAIN_TIME_OF_WORKER, from.schema};
  try {  // C throws nothing, but a callback in C++ may
    const std::uint32_t why = by.judge(by.user.get(), &event);
    return {.veto = why != 0, .why = why};
  } catch (...) {
    return engine::inline_threw(self);
  }
}

ringmain_code options_of(const ringmain_subscribe_options* given, SubscribeOptions& options,
                         bool& stamped) {
  ringmain_subscribe_options o;
  if (const auto code = read_struct(given, "ringmain_subscribe_options", o)) return code;
  if (o.served > RINGMAIN_OWN_THREAD) {
    return fail(RINGMAIN_REFUSED, "served is " + std::to_string(o.served) +
                                      "; use RINGMAIN_SHARED … RINGMAIN_OWN_THREAD");
  }
  if (o.overflow > RINGMAIN_BLOCK) {
    return fail(RINGMAIN_REFUSED, "overflow is " + std::to_string(o.overflow) +
                                      "; use RINGMAIN_DROP_NEWEST or RINGMAIN_DROP_OLDEST");
  }
  constexpr Served kServed[] = {Served::shared, Served::isolated, Served::own_thread};
  constexpr Overflow kOverflows[] = {Overflow::drop_newest, Overflow::drop_oldest, Overflow::block};
  static_assert(kServed[RINGMAIN_SHARED] == Served::shared &&
                kServed[RINGMAIN_ISOLATED] == Served::isolated &&
                kServed[RINGMAIN_OWN_THREAD] == Served::own_thread);
  static_assert(kOverflows[RINGMAIN_DROP_NEWEST] == Overflow::drop_newest &&
                kOverflows[RINGMAIN_DROP_OLDEST] == Overflow::drop_oldest &&
                kOverflows[RINGMAIN_BLOCK] == Overflow::block);
  options.served = kServed[o.served];
  if (o.name != nullptr) options.name = o.name;
  options.priority = o.priority;
  if (o.queue_events != 0) options.queue_events = o.queue_events;
  options.overflow = kOverflows[o.overflow];
  if (o.budget_us != 0) options.budget_us = microseconds(o.budget_us < 0 ? 0 : o.budget_us);
  stamped = o.stamped != 0;
  return RINGMAIN_OK;
}

/// What all three kinds of subscribing share; each gives its own `attach(options, stamped)`.
template <class Attach>
ringmain_code subscribe(const ringmain_subscribe_options* given, ringmain_subscription** to,
                        Attach attach) {
  if (to == nullptr) return fail(RINGMAIN_REFUSED, "subscription is NULL; give a place for it");
  SubscribeOptions options;
  bool stamped = false;
  if (const auto code = options_of(given, options, stamped)) return code;
  auto made = std::make_unique<ringmain_subscription>();
  made->held = attach(std::move(options), stamped);
  if (!made->held.attached()) return published({PublishCode::forked, {}});
  *to = made.release();
  return RINGMAIN_OK;
}

engine::Subscriber* make_subscriber(User user, ringmain_hear_fn hear, bool stamped) {
  engine::Subscriber* s = ringmain::detail::make_subscriber(Hear{std::move(user), hear});
  s->wants_time = stamped;
  return s;
}

template <class Make>
ringmain_code open_mailbox(const ringmain_subscribe_options* given, std::uint32_t event_bytes,
                           ringmain_mailbox** to, Make make) {
  if (to == nullptr) return fail(RINGMAIN_REFUSED, "mailbox is NULL; give a place for it");
  SubscribeOptions options;
  bool stamped = false;
  if (const auto code = options_of(given, options, stamped)) return code;
  auto made = std::make_unique<ringmain_mailbox>();
  *made = {make(std::move(options)), event_bytes};
  if (made->box == nullptr) return published({PublishCode::forked, {}});
  *to = made.release();
  return RINGMAIN_OK;
}

struct Taker {
  void* event;
  ringmain_event* heard;
};

}  // namespace
}  // namespace ringmain::c

using namespace ringmain::c;  // NOLINT(google-build-using-namespace): what follows is its face
namespace detail = ringmain::detail;

extern "C" {

int ringmain_in_subscriber(void) {
  return ringmain::in_subscriber() ? 1 : 0;
}

ringmain_code ringmain_subscribe(ringmain_channel* channel, ringmain_hear_fn hear, void* user,
                                 ringmain_destroy_fn destroy,
                                 const ringmain_subscribe_options* options,
                                 ringmain_subscription** subscription) {
  User owned(user, destroy);
  return guarded([&] {
    if (channel == nullptr) return fail(RINGMAIN_REFUSED, "channel is NULL; define or find one");
    if (hear == nullptr) return fail(RINGMAIN_REFUSED, "hear is NULL; give a function to call");
    return subscribe(options, subscription, [&](auto with, bool stamped) {
      return detail::attach(*channel->core, make_subscriber(std::move(owned), hear, stamped),
                            std::move(with));
    });
  });
}

ringmain_code ringmain_subscribe_pattern(ringmain_bus* bus, const char* pattern,
                                         ringmain_hear_fn hear, void* user,
                                         ringmain_destroy_fn destroy,
                                         const ringmain_subscribe_options* options,
                                         ringmain_subscription** subscription) {
  User owned(user, destroy);
  return guarded([&] {
    if (bus == nullptr) return fail(RINGMAIN_REFUSED, "bus is NULL; open one");
    if (pattern == nullptr || *pattern == '\0')
      return fail(RINGMAIN_REFUSED, "pattern is NULL or empty; > matches every channel");
    if (hear == nullptr) return fail(RINGMAIN_REFUSED, "hear is NULL; give a function to call");
    return subscribe(options, subscription, [&](auto with, bool stamped) {
      if (with.served == ringmain::Served::shared) with.served = ringmain::Served::isolated;
      return detail::Erased::subscribe(
          *bus->bus, pattern, make_subscriber(std::move(owned), hear, stamped), std::move(with));
    });
  });
}

ringmain_code ringmain_subscribe_inline(ringmain_channel* channel, ringmain_judge_fn judge,
                                        void* user, ringmain_destroy_fn destroy,
                                        const ringmain_subscribe_options* options,
                                        ringmain_subscription** subscription) {
  User owned(user, destroy);
  return guarded([&] {
    if (channel == nullptr) return fail(RINGMAIN_REFUSED, "channel is NULL; define or find one");
    if (judge == nullptr) return fail(RINGMAIN_REFUSED, "judge is NULL; give a function to call");
    return subscribe(options, subscription, [&](auto with, bool) {
      auto* subscriber = detail::hold_captures(Judge{std::move(owned), judge, channel->core});
      subscriber->judge = ringmain::c::judge;
      return detail::attach(*channel->core, subscriber, std::move(with));
    });
  });
}

ringmain_code ringmain_unsubscribe(ringmain_subscription* subscription, int64_t limit_ns) {
  return guarded([&] {
    if (subscription == nullptr)
      return fail(RINGMAIN_NOT_ATTACHED, "subscription is NULL: nothing was subscribed");
    const auto ended = limit_ns < 0 ? subscription->held.reset()
                                    : subscription->held.reset_for(limit_of(limit_ns));
    switch (ended) {
      case ringmain::Detached::done:
        return ringmain_code{RINGMAIN_OK};
      case ringmain::Detached::deferred:
        return fail(RINGMAIN_DEFERRED,
                    "closed; inside a callback nothing is waited for: call it again outside");
      case ringmain::Detached::timeout:
        return fail(RINGMAIN_TIMEOUT, "closed, but a call is still running; call it again later");
      case ringmain::Detached::was_not_attached:
        break;
    }
    return fail(RINGMAIN_NOT_ATTACHED, "the subscription had ended before");
  });
}

void ringmain_subscription_free(ringmain_subscription* subscription) {
  delete subscription;
}

ringmain_code ringmain_mailbox_open(ringmain_channel* channel,
                                    const ringmain_subscribe_options* options,
                                    ringmain_mailbox** mailbox) {
  return guarded([&] {
    if (channel == nullptr) return fail(RINGMAIN_REFUSED, "channel is NULL; define or find one");
    return open_mailbox(options, channel->schema->bytes, mailbox, [&](auto with) {
      return detail::make_pull_mailbox(*channel->core, std::move(with));
    });
  });
}

ringmain_code ringmain_mailbox_open_pattern(ringmain_bus* bus, const char* pattern,
                                            const ringmain_subscribe_options* options,
                                            ringmain_mailbox** mailbox) {
  return guarded([&] {
    if (bus == nullptr) return fail(RINGMAIN_REFUSED, "bus is NULL; open one");
    if (pattern == nullptr || *pattern == '\0')
      return fail(RINGMAIN_REFUSED, "pattern is NULL or empty; > matches every channel");
    return open_mailbox(options, RINGMAIN_EVENT_BYTES_MAX, mailbox, [&](auto with) {
      return detail::make_pull_mailbox(detail::Erased::core(*bus->bus), pattern, std::move(with));
    });
  });
}

ringmain_code ringmain_mailbox_take(ringmain_mailbox* mailbox, void* event, size_t event_bytes,
                                    ringmain_event* heard) {
  return guarded([&] {
    if (mailbox == nullptr) return fail(RINGMAIN_REFUSED, "mailbox is NULL; open one first");
    if (event == nullptr) return fail(RINGMAIN_REFUSED, "event is NULL; give a place for it");
    if (event_bytes < mailbox->event_bytes) {
      return fail(RINGMAIN_REFUSED, "event_bytes is " + std::to_string(event_bytes) +
                                        " and an event of this mailbox may have " +
                                        std::to_string(mailbox->event_bytes) +
                                        "; give a larger place");
    }
    if (heard != nullptr) {
      if (const auto code = check_bytes(heard->bytes, sizeof heard->bytes, "ringmain_event"))
        return code;
    }
    Taker taker{event, heard};
    const std::size_t n = detail::drain_mailbox(
        *mailbox->box,
        [](void* to, const ringmain::engine::Run& run, std::size_t i) {
          auto& into = *static_cast<Taker*>(to);
          ringmain_event now = event_of(run, i);
          std::memcpy(into.event, now.event, now.event_bytes);
          now.event = into.event;
          if (into.heard != nullptr) (void)write_struct(now, "ringmain_event", into.heard);
        },
        &taker, 1);
    return n == 1 ? ringmain_code{RINGMAIN_OK} : fail(RINGMAIN_EMPTY, "no event is there now");
  });
}

ringmain_code ringmain_mailbox_drain(ringmain_mailbox* mailbox, ringmain_hear_fn hear, void* user,
                                     size_t events_max, size_t* taken) {
  return guarded([&] {
    if (mailbox == nullptr) return fail(RINGMAIN_REFUSED, "mailbox is NULL; open one first");
    if (hear == nullptr) return fail(RINGMAIN_REFUSED, "hear is NULL; give a function to call");
    struct Reader {
      ringmain_hear_fn hear;
      void* user;
    } reader{hear, user};
    const std::size_t n = detail::drain_mailbox(  // which `hear` may close
        *mailbox->box,
        [](void* to, const ringmain::engine::Run& run, std::size_t i) {
          const ringmain_event event = event_of(run, i);
          static_cast<Reader*>(to)->hear(static_cast<Reader*>(to)->user, &event);
        },
        &reader, events_max);
    if (taken != nullptr) *taken = n;
    return ringmain_code{RINGMAIN_OK};
  });
}

ringmain_code ringmain_mailbox_wait(ringmain_mailbox* mailbox, int64_t limit_ns) {
  if (mailbox == nullptr) return fail(RINGMAIN_REFUSED, "mailbox is NULL; open one first");
  if (detail::wait_mailbox(*mailbox->box, limit_of(limit_ns))) return RINGMAIN_OK;
  return fail(RINGMAIN_TIMEOUT, "no event came within the limit, or the bus has stopped");
}

int ringmain_mailbox_fd(ringmain_mailbox* mailbox) {
  if (mailbox == nullptr) return fail(RINGMAIN_REFUSED, "mailbox is NULL; open one first"), -1;
  const int fd = detail::mailbox_fd(*mailbox->box);
  if (fd < 0)
    (void)fail(RINGMAIN_SYSTEM, "the system gave no descriptor; raise the limit (ulimit -n)");
  return fd;
}

void ringmain_mailbox_close(ringmain_mailbox* mailbox) {
  if (mailbox == nullptr) return;
  detail::close_mailbox(mailbox->box);
  delete mailbox;
}

}  // extern "C"
