// How does C open a bus, close it and ask it for its figures?
#include <memory>
#include <string>
#include <thread>

#include "bindings/c/handles.hpp"

using namespace ringmain::c;  // NOLINT(google-build-using-namespace): this is its face
using ringmain::Bus;

namespace {

ringmain_code options_of(const ringmain_bus_options* given, ringmain::BusOptions& options) {
  ringmain_bus_options o;
  if (const auto code = read_struct(given, "ringmain_bus_options", o)) return code;
  options.workers = o.workers;
  if (o.name != nullptr) options.name = o.name;
  if (o.worker_cpus != nullptr) options.worker_cpus = o.worker_cpus;
  options.worker_nice = o.worker_nice;
  if (o.realtime_us_max != 0)
    options.realtime_us_max = std::chrono::microseconds(o.realtime_us_max);
  return RINGMAIN_OK;
}

/// Ends a bus that a callback holds up on a thread of its own: the caller has waited once already.
void end_elsewhere(std::unique_ptr<Bus> bus) noexcept {
  Bus* stuck = bus.release();
  try {
    std::thread([stuck] { delete stuck; }).detach();
  } catch (const std::exception&) {
    // Without a thread the bus is kept for ever, like all that the callback uses.
  }
}

/// The bus is closed by now, also if there is no memory for the sentence.
ringmain_code not_in_time(const ringmain::engine::Engine::Stopped& stopped) noexcept {
  try {
    std::string sentence = std::to_string(stopped.left) +
                           (stopped.left == 1 ? " event was" : " events were") +
                           " not delivered within the limit";
    if (!stopped.stuck.empty()) sentence += "; still running: " + stopped.stuck.front();
    return fail(RINGMAIN_TIMEOUT, sentence + "; give it longer, or look at what subscribers do");
  } catch (const std::bad_alloc&) {
    return fail(RINGMAIN_TIMEOUT, "not all events were delivered within the limit; give it longer");
  }
}

ringmain_subscription_stats stats_of(const ringmain::SubscriberStats& s) {
  return {sizeof(ringmain_subscription_stats),
          0,
          s.offered,
          s.delivered,
          s.threw,
          s.skipped,
          s.dropped,
          s.pending,
          s.slow};
}

}  // namespace

extern "C" {

uint32_t ringmain_c_abi(void) {
  return RINGMAIN_C_ABI;
}

const char* ringmain_version(void) {
  return RINGMAIN_VERSION;
}

ringmain_code ringmain_open_process(ringmain_bus** bus) {
  return guarded([&] {
    if (bus == nullptr) return fail(RINGMAIN_REFUSED, "bus is NULL; give a place for it");
    *bus = std::make_unique<ringmain_bus>(Bus::process()).release();
    return ringmain_code{RINGMAIN_OK};
  });
}

ringmain_code ringmain_open(const ringmain_bus_options* options, ringmain_bus** bus) {
  return guarded([&] {
    if (bus == nullptr) return fail(RINGMAIN_REFUSED, "bus is NULL; give a place for it");
    ringmain::BusOptions known;
    if (const auto code = options_of(options, known)) return code;
    *bus = std::make_unique<ringmain_bus>(std::make_unique<Bus>(known)).release();
    return ringmain_code{RINGMAIN_OK};
  });
}

ringmain_code ringmain_close(ringmain_bus* bus, int64_t limit_ns) {
  return guarded([&] {
    if (bus == nullptr || bus->own == nullptr) {
      delete bus;
      return ringmain_code{RINGMAIN_OK};
    }
    // Not Bus::stop(), which looks at all accounts and needs memory for it.
    const auto stopped =
        ringmain::detail::Erased::core(*bus->own).engine().stop(false, limit_of(limit_ns).count());
    if (stopped.refused) {
      return fail(RINGMAIN_WOULD_DEADLOCK,
                  "a callback would wait for itself; close the bus outside of callbacks");
    }
    const std::unique_ptr<ringmain_bus> closed(bus);
    if (stopped.left == 0 && stopped.stuck.empty()) return ringmain_code{RINGMAIN_OK};
    if (!stopped.stuck.empty()) end_elsewhere(std::move(closed->own));
    return not_in_time(stopped);
  });
}

ringmain_code ringmain_flush(ringmain_bus* bus, int64_t limit_ns) {
  return guarded([&] {
    if (bus == nullptr) return fail(RINGMAIN_REFUSED, "bus is NULL; open one");
    if (ringmain::detail::Erased::core(*bus->bus).forked())
      return published({ringmain::PublishCode::forked, {}});
    if (ringmain::engine::in_callback()) {
      return fail(RINGMAIN_WOULD_DEADLOCK,
                  "a callback would wait for itself; flush outside of callbacks");
    }
    if (bus->bus->flush(limit_of(limit_ns))) return ringmain_code{RINGMAIN_OK};
    return fail(RINGMAIN_TIMEOUT,
                "not all was delivered within the limit; give it longer, or look at what the "
                "subscribers do");
  });
}

ringmain_code ringmain_event_field(const ringmain_event* event, uint32_t number,
                                   ringmain_field* field) {
  return guarded([&] {
    if (event == nullptr || event->schema == nullptr)
      return fail(RINGMAIN_REFUSED, "event is NULL, or was not heard; give what a callback got");
    return give_field(*static_cast<const ringmain::Schema*>(event->schema), number, field);
  });
}

ringmain_code ringmain_stats_of_channel(const ringmain_channel* channel,
                                        ringmain_channel_stats* stats) {
  return guarded([&] {
    if (channel == nullptr) return fail(RINGMAIN_REFUSED, "channel is NULL; define or find one");
    if (stats == nullptr) return fail(RINGMAIN_REFUSED, "stats is NULL; give a place for them");
    const auto s = ringmain::detail::stats_of(*channel->core);
    const ringmain_channel_stats now{sizeof now, s.subscribers, s.offered,  s.accepted, s.full,
                                     s.closed,   s.no_memory,   s.too_deep, s.vetoed,   s.delivered,
                                     s.evicted,  s.discarded,   s.pending};
    return write_struct(now, "ringmain_channel_stats", stats);
  });
}

ringmain_code ringmain_stats_of_subscription(const ringmain_subscription* subscription,
                                             ringmain_subscription_stats* stats) {
  return guarded([&] {
    if (subscription == nullptr)
      return fail(RINGMAIN_REFUSED, "subscription is NULL; subscribe first");
    if (stats == nullptr) return fail(RINGMAIN_REFUSED, "stats is NULL; give a place for them");
    return write_struct(stats_of(subscription->held.stats()), "ringmain_subscription_stats", stats);
  });
}

ringmain_code ringmain_stats_of_mailbox(const ringmain_mailbox* mailbox,
                                        ringmain_subscription_stats* stats) {
  return guarded([&] {
    if (mailbox == nullptr) return fail(RINGMAIN_REFUSED, "mailbox is NULL; open one first");
    if (stats == nullptr) return fail(RINGMAIN_REFUSED, "stats is NULL; give a place for them");
    return write_struct(stats_of(ringmain::detail::mailbox_stats(*mailbox->box)),
                        "ringmain_subscription_stats", stats);
  });
}

}  // extern "C"
