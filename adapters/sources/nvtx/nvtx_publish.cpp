#include "adapters/sources/nvtx/nvtx_publish.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "engine/system/clock.hpp"

#include "events/nvtx.hpp"

#include "adapters/launch/channel_of.hpp"
#include "adapters/launch/tid.hpp"
#include "adapters/sources/nvtx/nvtx_names.hpp"
#include "adapters/sources/nvtx/nvtx_stack.hpp"
#include "adapters/sources/nvtx/nvtx_started.hpp"
#include "adapters/sources/nvtx/nvtx_steps.hpp"

namespace ringmain::nvtx {
namespace {

using abi::EventAttributes;
using abi::RangeId;
using engine::now_ns;
using run::this_tid;

std::atomic<Channel<Range>*> ranges{nullptr};
std::atomic<Channel<Mark>*> marks{nullptr};
constinit StartedRanges under_way;

struct ThisThread {
  Stack stack;
  std::uint64_t ids = 0;  // the thread's number among ours, and below it the number of its ranges
};
constinit thread_local ThisThread self;

std::uint64_t new_id() noexcept {
  static std::atomic<std::uint64_t> threads{0};
  if (self.ids == 0) self.ids = ++threads << 40;
  return ++self.ids;
}

Message text_of(const char* text) noexcept {
  if (text == nullptr) return {};
  return std::string_view(text, ::strnlen(text, Message::kBytesMax + 4));
}
Message text_of(const wchar_t* text) noexcept {
  std::array<char, 256> room;
  return text == nullptr ? std::string_view() : narrow(text, room);
}
Message text_of(std::int32_t type, const abi::MessageValue& value) noexcept {
  if (type == abi::kAscii) return text_of(value.ascii);
  if (type == abi::kWide) return text_of(value.wide);
  if (type != abi::kRegistered || value.registered == nullptr) return {};
  return static_cast<const Registered*>(value.registered)->text;
}

void take_payload(const EventAttributes& from, Given& to) noexcept {
  if (from.payload_type == abi::kExtendedPayload) to.payload = Payload::extended;
  if (from.payload_type < 1 || from.payload_type > 6) return;
  // NVTX's numbers, which tests/adapters/nvtx compares with its headers.
  static_assert(static_cast<int>(Payload::u64) == 1 && static_cast<int>(Payload::i64) == 2 &&
                static_cast<int>(Payload::f64) == 3 && static_cast<int>(Payload::u32) == 4 &&
                static_cast<int>(Payload::i32) == 5 && static_cast<int>(Payload::f32) == 6);
  to.payload = static_cast<Payload>(from.payload_type);
  switch (to.payload) {
    case Payload::u64:
      to.payload_unsigned = from.payload.u64;
      break;
    case Payload::i64:
      to.payload_signed = from.payload.i64;
      break;
    case Payload::f64:
      to.payload_float = from.payload.f64;
      break;
    case Payload::u32:
      to.payload_unsigned = from.payload.u32;
      break;
    case Payload::i32:
      to.payload_signed = from.payload.i32;
      break;
    case Payload::f32:
      to.payload_float = static_cast<double>(from.payload.f32);
      break;
    case Payload::none:
    case Payload::extended:
      break;
  }
}

void take(const Domain& domain, const EventAttributes& from, Given& to) noexcept {
  if (from.bytes < sizeof from) return;
  to.category = from.category;
  to.category_name = domain.categories.of(from.category);
  if (from.color_type == abi::kArgb) to.color = from.color;
  take_payload(from, to);
  to.message = text_of(from.message_type, from.message);
}
void take(const Domain& domain, const Words& words, Given& to) noexcept {
  if (words.ascii != nullptr) to.message = text_of(words.ascii);
  if (words.wide != nullptr) to.message = text_of(words.wide);
  if (words.attributes != nullptr) take(domain, *words.attributes, to);
}

Range begun(const Domain& domain, const Words& words, Shape shape, std::uint64_t id) noexcept {
  Range said;
  take(domain, words, said);
  said.id = id;
  said.domain = domain.name;
  said.thread = this_tid();
  said.shape = shape;
  return said;
}

}  // namespace

void mark(const Domain& domain, const Words& words) noexcept {
  Channel<Mark>* const channel = marks;
  if (channel == nullptr || !channel->wanted()) return;
  Mark said;
  take(domain, words, said);
  said.domain = domain.name;
  said.thread = this_tid();
  channel->post(said);
}

int push(const Domain& domain, const Words& words) noexcept {
  Channel<Range>* const channel = ranges;
  const std::uint32_t depth = self.stack.depth_in(domain);
  Pushed* const kept = self.stack.push();
  const bool heard = channel != nullptr && channel->wanted();
  const std::uint64_t id = new_id();
  if (kept != nullptr) {
    kept->domain = &domain;
    kept->id = id;
    kept->depth = depth;
    kept->begin_ns = 0;
    kept->message = {};
    kept->part = {};
  }
  const bool steps = kept != nullptr && steps_wanted();
  if (!heard && !steps) return static_cast<int>(depth);
  Range said = begun(domain, words, Shape::pushed, id);
  said.depth = depth;
  if (kept != nullptr) {
    kept->message = said.message;
    kept->begin_ns = now_ns();
  }
  if (steps) publish_begin(kept->part = part_of(said));  // first: the range lies in its step
  if (heard) channel->post(said);
  return static_cast<int>(depth);
}

int pop(const Domain& domain) noexcept {
  Pushed kept;
  if (!self.stack.pop(domain, kept)) return -1;
  Channel<Range>* const channel = ranges;
  const bool heard = channel != nullptr && channel->wanted();
  if (!heard && kept.part.of == Part::Of::nothing) return static_cast<int>(kept.depth);
  const std::int64_t took_ns = kept.begin_ns != 0 ? now_ns() - kept.begin_ns : 0;
  if (heard) {
    Range said;
    said.id = kept.id;
    said.message = kept.message;
    said.took_ns = took_ns;
    said.domain = domain.name;
    said.thread = this_tid();
    said.depth = kept.depth;
    said.edge = Edge::end;
    channel->post(said);
  }
  publish_end(kept.part, took_ns);
  return static_cast<int>(kept.depth);
}

RangeId start(const Domain& domain, const Words& words, RangeId theirs) noexcept {
  const RangeId id = theirs != 0 ? theirs : new_id();
  Channel<Range>* const channel = ranges;
  const bool heard = channel != nullptr && channel->wanted();
  const bool steps = steps_wanted();
  if (!heard && !steps) return id;
  const Range said = begun(domain, words, Shape::started, id);
  const Part part = steps ? part_of(said) : Part{};
  if (under_way.keep(id, {now_ns(), said.message, part})) publish_begin(part);
  if (heard) channel->post(said);
  return id;
}

void end(const Domain& domain, RangeId id) noexcept {
  Channel<Range>* const channel = ranges;
  Started kept;
  const bool began = under_way.take(id, kept);  // also when nobody listens any more
  const bool heard = channel != nullptr && channel->wanted();
  if (!heard && kept.part.of == Part::Of::nothing) return;
  Range said;
  said.message = kept.message;
  if (began) said.took_ns = now_ns() - kept.begin_ns;
  said.id = id;
  said.domain = domain.name;
  said.thread = this_tid();
  said.shape = Shape::started;
  said.edge = Edge::end;
  if (heard) channel->post(said);
  publish_end(kept.part, said.took_ns);
}

Result<bool> publish_on(Bus& bus) {
  const auto of_ranges = run::channel_of<Range>(bus);
  if (!of_ranges) return of_ranges.error();
  const auto of_marks = run::channel_of<Mark>(bus);
  if (!of_marks) return of_marks.error();
  ranges = of_ranges.value();
  marks = of_marks.value();
  return true;
}

}  // namespace ringmain::nvtx
