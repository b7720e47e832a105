// One subscription, whatever it listens to: a channel directly, or a mailbox that channels feed.
// Not for users of the library.
//
//   shared      channel ── subscriber
//   isolated    channel ── feeder ──► mailbox ── subscriber        (also by pattern: many feeders)
//   own_thread  the same, drained by a thread that serves it alone
//   pulled      channel ── feeder ──► mailbox ◄── its user's thread
//
// A feeder is a subscriber whose callback copies events, with their stamps, into its lane of the
// mailbox.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "../../engine/deliver/own_thread.hpp"

#include "../coalesce.hpp"
#include "../options.hpp"
#include "../result.hpp"
#include "../stats.hpp"
#include "mailbox_hold.hpp"
#include "subscription_host.hpp"

namespace ringmain::detail {

class SubscriptionCore final : public engine::Counted {
 public:
  /// `subscriber` may be nullptr (pulled); it is taken over. `mailbox` may be empty (shared).
  /// `parts`: others that end with it, the mailboxes it sorts events into. Throws
  /// std::invalid_argument, then nothing is taken over.
  SubscriptionCore(engine::Subscriber* subscriber, engine::Ref<MailboxHold> mailbox,
                   SubscribeOptions options, std::vector<engine::Ref<SubscriptionCore>> parts = {});
  ~SubscriptionCore() override;

  /// Puts the subscriber on that list. Throws std::bad_alloc.
  void listen(engine::ChannelCore& channel);
  /// Starts the mailbox's own thread, if it is to have one; named after the subscriber, or else
  /// after what it hears. After listen() and before feed_from(). Throws std::bad_alloc,
  /// std::system_error.
  void start_thread(std::string_view heard);
  /// Feeds the mailbox from `source`. Throws std::bad_alloc. `key`: by which its events are
  /// coalesced.
  void feed_from(engine::ChannelCore& source, KeyWriter key = {});
  /// There is no mailbox: feed_from() a channel of that event is listen() to it.
  void set_awaited(const Schema& schema) noexcept { awaited_ = &schema; }
  /// The bus feeds it from channels to come, until it is told to remove its pattern.
  void set_by_pattern() noexcept { by_pattern_ = true; }
  /// Is told who listens to `channel`, or to all that match `pattern`; `again` as in
  /// SubscriptionHost::watch_interest(). After set_host(). Throws std::bad_alloc.
  void watch(engine::ChannelCore* channel, std::string_view pattern, bool again = false);
  /// Undoes feed_from(source), of which nothing was heard yet, if it was done.
  void stop_feeding_from(const engine::ChannelCore& source) noexcept;

  /// Ends a quarantine. False: it was in none.
  bool readmit() noexcept;
  /// What Stats says of it.
  [[nodiscard]] SubscriptionStats row() const;
  /// Its account, where that can be checked at this moment; "" while it balances.
  [[nodiscard]] std::string unbalanced() const;
  Detached detach(std::int64_t limit_ns) noexcept;
  /// As in a callback: waits for nobody, the captures die after the calls that run.
  void detach_deferred() noexcept;
  /// Destroys a subscriber that was never listed, with its captures.
  static void discard(engine::Subscriber* subscriber) noexcept;
  void handle_is_gone() noexcept { handle_gone_ = true; }
  [[nodiscard]] bool handle_gone() const noexcept { return handle_gone_; }
  [[nodiscard]] bool attached() const noexcept { return !closed_ && !forked(); }
  [[nodiscard]] SubscriberStats stats() const noexcept;
  [[nodiscard]] const engine::Ref<MailboxHold>& mailbox() const noexcept { return mailbox_; }
  /// From here on the bus's figures show it, from any thread: what they read is const, or under the
  /// lock.
  void set_host(SubscriptionHost* host) noexcept;
  [[nodiscard]] engine::Ref<SubscriptionHost> host() const noexcept { return host_; }

  /// The hook row that it is on; nullptr: it is on none.
  [[nodiscard]] const engine::ChannelCore* hook_row() const noexcept;

  SubscriptionCore* next_kept = nullptr;  // the bus's, once it keeps this

 private:
  void listen_locked(engine::ChannelCore& channel);
  struct Listed {
    engine::Ref<engine::ChannelCore> channel;  // none: told of interest
    engine::Subscriber* subscriber;            // one holder of it
  };
  void close_all(bool deferred) noexcept;
  [[nodiscard]] bool quarantined() const noexcept;
  [[nodiscard]] std::optional<std::uint64_t> at_rest() const;
  [[nodiscard]] bool called_by_drainers() const;
  Detached wait_all(std::int64_t limit_ns) noexcept;
  engine::Gate::Waited wait_for(const Listed& listed, std::int64_t limit_ns) noexcept;

  // listed_ and consumer_: a new channel may add a feeder, or come to nothing, while another thread
  // detaches or asks for figures.
  mutable std::mutex mutex_;
  std::vector<Listed> listed_;
  engine::Subscriber* consumer_;  // the one that the user wrote; among listed_ once it listens
  const engine::Ref<MailboxHold> mailbox_;
  engine::Ref<engine::OwnThread> thread_;
  const std::vector<engine::Ref<SubscriptionCore>> parts_;
  engine::Ref<SubscriptionHost> host_;
  bool by_pattern_ = false;
  const Schema* awaited_ = nullptr;
  const SubscribeOptions options_;
  std::atomic<bool> closed_{false};
  bool listens_ = false;      // consumer_ is among listed_
  bool handle_gone_ = false;  // touched by the thread that has the handle
};

/// A subscriber that nobody has taken over yet: its captures must not outlive an exception.
struct Orphan {
  engine::Subscriber* subscriber;
  explicit Orphan(engine::Subscriber* s) noexcept : subscriber(s) {}
  Orphan(const Orphan&) = delete;
  Orphan& operator=(const Orphan&) = delete;
  ~Orphan() {
    if (subscriber != nullptr) SubscriptionCore::discard(subscriber);
  }
};

}  // namespace ringmain::detail
