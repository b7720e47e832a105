// What a Bus owns, and what its handles keep alive: not for users of the library.
#pragma once
#include <array>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "../../engine/engine.hpp"

#include "../event.hpp"
#include "../options.hpp"
#include "../result.hpp"
#include "../stats.hpp"
#include "buses.hpp"
#include "recording_core.hpp"
#include "subscription_host.hpp"

namespace ringmain::detail {

class BusReporter;

/// Channels by name, and the patterns that new channels are matched against. One lock, never held
/// while a callback runs or is waited for. In a forked child channels are still found and made, so
/// that the same code runs there, but nothing is attached to them.
class BusCore final : public SubscriptionHost, public RecordingHost {
 public:
  explicit BusCore(const BusOptions& options);
  /// Without threads: test_bus.hpp.
  struct ByHand {};
  explicit BusCore(ByHand);

  [[nodiscard]] engine::Engine& engine() const noexcept { return *engine_; }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  /// Among the buses of the process: buses.hpp.
  BusPlace among_buses;
  /// Finds or makes the channel. With `options` it must be new.
  Result<engine::ChannelCore*> channel(std::string_view name, const Schema& schema,
                                       const ChannelOptions* options);
  [[nodiscard]] std::vector<engine::Ref<engine::ChannelCore>> channels() const;

  /// Feeds `subscription` from all channels that match, present and future. Throws std::bad_alloc.
  void add_pattern(SubscriptionCore& subscription, std::string_view pattern);
  /// `f(subscription)` for each, under a lock.
  template <class F>
  void for_each_subscription(F f) const {
    const std::lock_guard lock(attachments_mutex_);
    for (const SubscriptionCore* a : subscriptions_) f(*a);
  }
  /// Records all channels that match, present and future. False: it has as many recordings as it
  /// can. Throws std::bad_alloc.
  [[nodiscard]] bool begin_recording(RecordingCore& recording);
  void end_recording(RecordingCore& recording) noexcept override;
  /// Where its recordings are, the place of one in memory only being "". Throws std::bad_alloc.
  [[nodiscard]] std::vector<std::string> recording_paths() const;
  /// Ends the bus: stops it, and detaches the subscriptions that were kept. Not inside callbacks.
  void end() noexcept;

  void remember(SubscriptionCore& subscription) noexcept override;
  void forget(SubscriptionCore& subscription) noexcept override;
  void remove_pattern(const SubscriptionCore& subscription) noexcept override;
  [[nodiscard]] bool keep_until_the_end(SubscriptionCore& subscription) noexcept override;
  /// Detaches the hooks of `row`, which has closed, that were kept.
  void end_kept_of(const engine::ChannelCore& row) noexcept;
  void watch_interest(engine::Subscriber* subscriber, engine::Ref<engine::ChannelCore> channel,
                      std::string pattern, bool again) override;
  void unwatch_interest(const engine::Subscriber& subscriber) noexcept override;
  [[nodiscard]] std::uint64_t waits(std::string subscriber, std::string channel,
                                    std::int64_t since_ns) override;
  void waits_no_more(std::uint64_t which) noexcept override;

 private:
  struct Pattern {
    SubscriptionCore* subscription;
    std::string pattern;
  };
  void feed_matching(engine::ChannelCore& channel);
  void show_to_none(RecordingCore& recording) noexcept;
  void enter(std::string_view name, const engine::Ref<engine::ChannelCore>& made);

  Result<engine::ChannelCore*> find_or_make(std::string_view name, const Schema& schema,
                                            const ChannelOptions* options);

  const std::string name_ = "test";
  const engine::Ref<engine::Engine> engine_;
  const engine::Ref<BusReporter> reporter_;
  mutable engine::ForkMutex mutex_{engine::kForkBus};
  std::map<std::string, engine::Ref<engine::ChannelCore>, std::less<>> channels_;
  std::vector<Pattern> patterns_;
  /// By their places; a place is free again once nobody is inside.
  std::array<RecordingCore*, engine::flight::kRecordingsMax> recordings_{};
  engine::Ref<engine::ChannelCore> abandoned_;
  SubscriptionCore* kept_ = nullptr;  // a list that holds each of them
  bool ended_ = false;
  mutable std::mutex attachments_mutex_;
  std::unordered_set<SubscriptionCore*> subscriptions_;
};

/// What Bus::stats() returns.
[[nodiscard]] Stats stats_of(const BusCore& bus);

}  // namespace ringmain::detail
