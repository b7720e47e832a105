// What a Bus owns, and what its handles keep alive: not for users of the library.
#pragma once
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "../engine/engine.hpp"

#include "event.hpp"
#include "options.hpp"
#include "result.hpp"
#include "subscription.hpp"

namespace ringmain::detail {

class SubscriptionCore;
class BusReporter;

/// Channels by name, and the patterns that new channels are matched against. One lock, never held
/// while a callback runs or is waited for. In a forked child channels are still found and made, so
/// that one program text serves both, but nothing is attached to them.
class BusCore final : public engine::Counted {
 public:
  explicit BusCore(const BusOptions& options);
  /// Without threads: test_bus.hpp.
  struct ByHand {};
  explicit BusCore(ByHand);

  [[nodiscard]] engine::Engine& engine() const noexcept { return *engine_; }
  [[nodiscard]] BusReporter& reporter() const noexcept { return *reporter_; }
  /// Finds or makes. `options` given: it must be new.
  Result<engine::ChannelCore*> channel(std::string_view name, const Schema& schema,
                                       const ChannelOptions* options);
  [[nodiscard]] std::vector<engine::Ref<engine::ChannelCore>> channels() const;

  /// Feeds `subscription` from all channels that match, and from those that will. Throws
  /// std::bad_alloc.
  void add_pattern(SubscriptionCore& subscription, std::string_view pattern);
  void remove_pattern(const SubscriptionCore& subscription) noexcept;
  /// Live subscriptions, for figures.
  void remember(SubscriptionCore& subscription) noexcept;
  void forget(SubscriptionCore& subscription) noexcept;
  /// `f(subscription)` for each, under a lock.
  template <class F>
  void for_each_subscription(F f) const {
    const std::lock_guard lock(attachments_mutex_);
    for (const SubscriptionCore* a : subscriptions_) f(*a);
  }
  /// False: the bus has ended already.
  [[nodiscard]] bool keep_until_the_end(SubscriptionCore& subscription) noexcept;
  /// The bus ends: stops, and detaches what was kept. Not inside callbacks.
  void end() noexcept;

 private:
  struct Pattern {
    SubscriptionCore* subscription;
    std::string pattern;
  };
  void feed_matching(engine::ChannelCore& channel);
  void enter(std::string_view name, const engine::Ref<engine::ChannelCore>& made);

  Result<engine::ChannelCore*> find_or_make(std::string_view name, const Schema& schema,
                                            const ChannelOptions* options);

  const engine::Ref<engine::Engine> engine_;
  const engine::Ref<BusReporter> reporter_;
  mutable engine::ForkMutex mutex_{engine::kForkBus};
  std::map<std::string, engine::Ref<engine::ChannelCore>, std::less<>> channels_;
  std::vector<Pattern> patterns_;
  engine::Ref<engine::ChannelCore> abandoned_;
  SubscriptionCore* kept_ = nullptr;  // each holds the next one; the list holds each
  bool ended_ = false;
  mutable std::mutex attachments_mutex_;
  std::unordered_set<SubscriptionCore*> subscriptions_;
};

}  // namespace ringmain::detail
