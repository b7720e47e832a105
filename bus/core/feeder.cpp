#include "bus/core/feeder.hpp"

#include <memory>
#include <mutex>
#include <new>
#include <utility>

#include "engine/publish/key_table.hpp"

#include "bus/callback.hpp"
#include "bus/core/feed.hpp"

namespace ringmain::detail {
namespace {

/// A feeder's captures: its lane, and the mailbox that has it.
struct Feed {
  static constexpr bool wants_time() { return false; }
  engine::Ref<MailboxHold> mailbox;
  engine::Ref<engine::ChannelCore> source;
  engine::Lane* lane;
  // A lane has one writer, so one worker at a time copies from a channel that delivers in parallel.
  std::unique_ptr<std::mutex> turn;

  Feed(engine::Ref<MailboxHold> box, engine::Ref<engine::ChannelCore> from, engine::Lane* to)
      : mailbox(std::move(box)), source(std::move(from)), lane(to) {
    if (source->options().parallel) turn = std::make_unique<std::mutex>();
  }
  Feed(Feed&& other) noexcept
      : mailbox(std::move(other.mailbox)),
        source(std::move(other.source)),
        lane(std::exchange(other.lane, nullptr)),
        turn(std::move(other.turn)) {}
  Feed& operator=(Feed&&) = delete;
  ~Feed() {
    if (lane == nullptr) return;
    engine::ChannelCore::give_lane(*lane);
    // The mailbox's own thread may wait for the last feeder to go.
    if (mailbox->core().options().own_thread) engine::tell_reader(mailbox->core().pull);
  }

  [[nodiscard]] std::unique_lock<std::mutex> take_turn() const {
    return turn ? std::unique_lock(*turn) : std::unique_lock<std::mutex>();
  }
  void operator()(engine::Subscriber& s, const engine::Run& run) noexcept {
    const auto mine = take_turn();
    std::uint32_t i = 0;
    for (; i < run.count && !s.gate.closed(); ++i) (void)feed_one(*lane, run, i);
    s.count(s.delivered, i);
    if (i < run.count) s.count(s.skipped, run.count - i);
  }
};

/// A feeder that puts an event in the place of the queued one of its key.
struct FeedLatest : Feed {
  KeyWriter key;
  engine::KeyTable queued;

  FeedLatest(Feed to, KeyWriter by) : Feed(std::move(to)), key(std::move(by)), queued(key.bytes) {}

  void operator()(engine::Subscriber& s, const engine::Run& run) noexcept {
    const auto mine = take_turn();
    std::uint32_t i = 0;
    std::uint64_t threw = 0;
    for (; i < run.count && !s.gate.closed(); ++i) threw += put(s, run, i) ? 0u : 1u;
    s.count(s.delivered, i - threw);
    if (i < run.count) s.count(s.skipped, run.count - i);
  }

 private:
  /// False: the key function threw.
  bool put(engine::Subscriber& s, const engine::Run& run, std::uint32_t i) noexcept {
    alignas(8) std::byte bytes[engine::KeyTable::kKeyBytesMax] = {};
    try {
      key.write(run.payload(i), bytes);
    } catch (...) {
      engine::subscriber_threw(s);
      return false;
    }
    Copied copied(*lane, run, i);
    std::uint64_t* at = queued.at(bytes, lane->consumed.load());
    if (at != nullptr && *at != engine::KeyTable::kNowhere &&
        engine::replace(*lane, *at, &Copied::build, &copied, copied.time_ns())) {
      return true;
    }
    const std::uint64_t index = lane->published();
    const engine::Pushed how =
        engine::push_slowly(*lane, &Copied::build, &copied, copied.time_ns());
    if (how == engine::Pushed::accepted && at != nullptr) *at = index;
    return true;  // without memory for its key it is queued and not coalesced
  }
};

}  // namespace

engine::Subscriber* make_feeder(const engine::Ref<MailboxHold>& mailbox,
                                engine::ChannelCore& source, int priority, KeyWriter key) {
  engine::LaneOptions options = mailbox->lanes();
  options.coalesce = key.bytes != 0;
  if (options.coalesce) options.kind = engine::LaneKind::ring;
  engine::Lane* lane = mailbox->core().take_lane(options, source);
  if (lane == nullptr) throw std::bad_alloc();
  Feed feed(mailbox, &source, lane);
  engine::Subscriber* feeder = key.bytes == 0
                                   ? make_subscriber(std::move(feed))
                                   : make_subscriber(FeedLatest(std::move(feed), std::move(key)));
  feeder->priority = priority;
  return feeder;
}

}  // namespace ringmain::detail
