// How does C publish? Through this thread's lane, or one of its own.
#include <array>
#include <bit>
#include <cstring>
#include <string>

#include "engine/publish/thread_lanes.hpp"

#include "bus/origin.hpp"

#include "bindings/c/handles.hpp"

namespace ringmain::c {
namespace {

struct Copied {
  const void* event;
  std::size_t bytes;
};
void copy(void* to, void* from) noexcept {
  const auto& event = *static_cast<const Copied*>(from);
  std::memcpy(to, event.event, event.bytes);
}

ringmain_code wrong_event(const void* event, std::size_t bytes, std::uint32_t defined) {
  if (event == nullptr) return fail(RINGMAIN_REFUSED, "event is NULL; give the one to publish");
  return fail(RINGMAIN_REFUSED, "event_bytes is " + std::to_string(bytes) + " and " +
                                    std::to_string(defined) +
                                    " were defined; give sizeof the event");
}

ringmain_code publish_on(ringmain_publisher& by, const void* event, std::size_t bytes,
                         std::int64_t time_ns) {
  if (event == nullptr || bytes != by.event_bytes) {
    return guarded([&] { return wrong_event(event, bytes, by.event_bytes); });
  }
  if (!by.lane->line->heard())
    return published(ringmain::detail::unheard_on(by.lane->line->look()));
  Copied from{event, bytes};
  return published(
      ringmain::detail::result_of(ringmain::detail::push_at(*by.lane, copy, &from, time_ns)));
}

ringmain_code options_of(const ringmain_publisher_options* given, PublisherOptions& options) {
  ringmain_publisher_options o;
  if (const auto code = read_struct(given, "ringmain_publisher_options", o)) return code;
  if (o.overflow > RINGMAIN_BLOCK) {
    return fail(RINGMAIN_REFUSED, "overflow is " + std::to_string(o.overflow) +
                                      "; use RINGMAIN_DROP_NEWEST … RINGMAIN_BLOCK");
  }
  if (o.capacity_events != 0) options.capacity_events = o.capacity_events;
  constexpr Overflow kOverflows[] = {Overflow::drop_newest, Overflow::drop_oldest, Overflow::block};
  static_assert(kOverflows[RINGMAIN_DROP_NEWEST] == Overflow::drop_newest &&
                kOverflows[RINGMAIN_DROP_OLDEST] == Overflow::drop_oldest &&
                kOverflows[RINGMAIN_BLOCK] == Overflow::block);
  options.overflow = kOverflows[o.overflow];
  if (o.block_us_max != 0) options.block_us_max = microseconds(o.block_us_max);
  if (o.ring != 0) options.lane = LaneKind::ring;
  options.realtime = o.realtime != 0;
  options.source_time = o.source_time != 0;
  return RINGMAIN_OK;
}

ringmain_code vetoed(Name why) noexcept {
  try {
    return fail(RINGMAIN_VETOED, "vetoed by an inline subscriber: " + std::string(why.view()));
  } catch (const std::bad_alloc&) {
    return fail(RINGMAIN_VETOED, "vetoed by an inline subscriber");
  }
}

// ringmain_set_text() and ringmain_text() write and read what a Text<N> is in memory: the size,
// with the highest bit for a cut, then the bytes.
using TextBytes = std::array<unsigned char, 8>;
static_assert(std::bit_cast<TextBytes>(Text<8>("ab")) == TextBytes{2, 0, 'a', 'b'});
static_assert(std::bit_cast<TextBytes>(Text<8>("abcdefg")) ==
              TextBytes{6, 0x80, 'a', 'b', 'c', 'd', 'e', 'f'});
static_assert(Name{}.id() == 0);  // ringmain_name() of ""

}  // namespace

ringmain_code published(PublishResult result) noexcept {
  static_assert(same(RINGMAIN_OK, PublishCode::accepted) &&
                same(RINGMAIN_UNHEARD, PublishCode::unheard));
  switch (result.code) {
    case PublishCode::accepted:
    case PublishCode::unheard:
      return static_cast<ringmain_code>(result.code);
    case PublishCode::full:
      return fail(RINGMAIN_FULL,
                  "too many of this publisher's events are in flight; publish less, or raise "
                  "capacity_events of its own publisher");
    case PublishCode::closed:
      return fail(RINGMAIN_CLOSED, "the bus has stopped; publish before it is closed");
    case PublishCode::would_deadlock:
      return fail(RINGMAIN_WOULD_DEADLOCK,
                  "full, and a callback must not wait for room; use RINGMAIN_DROP_NEWEST there");
    case PublishCode::no_memory:
      return fail(RINGMAIN_NO_MEMORY,
                  "no memory for a lane or its queue, or 1,024 publishers live in the channel");
    case PublishCode::too_deep:
      return fail(RINGMAIN_TOO_DEEP,
                  "published inside more than eight inline subscribers, or while an event of the "
                  "same lane was being made, as by a signal handler; publish it afterwards");
    case PublishCode::vetoed:
      return vetoed(result.why);
    case PublishCode::forked:
      break;
  }
  return fail(RINGMAIN_FORKED, "the bus belongs to the process that forked this one; open another");
}

}  // namespace ringmain::c

