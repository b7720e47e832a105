#include "adapters/sources/cuda/hazards/streams.hpp"

#include <algorithm>
#include <utility>

namespace ringmain::cuda::hazards {
namespace {

constexpr std::uint64_t kLegacy = 0, kLegacyByName = 1, kPerThread = 2;
constexpr std::size_t kContextsMax = 64;

}  // namespace

void Streams::see_context(std::uint32_t context, bool from_birth) {
  if (context == 0 || contexts_.size() >= kContextsMax) return;
  for (const Context& known : contexts_) {
    if (known.number == context) return;
  }
  if (contexts_.empty()) {  // default streams that were named before are of this one
    std::map<Key, std::size_t> renamed;
    for (const auto& [key, place] : live_) {
      const auto& [handle, of, thread] = key;
      const bool by_default = handle <= kPerThread;
      if (by_default) all_[place].context = context;
      renamed.emplace(Key{handle, by_default ? context : of, thread}, place);
    }
    live_ = std::move(renamed);
  }
  contexts_.push_back({context, from_birth});
}

void Streams::clear_of_captures(std::uint32_t context, std::uint64_t asked_at) {
  for (Context& known : contexts_) known.clear = known.clear || known.number == context;
  cleared_ = asked_at;
  for (Stream& stream : all_) {
    const bool there = stream.context == context || (stream.context == 0 && contexts_.size() == 1);
    if (there && stream.captures == Captures::maybe && stream.doubted < asked_at)
      stream.captures = Captures::no;
  }
}

bool Streams::clear_of_captures() const noexcept {
  return !contexts_.empty() && contexts_.size() < kContextsMax &&
         std::all_of(contexts_.begin(), contexts_.end(), [](const Context& c) { return c.clear; });
}

std::optional<std::size_t> Streams::find(std::uint64_t handle, std::uint32_t context,
                                         std::int32_t thread) {
  if (handle == kLegacyByName) handle = kLegacy;
  const bool by_default = handle <= kPerThread;
  if (by_default && context == 0 && !contexts_.empty()) {
    if (contexts_.size() > 1) return std::nullopt;
    context = contexts_.front().number;
  }
  const Key key{handle, by_default ? context : 0, handle == kPerThread ? thread : 0};
  if (const auto known = live_.find(key); known != live_.end()) return known->second;
  const auto place = take_place();
  if (!place) return std::nullopt;
  Stream& stream = all_[*place];
  stream.handle = handle;
  stream.context = by_default ? context : 0;
  stream.legacy = handle == kLegacy;
  if (!clear_of_captures()) doubt(*place);
  live_.emplace(key, *place);
  return place;
}

bool Streams::make(std::uint64_t handle, std::uint32_t context, bool blocking) {
  end(handle);  // if its end was not heard
  const auto place = take_place();
  if (!place) return false;
  all_[*place].handle = handle;
  all_[*place].context = context;
  all_[*place].blocking = blocking;
  live_.emplace(Key{handle, 0, 0}, *place);
  return true;
}

void Streams::end(std::uint64_t handle) {
  const auto known = live_.find(Key{handle, 0, 0});
  if (known == live_.end()) return;
  all_[known->second].live = false;
  all_[known->second].ended = now_;
  live_.erase(known);
}

void Streams::restore(std::uint64_t handle) {
  if (live_.count(Key{handle, 0, 0}) != 0) return;
  std::optional<std::size_t> last;
  for (std::size_t i = 0; i < all_.size(); ++i) {
    const Stream& stream = all_[i];
    if (!stream.taken || stream.live || stream.handle != handle) continue;
    if (!last || stream.ended > all_[*last].ended) last = i;
  }
  if (!last) return;
  all_[*last].live = true;
  live_.emplace(Key{handle, 0, 0}, *last);
}

std::optional<std::size_t> Streams::take_place() {
  std::size_t place = 0;
  const auto over = [this](const Stream& s) { return !s.live && host.holds(s.seen); };
  while (place < all_.size() && !over(all_[place])) ++place;
  if (place == all_.size()) {
    if (place == most_) return std::nullopt;
    all_.emplace_back();
  }
  Stream made;
  made.taken = made.live = true;
  made.uses = all_[place].uses;
  made.seen = host;
  all_[place] = std::move(made);
  return place;
}

void Streams::act(std::size_t place) {
  Stream& here = all_[place];
  here.seen.join(host);
  if (!here.blocking) return;
  for (std::size_t i = 0; i < all_.size(); ++i) {
    const Stream& other = all_[i];
    if (i == place || !other.taken || !other.blocking) continue;
    if ((here.legacy || other.legacy) && shares(other, here.context)) here.seen.join(other.seen);
  }
}

void Streams::doubt(std::size_t place) noexcept {
  if (all_[place].legacy) return;  // it cannot capture
  all_[place].captures = Captures::maybe;
  all_[place].doubted = now_;
}

Clock Streams::position(std::uint32_t context) const {
  Clock sum = host;
  for (const Stream& stream : all_) {
    if (stream.taken && shares(stream, context)) sum.join(stream.seen);
  }
  return sum;
}

void Streams::begin_capture(std::size_t place) {
  all_[place].captures = Captures::yes;
  all_[place].capture = ++captures_;
}

void Streams::end_capture(std::size_t place, bool sound) noexcept {
  const Stream ended = all_[place];
  if (ended.captures == Captures::maybe && sound) all_[place].captures = Captures::no;
  if (ended.captures != Captures::yes) return;
  for (std::size_t i = 0; i < all_.size(); ++i) {
    if (all_[i].captures != Captures::yes || all_[i].capture != ended.capture) continue;
    sound ? void(all_[i].captures = Captures::no) : doubt(i);
  }
}

void Streams::join_capture(std::size_t place, std::uint64_t capture) noexcept {
  all_[place].captures = Captures::yes;
  all_[place].capture = capture;
}

bool Streams::is_capture(std::uint64_t capture) const noexcept {
  return std::any_of(all_.begin(), all_.end(), [capture](const Stream& s) {
    return s.captures == Captures::yes && s.capture == capture;
  });
}

}  // namespace ringmain::cuda::hazards
