// How does the bus report on itself? The housekeeper's findings become events on `bus.*`
// channels. Not for users of the library.
//
// Each of these channels is made when it is first asked for, by its type, its name or a pattern;
// before that, nothing is published on it.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "../../engine/flight/recorded.hpp"
#include "../../engine/watch/housekeeper.hpp"

#include "../bus_events.hpp"
#include "../interest.hpp"
#include "../publisher.hpp"

namespace ringmain::engine {
class Engine;
}

namespace ringmain::detail {

/// The bus's own publisher on one of its own channels.
template <Described E>
class OwnPublisher {
 public:
  OwnPublisher() = default;
  OwnPublisher(const OwnPublisher&) = delete;
  OwnPublisher& operator=(const OwnPublisher&) = delete;
  ~OwnPublisher() {
    if (lane_ != nullptr) give_back(*lane_);
  }
  static constexpr std::string_view name() noexcept { return describe(EventOf<E>{}).name; }

  /// Call it when that channel was made. A channel of that name with another type is a user's own.
  void offer(engine::ChannelCore& channel) noexcept {
    if (channel.options().name != name() ||
        static_cast<const Schema*>(channel.options().schema)->hash != schema_hash<E>())
      return;
    const std::lock_guard lock(mutex_);
    channel_ = &channel;
  }
  /// Threads: the housekeeper. No lock is held: an inline subscriber is called here.
  PublishResult publish(const E& event) noexcept {
    if (lane_ == nullptr && !take()) return {PublishCode::unheard};
    auto copy = [&event]() noexcept { return event; };
    return result_of(engine::push<E>(*lane_, copy));
  }
  [[nodiscard]] bool wanted() noexcept {
    return (lane_ != nullptr || take()) && lane_->line->heard();
  }

 private:
  bool take() noexcept {
    engine::Ref<engine::ChannelCore> channel;
    {
      const std::lock_guard lock(mutex_);
      channel = channel_;
    }
    if (!channel) return false;
    engine::LaneOptions options;
    options.capacity = 1024;
    lane_ = channel->take_lane(options, *channel);
    if (lane_ == nullptr) return false;
    channel->hold();
    return true;
  }

  std::mutex mutex_;
  engine::Ref<engine::ChannelCore> channel_;
  engine::Lane* lane_ = nullptr;  // the housekeeper's; holds its channel
};

class RecordingCore;

class BusReporter final : public engine::Reporter {
 public:
  using OwnPublishers =
      std::tuple<OwnPublisher<LossNotice>, OwnPublisher<SlowSubscriber>,
                 OwnPublisher<WaitingRemoval>, OwnPublisher<Threw>, OwnPublisher<Quarantined>>;
  explicit BusReporter(engine::Engine& engine) noexcept : engine_(engine) {}
  ~BusReporter() override;
  struct Own {
    std::string_view name;
    const Schema& (*schema)();
  };
  /// The bus's own channels.
  static std::span<const Own> own() noexcept;
  static bool is_own(std::string_view name, const Schema& schema) noexcept;
  void channel_made(engine::ChannelCore& channel) noexcept;

  /// Tells `subscriber` who listens to `channel`, or to each channel that matches `pattern`; the
  /// run of each call has an InterestTold. Takes over one reference. `again`: also in rounds that
  /// were asked for, and about every second. Throws std::bad_alloc.
  void watch_interest(engine::Subscriber* subscriber, engine::Ref<engine::ChannelCore> channel,
                      std::string pattern, bool again);
  /// Its gate is closed. A round drops those that an earlier round has begun to tell; the others go
  /// now, as rounds may be far between, or never come on a bus without threads.
  void unwatch_interest(const engine::Subscriber& subscriber) noexcept;

  /// A reset() has begun a long wait; the result is for waits_no_more().
  [[nodiscard]] std::uint64_t waits(std::string subscriber, std::string channel,
                                    std::int64_t since_ns);
  void waits_no_more(std::uint64_t which) noexcept;

  /// Its clocks are noted from here on, until forget_recording().
  void add_recording(RecordingCore& recording);
  void forget_recording(const RecordingCore& recording) noexcept;

  [[nodiscard]] bool is_calling() const noexcept override;
  [[nodiscard]] std::string calling() const override;
  void slow(const engine::SlowTurn& turn) noexcept override;
  void threw(const engine::Thrown& thrown) noexcept override;
  bool lost(const engine::ChannelCore& channel, const engine::Losses& counts, std::int64_t first_ns,
            std::int64_t last_ns) noexcept override;
  bool round(std::uint32_t notified, std::int64_t now_ns) noexcept override;
  [[nodiscard]] std::int64_t due_ns() const noexcept override;

 private:
  // A round comes each second: with half of that, none is left out for being early.
  enum : std::int64_t {
    kWaitTellNs = 1'000'000'000,
    kOweNs = 10'000'000,
    kAgainNs = 500'000'000,
    kNoteNs = 10'000'000'000
  };

  struct Watch {
    engine::Subscriber* subscriber;  // a reference to it
    engine::Ref<engine::ChannelCore> channel;
    std::string pattern;  // where there is no channel
    std::map<const engine::ChannelCore*, engine::Listening> told;
    bool again;
  };
  struct Wait {
    std::uint64_t which;
    std::string subscriber, channel;
    std::int64_t since_ns;
    bool told;
  };
  void tell_interest(bool changed, bool again);
  void tell(Watch& watch, const engine::ChannelCore& channel, bool again);
  void tell_waits(std::int64_t now_ns);
  void note_recordings(std::int64_t now_ns) noexcept;

  engine::Engine& engine_;
  OwnPublishers publishers_;
  std::vector<Watch> watches_;  // the housekeeper's
  std::int64_t again_ns_ = 0;   // its too: when it last told what had not changed
  std::int64_t noted_ns_ = 0;   // its too: when it last noted the clocks
  std::int64_t owed_at_ns_ =
      0;  // its too: when to try again what lacked memory; 0: nothing is owed
  mutable std::mutex mutex_;
  std::vector<Watch> new_watches_;
  std::vector<Wait> waits_;
  std::array<RecordingCore*, engine::flight::kRecordingsMax> recordings_{};
  std::uint64_t last_wait_ = 0;
  const engine::Subscriber* calling_ = nullptr;
  template <Described E>
  OwnPublisher<E>& publisher() noexcept {
    return std::get<OwnPublisher<E>>(publishers_);
  }
};

}  // namespace ringmain::detail
