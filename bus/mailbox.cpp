#include "bus/mailbox.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "engine/deliver/drain.hpp"
#include "engine/deliver/pull.hpp"

#include "bus/core/bus_core.hpp"
#include "bus/core/subscription_core.hpp"

namespace ringmain::detail {

/// A mailbox that its user drains. It keeps a run until the last event of it was read, so an
/// exception of the reader loses nothing.
class PullMailbox {
 public:
  explicit PullMailbox(engine::Ref<SubscriptionCore> subscription)
      : subscription_(std::move(subscription)) {}
  ~PullMailbox() { (void)subscription_->detach(-1); }

  std::size_t drain(ReadRunFn* read, void* reader, std::size_t max) {
    if (core().inert()) return 0;
    engine::before_drain(core());
    std::size_t done = 0;
    const Rearm rearm{core()};
    while (done < max && !closing_ && !core().inert() && (lane_ != nullptr || take())) {
      const engine::CallbackScope scope;
      for (; next_ < run_.count && done < max && !closing_; ++done) {
        const std::uint32_t i = next_++;  // counts as read, also if the reader throws
        const Finish finish{*this};
        read(reader, run_, i);
      }
    }
    return done;
  }
  /// After begin_reading(). If this is true, finish() calls end_reading().
  bool take_apart(RoomFn* make_room, void* maker, std::size_t max, engine::Run& run) {
    if (core().inert() || lane_ != nullptr) return false;
    engine::before_drain(core());
    if (take_into(make_room, maker, max)) {
      run = run_;
      return true;
    }
    engine::after_drain(core());
    return false;
  }
  void finish() noexcept {
    next_ = run_.count;
    { const Finish finish{*this}; }
    engine::after_drain(core());
  }

  bool wait(nanoseconds limit) noexcept {
    return !core().inert() && (lane_ != nullptr || engine::wait_for_events(core(), limit.count()));
  }
  [[nodiscard]] engine::ChannelCore& core() const noexcept {
    return subscription_->mailbox()->core();
  }
  [[nodiscard]] const SubscriptionCore& subscription() const noexcept { return *subscription_; }

  /// A reader may call this mailbox: a drain inside its own drain takes nothing, and a close waits
  /// for the reader.
  [[nodiscard]] bool begin_reading() noexcept { return !std::exchange(reading_, true); }
  static void end_reading(PullMailbox* box) noexcept {
    box->reading_ = false;
    if (box->closing_) delete box;
  }
  static void close(PullMailbox* box) noexcept {
    if (box == nullptr) return;
    if (box->subscription_->forked())
      return engine::keep_from_before_fork(box);  // its reader keeps it too
    box->closing_ = true;
    if (!box->reading_) delete box;
  }

 private:
  struct alignas(engine::kLineBytes) Room {
    std::byte bytes[engine::Drainer::kRoomBytes];
  };
  struct Rearm {
    engine::ChannelCore& core;
    ~Rearm() { engine::after_drain(core); }
  };
  struct Finish {
    PullMailbox& box;
    ~Finish() {
      if (box.next_ < box.run_.count) return;
      box.core().dispatched.add(box.run_.count, engine::Writers::one);
      engine::finish_run(box.core(), *box.lane_, box.run_);
      box.lane_ = nullptr;
    }
  };

  bool take() {
    engine::ChannelCore& from = core();
    for (std::uint32_t i = 0, n = from.lane_count(); i < n; ++i) {
      if (++from.last_lane >= n) from.last_lane = 0;
      engine::Lane& lane = from.lane(from.last_lane);
      run_ = engine::take_run(lane, room_->bytes, engine::Drainer::kBatchMax);
      if (run_.count == 0) continue;
      lane_ = &lane;
      next_ = 0;
      return true;
    }
    return false;
  }

