// One bus, its publishers, subscribers and mailboxes, and what its callbacks do.
#pragma once
#include <array>
#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "bus/test_bus.hpp"

#include "tests/fuzz/operations.hpp"
#include "tests/fuzz/oracle.hpp"
#include "tests/fuzz/typed.hpp"

namespace ringmain::fuzz {

class BusUnderTest : public Hearers {
 public:
  BusUnderTest(const Case& what, Faults& faults);
  ~BusUnderTest() override;
  void run();
  /// What was heard, in its order: the same every time without workers.
  [[nodiscard]] std::uint64_t trace() const;

  void heard(SubscriberRecord& subscriber, const Mark& mark, bool whole,
             const Stamp* stamp) override;
  void heard_all(SubscriberRecord& subscriber, std::span<const Heard> batch) override;
  [[nodiscard]] bool wanted(SubscriberRecord& subscriber, const Mark& mark, bool whole) override;
  [[nodiscard]] Verdict judged(SubscriberRecord& subscriber, const Mark& mark, bool whole) override;

 private:
  struct OwnedPublisher {
    PublisherRecord* publisher;
    std::unique_ptr<AnyPublisher> out;
  };
  /// What belongs to a subscriber and is not the journal's. A thread that uses the handle takes the
  /// lock; callbacks only try it.
  struct Held {
    std::mutex lock;
    SubscriberRecord* subscriber = nullptr;
    Subscription handle;
    std::unique_ptr<AnyBox> box;
    std::shared_ptr<Owner> owner;
    bool released = false;
  };
  struct Actor {
    std::size_t index = 0;
    std::vector<OwnedPublisher> publishers;
    std::vector<Held*> subscribers, boxes;
  };
  struct Asked {  // by on_interest
    std::size_t channel;
    std::shared_ptr<std::atomic<std::uint32_t>> subscribers;
    Subscription handle;
  };
  using Numbers = std::array<std::uint32_t, 4>;

  // What is asked for (perform.cpp)
  void act(Actor& by, const Operation& op);
  void configure(const Numbers& n);
  void make_publisher(Actor& by, const Numbers& n);
  void say(Actor& by, const Numbers& n);
  void leave(Actor& by, const Numbers& n);
  void hear(Actor& by, const Numbers& n);
  void box(Actor& by, const Numbers& n);
  void reset(Actor& by, const Numbers& n);
  void touch(Actor& by, const Numbers& n);
  void look() const;
  void ask(const Numbers& n);
  // Mailboxes (mailboxes.cpp)
  void take(Actor& by, const Numbers& n);
  std::size_t read_some(Held& held, std::uint32_t how, std::size_t max);
  void look_at_full_one(Held& held, std::uint32_t how);
  // Publishing, from anywhere (publishing.cpp)
  void publish_by(PublisherRecord& publisher, AnyPublisher& out, std::uint32_t what,
                  std::uint32_t count, std::uint32_t how);
  void publish_one(PublisherRecord& publisher, AnyPublisher& out, std::uint32_t what,
                   std::uint32_t how);
  void publish_batch(PublisherRecord& publisher, AnyPublisher& out, std::uint32_t what,
                     std::uint32_t count);
  void check_one(const PublisherRecord& publisher, const Published& said, const Ledger& before,
                 const Ledger& after);
  void speak(std::size_t channel, std::uint32_t what, std::uint32_t count, std::uint32_t how);
  // In callbacks (callbacks.cpp)
  void do_inside(SubscriberRecord& subscriber, const Mark& mark);
  void reset_inside(SubscriberRecord& subscriber);
  void fail(SubscriberRecord& subscriber);
  [[nodiscard]] std::atomic<int>* busy(SubscriberRecord& subscriber);

  /// nullptr: one whose handle nobody asks for until the end.
  void attach(Actor* by, SubscriberRecord& subscriber, const Numbers& n);
  [[nodiscard]] SubscribeOptions options_of(SubscriberRecord& subscriber, const Numbers& n) const;
  void reset_one(Held& held, std::uint32_t how);
  [[nodiscard]] bool must_refuse(const SubscriberRecord& subscriber) const;
  AnyChannel& channel(std::size_t type);
  [[nodiscard]] bool parallel_at(std::size_t type) const {
    return parallel_[type].load(std::memory_order_relaxed);  // relaxed: it must order nothing
  }
  [[nodiscard]] bool full_of_events() const { return journal_.said() > kSaidInAll; }

  void rest();
  void judge();
  void end();
  void phase(std::size_t from, std::size_t to);

  enum : std::uint64_t { kSaidInAll = 12'000 };
  static constexpr nanoseconds kLong = std::chrono::seconds(100);
  const Case& case_;
  Faults& faults_;
  Journal journal_;
  Oracle oracle_;
  const std::uint64_t serial_;
  std::array<std::atomic<int>, kTypes> busy_{};
  std::deque<Held> held_;
  std::mutex held_lock_;
  std::array<std::atomic<Held*>, kSubscribersMax> held_of_{};
  std::vector<Actor> actors_;
  std::vector<Held*> late_;  // made in callbacks
  std::vector<Asked> asked_;
  mutable std::mutex channels_lock_;
  std::array<ChannelOptions, kTypes> options_{};
  std::array<std::atomic<bool>, kTypes> parallel_{};
  std::unique_ptr<TestBus> manual_;
  std::unique_ptr<Bus> driven_;
  Bus* bus_ = nullptr;
  std::array<std::unique_ptr<AnyChannel>, kTypes> channels_;
  bool over_ = false;
};

}  // namespace ringmain::fuzz