using namespace ringmain::c;  // NOLINT(google-build-using-namespace): what follows is its face
using ringmain::detail::result_of;

extern "C" {

ringmain_code ringmain_publish(ringmain_channel* channel, const void* event, size_t event_bytes) {
  if (channel == nullptr)
    return fail(RINGMAIN_REFUSED, "channel is NULL; define or find one first");
  if (event == nullptr || event_bytes != channel->schema->bytes) {
    return guarded([&] { return wrong_event(event, event_bytes, channel->schema->bytes); });
  }
  ringmain::engine::ChannelCore& core = *channel->core;
  if (!core.line.heard()) return published(ringmain::detail::unheard_on(core.line.look()));
  Copied from{event, event_bytes};
  if (ringmain::engine::Lane* lane = ringmain::engine::thread_lane(core))
    return published(result_of(ringmain::engine::push_slowly(*lane, copy, &from, 0)));
  return published(result_of(ringmain::engine::push_once(core, copy, &from)));
}

int ringmain_wanted(const ringmain_channel* channel) {
  return channel != nullptr && channel->core->line.heard() ? 1 : 0;
}

ringmain_code ringmain_publisher_open(ringmain_channel* channel,
                                      const ringmain_publisher_options* options,
                                      ringmain_publisher** publisher) {
  return guarded([&] {
    if (channel == nullptr) return fail(RINGMAIN_REFUSED, "channel is NULL; define or find one");
    if (publisher == nullptr)
      return fail(RINGMAIN_REFUSED, "publisher is NULL; give a place for it");
    ringmain::PublisherOptions known;
    if (const auto code = options_of(options, known)) return code;
    auto made = std::make_unique<ringmain_publisher>();
    if (channel->core->inert()) return published({ringmain::PublishCode::forked, {}});
    auto lane = ringmain::detail::take_lane(*channel->core, known);
    if (!lane) return fail(lane.error());
    *made = {lane.value(), channel->schema->bytes};
    *publisher = made.release();
    return ringmain_code{RINGMAIN_OK};
  });
}

ringmain_code ringmain_set_thread_lanes(ringmain_channel* channel,
                                        const ringmain_publisher_options* options) {
  return guarded([&] {
    if (channel == nullptr) return fail(RINGMAIN_REFUSED, "channel is NULL; define or find one");
    ringmain::PublisherOptions known;
    if (const auto code = options_of(options, known)) return code;
    if (channel->core->inert()) return published({ringmain::PublishCode::forked, {}});
    const auto said = ringmain::detail::set_thread_lanes(*channel->core, known);
    return said ? ringmain_code{RINGMAIN_OK} : fail(said.error());
  });
}

ringmain_code ringmain_publisher_publish(ringmain_publisher* publisher, const void* event,
                                         size_t event_bytes) {
  if (publisher == nullptr) return fail(RINGMAIN_REFUSED, "publisher is NULL; open one first");
  return publish_on(*publisher, event, event_bytes, 0);
}

ringmain_code ringmain_publisher_publish_at(ringmain_publisher* publisher, const void* event,
                                            size_t event_bytes, int64_t time_ns) {
  if (publisher == nullptr) return fail(RINGMAIN_REFUSED, "publisher is NULL; open one first");
  if (!publisher->lane->options.source_time) {
    return fail(RINGMAIN_REFUSED,
                "the publisher takes no times; set ringmain_publisher_options.source_time to 1");
  }
  return publish_on(*publisher, event, event_bytes, time_ns);
}

ringmain_code ringmain_publisher_ledger(const ringmain_publisher* publisher,
                                        ringmain_ledger* ledger) {
  return guarded([&] {
    if (publisher == nullptr) return fail(RINGMAIN_REFUSED, "publisher is NULL; open one first");
    if (ledger == nullptr) return fail(RINGMAIN_REFUSED, "ledger is NULL; give a place for it");
    const ringmain::Ledger l = ringmain::detail::ledger_of(*publisher->lane);
    const ringmain_ledger now{sizeof now, 0, l.offered, l.dropped, l.delivered, l.in_flight};
    return write_struct(now, "ringmain_ledger", ledger);
  });
}

void ringmain_publisher_close(ringmain_publisher* publisher) {
  if (publisher == nullptr) return;
  ringmain::detail::give_back(*publisher->lane);
  delete publisher;
}

uint64_t ringmain_new_op_id(void) {
  return ringmain::new_op_id();
}

uint32_t ringmain_name(const char* text, size_t bytes) {
  return text == nullptr ? 0 : ringmain::Name(std::string_view(text, bytes)).id();
}

const char* ringmain_name_text(uint32_t name, size_t* bytes) {
  const std::string_view text = std::bit_cast<ringmain::Name>(name).view();
  if (bytes != nullptr) *bytes = text.size();
  return text.data() == nullptr ? "" : text.data();
}

ringmain_code ringmain_set_text(void* field, size_t field_bytes, const char* text, size_t bytes) {
  if (field == nullptr)
    return fail(RINGMAIN_REFUSED, "field is NULL; give the member of the event");
  if (text == nullptr && bytes != 0)
    return fail(RINGMAIN_REFUSED, "text is NULL; give what is to be written");
  if (field_bytes < 8 || field_bytes % 8 != 0 || field_bytes > RINGMAIN_EVENT_BYTES_MAX) {
    return fail(RINGMAIN_REFUSED,
                "field_bytes is no multiple of 8 from 8 to 1024; make the member "
                "a char array of such a size and give its sizeof");
  }
  const std::string_view all(bytes == 0 ? "" : text, bytes);
  const std::size_t n = ringmain::detail::utf8_prefix(all, field_bytes - 2);
  const auto size = static_cast<std::uint16_t>(n | (n < bytes ? 0x8000u : 0u));
  auto* at = static_cast<char*>(field);
  std::memcpy(at, &size, sizeof size);
  std::memcpy(at + sizeof size, all.data(), n);
  std::memset(at + sizeof size + n, 0, field_bytes - sizeof size - n);
  return RINGMAIN_OK;
}

const char* ringmain_text(const void* field, size_t field_bytes, size_t* bytes) {
  std::uint16_t size = 0;
  if (field != nullptr && field_bytes > sizeof size) {
    std::memcpy(&size, field, sizeof size);
    size = static_cast<std::uint16_t>(
        std::min<std::size_t>(size & 0x7fffu, field_bytes - sizeof size));
  }
  if (bytes != nullptr) *bytes = size;
  return size == 0 ? "" : static_cast<const char*>(field) + sizeof size;
}

}  // extern "C"