  /// As take(), into memory that is just large enough.
  bool take_into(RoomFn* make_room, void* maker, std::size_t max) {
    engine::ChannelCore& from = core();
    for (std::uint32_t i = 0, n = from.lane_count(); i < n; ++i) {
      if (++from.last_lane >= n) from.last_lane = 0;
      engine::Lane& lane = from.lane(from.last_lane);
      const std::uint64_t there = lane.published() - lane.consumed.load();
      const std::size_t fits = engine::Drainer::kRoomBytes / std::max(1u, lane.slot_bytes);
      const std::size_t wanted = std::min<std::uint64_t>({there, max, fits});
      if (wanted == 0) continue;
      const std::size_t bytes = wanted * lane.slot_bytes;
      std::byte* room = make_room(maker, bytes);
      if (room == nullptr) return false;
      run_ = engine::take_run(lane, {room, bytes}, wanted);
      if (run_.count == 0) continue;
      if (run_.first < room || run_.first >= room + bytes) {  // a ring's own slots
        std::memcpy(room, run_.first, std::size_t{run_.count} * run_.stride);
        run_.first = room;
      }
      lane_ = &lane;
      next_ = 0;
      return true;
    }
    return false;
  }

  const engine::Ref<SubscriptionCore> subscription_;
  const std::unique_ptr<Room> room_{new Room};
  engine::Lane* lane_ = nullptr;  // of the run that is being read
  engine::Run run_;
  std::uint32_t next_ = 0;
  bool reading_ = false;
  bool closing_ = false;
};

namespace {

engine::Ref<SubscriptionCore> pulled(engine::ChannelHost& host, std::string name,
                                     SubscribeOptions options) {
  check(options, true);
  const engine::Ref<MailboxHold> mailbox = new MailboxHold(
      host, options.name.empty() ? std::move(name) : options.name, DrainedBy::its_user, options);
  return new SubscriptionCore(nullptr, mailbox, std::move(options));
}

}  // namespace

PullMailbox* make_pull_mailbox(engine::ChannelCore& channel, SubscribeOptions options,
                               KeyWriter key) {
  if (channel.inert()) return nullptr;
  const auto subscription =
      pulled(channel.host(), "mailbox of " + channel.options().name, std::move(options));
  subscription->set_host(SubscriptionHost::of(channel));
  subscription->feed_from(channel, std::move(key));
  return new PullMailbox(subscription);
}

PullMailbox* make_pull_mailbox(BusCore& bus, std::string_view pattern, SubscribeOptions options) {
  if (bus.forked()) return nullptr;
  const auto subscription =
      pulled(bus.engine(), "mailbox of " + std::string(pattern), std::move(options));
  subscription->set_host(&bus);
  bus.add_pattern(*subscription, pattern);
  return new PullMailbox(subscription);
}

std::size_t drain_mailbox(PullMailbox& box, ReadRunFn* read, void* reader, std::size_t max) {
  if (!box.begin_reading()) return 0;
  struct End {
    PullMailbox* box;
    ~End() { PullMailbox::end_reading(box); }
  } const end{&box};
  return box.drain(read, reader, max);
}
bool take_run_of(PullMailbox& box, RoomFn* make_room, void* maker, std::size_t max,
                 engine::Run& run) {
  if (!box.begin_reading()) return false;
  if (box.take_apart(make_room, maker, max, run)) return true;
  PullMailbox::end_reading(&box);
  return false;
}
void finish_run_of(PullMailbox& box) noexcept {
  box.finish();
  PullMailbox::end_reading(&box);
}
std::vector<std::uint64_t> mailbox_marks(const PullMailbox& box) {
  std::vector<std::uint64_t> marks;
  for (std::uint32_t i = 0, n = box.core().lane_count(); i < n; ++i)
    marks.push_back(box.core().lane(i).published());
  return marks;
}
bool mailbox_reached(const PullMailbox& box, const std::vector<std::uint64_t>& marks) noexcept {
  for (std::uint32_t i = 0; i < marks.size(); ++i) {
    if (box.core().lane(i).consumed.load() < marks[i]) return false;
  }
  return true;
}
bool wait_mailbox(PullMailbox& box, nanoseconds limit) noexcept {
  return box.wait(limit);
}
void interrupt_mailbox(PullMailbox& box) noexcept {
  if (!box.core().inert()) engine::interrupt_reader(box.core().pull);
}
int mailbox_fd(PullMailbox& box) noexcept {
  return engine::reader_fd(box.core());
}
SubscriberStats mailbox_stats(const PullMailbox& box) noexcept {
  return box.subscription().stats();
}
void close_mailbox(PullMailbox* box) noexcept {
  PullMailbox::close(box);
}

}  // namespace ringmain::detail
