// Channels, publishers and mailboxes without their types: what the fuzz chooses by number.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "bus/bus.hpp"

#include "tests/fuzz/events.hpp"
#include "tests/fuzz/journal.hpp"

namespace ringmain::fuzz {

/// What calls of the bus come to. Threads: any.
class Hearers {
 public:
  Hearers() = default;
  Hearers(const Hearers&) = delete;
  Hearers& operator=(const Hearers&) = delete;
  virtual ~Hearers() = default;
  virtual void heard(SubscriberRecord& subscriber, const Mark& mark, bool whole,
                     const Stamp* stamp) = 0;
  /// A whole batch: it throws for all of them, or for none.
  virtual void heard_all(SubscriberRecord& subscriber, std::span<const Heard> batch) = 0;
  [[nodiscard]] virtual bool wanted(SubscriberRecord& subscriber, const Mark& mark, bool whole) = 0;
  [[nodiscard]] virtual Verdict judged(SubscriberRecord& subscriber, const Mark& mark,
                                       bool whole) = 0;
};

/// In the captures of every callback: counts how many of it there are.
class Captured {
 public:
  Captured(Hearers& to, SubscriberRecord& subscriber) noexcept
      : to_(&to), subscriber_(&subscriber) {
    ++subscriber_->captures;
  }
  Captured(const Captured& other) noexcept : to_(other.to_), subscriber_(other.subscriber_) {
    ++subscriber_->captures;
  }
  Captured& operator=(const Captured&) = delete;
  ~Captured() { --subscriber_->captures; }
  [[nodiscard]] Hearers& to() const noexcept { return *to_; }
  [[nodiscard]] SubscriberRecord& subscriber() const noexcept { return *subscriber_; }

 private:
  Hearers* to_;
  SubscriberRecord* subscriber_;
};

/// Owner of a subscription by weak pointer.
class Owner {
 public:
  Owner(Hearers& to, SubscriberRecord& subscriber) : to_(to), subscriber_(subscriber) {}
  template <class E>
  void hear(const E& e, const Stamp& stamp) {
    to_.heard(subscriber_, e.mark, e.intact(), &stamp);
  }

 private:
  Hearers& to_;
  SubscriberRecord& subscriber_;
};

class AnyPublisher {
 public:
  AnyPublisher() = default;
  AnyPublisher(const AnyPublisher&) = delete;
  AnyPublisher& operator=(const AnyPublisher&) = delete;
  virtual ~AnyPublisher() = default;
  virtual PublishResult say(const Mark& mark) = 0;
  /// Calls `inside` while the event is being made.
  virtual PublishResult publish_with(const Mark& mark, const std::function<void()>& inside) = 0;
  virtual PublishResult publish_at(const Mark& mark, std::int64_t time_ns) = 0;
  virtual BatchResult publish_all(std::span<const Published> said) = 0;
  [[nodiscard]] virtual Ledger ledger() const = 0;
  virtual void move_about() = 0;
};

/// `mark` nullptr: an event that is none of the fuzz's.
using Read = std::function<void(const Mark* mark, bool whole, const Stamp& stamp)>;

class AnyBox {
 public:
  AnyBox() = default;
  AnyBox(const AnyBox&) = delete;
  AnyBox& operator=(const AnyBox&) = delete;
  virtual ~AnyBox() = default;
  virtual std::size_t drain(const Read& read, std::size_t max) = 0;
  /// One run, into memory of its own, as other languages take it. False in `held`: something was
  /// written outside of that memory.
  virtual std::size_t take_run(const Read& read, std::size_t max, bool& held) = 0;
  [[nodiscard]] virtual MailboxBase& base() = 0;
  virtual void move_about() = 0;
};

class AnyChannel {
 public:
  AnyChannel() = default;
  AnyChannel(const AnyChannel&) = delete;
  AnyChannel& operator=(const AnyChannel&) = delete;
  virtual ~AnyChannel() = default;
  virtual Result<std::unique_ptr<AnyPublisher>> publisher(const PublisherOptions& options) = 0;
  /// By the thread's own lane.
  [[nodiscard]] virtual AnyPublisher& threads_own() = 0;
  /// Throws what the bus throws; an Error is thrown as it is.
  [[nodiscard]] virtual Subscription hear(const Captured& by, const std::shared_ptr<Owner>& owner,
                                          const SubscribeOptions& options, std::size_t parts) = 0;
  [[nodiscard]] virtual std::unique_ptr<AnyBox> box(Form form, const SubscribeOptions& options) = 0;
  [[nodiscard]] virtual ChannelStats stats() const = 0;
};

/// The channel of that type, made if it is not there; `options`: it must not be.
[[nodiscard]] Result<std::unique_ptr<AnyChannel>> channel_of(Bus& bus, std::size_t type,
                                                             const ChannelOptions* options);
[[nodiscard]] Subscription hear_pattern(Bus& bus, std::string_view pattern, const Captured& by,
                                        const SubscribeOptions& options);
[[nodiscard]] std::unique_ptr<AnyBox> pattern_box(Bus& bus, std::string_view pattern,
                                                  const SubscribeOptions& options);
[[nodiscard]] Subscription judge_once_made(Bus& bus, std::size_t type, const Captured& by,
                                           const SubscribeOptions& options);
/// Which channels: one of some sets.
enum : std::size_t { kOrderedSets = 3 };
constexpr std::array<std::uint32_t, kOrderedSets> kOrderedOf{0b000000011, 0b000110100, 0b100000001};
[[nodiscard]] Subscription hear_ordered(Bus& bus, std::size_t set, const Captured& by,
                                        const OrderOptions& options);

}  // namespace ringmain::fuzz
