#include "bus/core/reporter.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <new>

#include "engine/engine.hpp"

#include "bus/core/recording_core.hpp"
#include "bus/pattern.hpp"

namespace ringmain::detail {
namespace {

template <class... E>
constexpr std::array<BusReporter::Own, sizeof...(E)> list(const std::tuple<OwnPublisher<E>...>*) {
  return {{{OwnPublisher<E>::name(), &schema<E>}...}};
}

}  // namespace

std::span<const BusReporter::Own> BusReporter::own() noexcept {
  static constexpr auto kOwn = list(static_cast<const OwnPublishers*>(nullptr));
  return kOwn;
}

bool BusReporter::is_own(std::string_view name, const Schema& schema) noexcept {
  return std::any_of(own().begin(), own().end(), [&](const Own& o) {
    return o.name == name && o.schema().hash == schema.hash;
  });
}

void BusReporter::channel_made(engine::ChannelCore& channel) noexcept {
  std::apply([&channel](auto&... publisher) { (publisher.offer(channel), ...); }, publishers_);
}

void BusReporter::slow(const engine::SlowTurn& turn) noexcept {
  if (!publisher<SlowSubscriber>().wanted()) return;
  (void)publisher<SlowSubscriber>().publish(
      {Name(turn.subscriber), Name(turn.channel), turn.running_ns, turn.budget_ns});
}

void BusReporter::threw(const engine::Thrown& t) noexcept {
  const auto tell = [&t](auto& publisher, auto event) {
    if (!publisher.wanted()) return;
    event.subscriber = Name(t.subscriber);
    event.channel = Name(t.channel);
    event.count = t.count;
    event.what = std::string_view(t.what);
    (void)publisher.publish(event);
  };
  if (t.quarantined) return tell(publisher<Quarantined>(), Quarantined{});
  tell(publisher<Threw>(), Threw{});
}

bool BusReporter::lost(const engine::ChannelCore& channel, const engine::Losses& counts,
                       std::int64_t first_ns, std::int64_t last_ns) noexcept {
  if (!publisher<LossNotice>().wanted()) return false;
  const LossNotice notice{.channel = Name(channel.options().name),
                          .mailbox = channel.options().mailbox,
                          .full = counts.full,
                          .no_memory = counts.no_memory,
                          .too_deep = counts.too_deep,
                          .evicted = counts.evicted,
                          .first_ns = first_ns,
                          .last_ns = last_ns};
  return publisher<LossNotice>().publish(notice) == PublishCode::accepted;
}

bool BusReporter::round(std::uint32_t notified, std::int64_t now) noexcept {
  using engine::EventCount;
  const bool asked = (notified & (EventCount::kInterest | EventCount::kRound)) != 0;
  try {
    const bool again = asked || now - again_ns_ >= kAgainNs;
    tell_interest(asked || owed_at_ns_ != 0, again);
    if (again) again_ns_ = now;
    tell_waits(now);
    note_recordings(now);
    owed_at_ns_ = 0;
  } catch (const std::bad_alloc&) {
    owed_at_ns_ = now + kOweNs;
  }
  return owed_at_ns_ == 0;
}

// --- interest ---

BusReporter::~BusReporter() {
  for (const Watch& w : watches_) engine::drop_subscriber(w.subscriber);
  for (const Watch& w : new_watches_) engine::drop_subscriber(w.subscriber);
}

void BusReporter::watch_interest(engine::Subscriber* subscriber,
                                 engine::Ref<engine::ChannelCore> channel, std::string pattern,
                                 bool again) {
  {
    const std::lock_guard lock(mutex_);
    new_watches_.push_back({subscriber, std::move(channel), std::move(pattern), {}, again});
  }
  engine_.inbox().add_interested(1);
  engine_.inbox().event_count().notify(engine::EventCount::kInterest);
}

void BusReporter::unwatch_interest(const engine::Subscriber& subscriber) noexcept {
  Watch gone{};
  {
    const std::lock_guard lock(mutex_);
    const auto at =
        std::find_if(new_watches_.begin(), new_watches_.end(),
                     [&subscriber](const Watch& w) { return w.subscriber == &subscriber; });
    if (at == new_watches_.end()) return;
    gone = std::move(*at);
    new_watches_.erase(at);
  }
  engine::drop_subscriber(gone.subscriber);
  engine_.inbox().add_interested(-1);
}

void BusReporter::tell_interest(bool changed, bool again) {
  {
    const std::lock_guard lock(mutex_);
    watches_.reserve(watches_.size() + new_watches_.size());
    for (Watch& w : new_watches_) watches_.push_back(std::move(w));
    new_watches_.clear();
  }
  std::erase_if(watches_, [this](const Watch& w) {
    if (!w.subscriber->gate.closed()) return false;
    engine::drop_subscriber(w.subscriber);
    engine_.inbox().add_interested(-1);
    return true;
  });
  if ((!changed && !again) || watches_.empty()) return;
  const auto channels = changed ? engine_.channels() : decltype(engine_.channels()){};
  for (Watch& w : watches_) {
    const bool repeats = again && w.again;
    if (w.channel && (changed || repeats)) tell(w, *w.channel, repeats);
    if (w.channel) continue;
    for (const auto& c : channels) {
      if (c->options().named() && pattern_matches(w.pattern, c->options().name)) tell(w, *c, false);
    }
  }
}

void BusReporter::tell(Watch& watch, const engine::ChannelCore& channel, bool again) {
  const engine::Listening now = channel.listening();
  const auto [told, first] = watch.told.try_emplace(&channel, now);
  if (!first && !again && told->second == now) return;
  told->second = now;
  const InterestTold what{
      {now.queued + now.inlined + now.recorded, now.inlined != 0, now.queued != 0, now.stamps},
      channel.options().name};
  engine::Run run;
  run.first = reinterpret_cast<const std::byte*>(&what);
  run.count = 1;
  engine::Subscriber& s = *watch.subscriber;
  s.count(s.offered, 1);
  if (s.gate.enter()) {
    const auto calling = [this](const engine::Subscriber* who) {
      const std::lock_guard lock(mutex_);
      calling_ = who;
    };
    calling(&s);
    s.call(s, run);
    calling(nullptr);
  } else {
    s.count(s.skipped, 1);
  }
  if (s.gate.leave()) engine::destroy_captures(s);
}

bool BusReporter::is_calling() const noexcept {
  const std::lock_guard lock(mutex_);
  return calling_ != nullptr;
}

std::string BusReporter::calling() const {
  const std::lock_guard lock(mutex_);
  if (calling_ == nullptr) return {};
  return calling_->name.empty() ? "(unnamed interest)" : calling_->name;
}

// --- recordings ---

void BusReporter::add_recording(RecordingCore& recording) {
  const std::lock_guard lock(mutex_);
  *std::find(recordings_.begin(), recordings_.end(), nullptr) = &recording;
}

void BusReporter::forget_recording(const RecordingCore& recording) noexcept {
  const std::lock_guard lock(mutex_);
  std::replace(recordings_.begin(), recordings_.end(), const_cast<RecordingCore*>(&recording),
               static_cast<RecordingCore*>(nullptr));
}

void BusReporter::note_recordings(std::int64_t now) noexcept {
  if (now - noted_ns_ < kNoteNs) return;
  noted_ns_ = now;
  const std::lock_guard lock(mutex_);
  for (RecordingCore* recording : recordings_) {
    if (recording != nullptr) recording->note();
  }
}

// --- removals that wait ---

std::uint64_t BusReporter::waits(std::string subscriber, std::string channel,
                                 std::int64_t since_ns) {
  std::uint64_t which = 0;
  {
    const std::lock_guard lock(mutex_);
    which = ++last_wait_;
    waits_.push_back({which, std::move(subscriber), std::move(channel), since_ns, false});
  }
  engine_.inbox().event_count().notify(
      engine::EventCount::kWaiting);  // it may be about to sleep for too long
  return which;
}

void BusReporter::waits_no_more(std::uint64_t which) noexcept {
  const std::lock_guard lock(mutex_);
  std::erase_if(waits_, [which](const Wait& w) { return w.which == which; });
}

void BusReporter::tell_waits(std::int64_t now) {
  std::vector<WaitingRemoval> due;
  {
    const std::lock_guard lock(mutex_);
    for (Wait& w : waits_) {
      if (w.told || now - w.since_ns < kWaitTellNs) continue;
      due.push_back({Name(w.subscriber), Name(w.channel), now - w.since_ns});
      w.told = true;
    }
  }
  for (const WaitingRemoval& event : due) (void)publisher<WaitingRemoval>().publish(event);
}

std::int64_t BusReporter::due_ns() const noexcept {
  std::int64_t due = owed_at_ns_ != 0 ? owed_at_ns_ : std::numeric_limits<std::int64_t>::max();
  const std::lock_guard lock(mutex_);
  for (const Wait& w : waits_) {
    if (!w.told) due = std::min(due, w.since_ns + kWaitTellNs);
  }
  return due;
}

}  // namespace ringmain::detail
