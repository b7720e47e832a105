// What a scenario needs: workers that end, publishers, and a check that notices what must not be.
#pragma once
#include <array>
#include <climits>
#include <cstdint>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "tests/engine/rig.hpp"
#include "tests/interleave/scheduler.hpp"

namespace ringmain::interleave {

using engine::Atomic;
using engine::ChannelCore;
using engine::ChannelCoreOptions;
using engine::Engine;
using engine::Lane;
using engine::LaneOptions;
using engine::Pushed;
using engine::Ref;
using engine::Run;
using tests::AttachedSubscriber;
using tests::Numbered;

/// A scenario: what must hold under every schedule.
struct Scenario {
  const char* name;
  const char* question;
  void (*play)();
};
extern const std::vector<Scenario> kScenarios;

/// Event `n` of publisher `id`, both from 1 and 0 up.
inline std::uint64_t number(std::uint64_t id, std::uint64_t n) {
  return id << 32 | n;
}

/// Publishes through the inlined path. The queue's own stores are not delayed, so that those before
/// them must not be either: its call is one step.
inline Pushed say(Lane& lane, std::uint64_t n) {
  auto make = [n]() noexcept {
    drain_buffer(false, "build", {"say", 0});
    return Numbered{n};
  };
  return engine::push<Numbered>(lane, make);
}

inline LaneOptions lane_options(std::uint32_t capacity = 8) {
  LaneOptions o;
  o.capacity = capacity;
  o.kind = static_cast<engine::LaneKind>(choose(3));
  return o;
}

/// Subscribes to one channel: callbacks must not overlap, and each publisher's events come in
/// order.
class OrderCheck {
 public:
  void operator()(const Run& run) {
    expect(inside_.exchange(1) == 0, "callbacks of one channel overlap");
    for (std::uint32_t i = 0; i < run.count; ++i) {
      const std::uint64_t n = tests::number_of(run, i);
      Atomic<std::uint64_t>& last = last_[(n >> 32) % last_.size()];
      expect((n & 0xffffffff) == last.load() + 1, "an event is lost, doubled or out of order");
      last.store(n & 0xffffffff, std::memory_order_release);
    }
    inside_.store(0, std::memory_order_release);
    heard_.fetch_add(run.count);
    engine::futex_wake(heard_, INT_MAX);
  }
  /// Waits as a user's thread would, helped by nobody: a lost wake-up is a deadlock.
  void await(std::uint32_t events) {
    for (std::uint32_t now = heard_.load(); now < events; now = heard_.load())
      (void)engine::futex_wait(heard_, now);
  }
  [[nodiscard]] std::uint64_t last(std::uint64_t id) const { return last_[id].load(); }
  [[nodiscard]] std::uint32_t heard() const { return heard_.load(); }
  [[nodiscard]] auto callback() {
    return [this](const Run& run) { (*this)(run); };
  }

 private:
  std::array<Atomic<std::uint64_t>, 8> last_{};
  Atomic<std::uint32_t> heard_{0};
  Atomic<std::uint32_t> inside_{0};
};

/// Captures that know whether they live; touched in the callback, with a step in between.
class Alive {
 public:
  explicit Alive(Atomic<std::uint32_t>& living)
      : living_(&living), word_(new Atomic<std::uint32_t>) {
    living_->fetch_add(1);
  }
  Alive(Alive&& other) noexcept
      : living_(std::exchange(other.living_, nullptr)), word_(std::move(other.word_)) {}
  Alive& operator=(Alive&&) = delete;
  ~Alive() {
    if (living_ == nullptr) return;
    touch();  // destroying takes a while
    living_->fetch_sub(1);
  }
  void touch() {
    word_->store(word_->load() + 1);
    expect(word_->load() != 0, "captures are gone while the callback runs");
  }

 private:
  Atomic<std::uint32_t>* living_;
  std::unique_ptr<Atomic<std::uint32_t>> word_;
};

/// Workers that run until stop(), which the destructor calls if the scenario did not.
class Crew {
 public:
  /// Without a housekeeper, unless `house`: it wakes by itself, and so might help a lost wake-up.
  explicit Crew(unsigned count, bool house = false) {
    engine::WorkersOptions o;
    o.count = count;
    workers_ = new Engine(o);
    allow_threads(count + (house ? 1 : 0));
    expect(workers_->start() == count, "not all workers started");
    allow_threads(~std::uint64_t{0});
  }
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;
  ~Crew() {
    if (!stopped_) stop();
  }
  void stop(bool abort = false) {
    stopped_ = true;
    const auto s = workers_->stop(abort, -1);
    expect(!s.refused && s.left == 0 && s.stuck.empty(), "stop() left something over");
  }
  [[nodiscard]] const Ref<Engine>& workers() const { return workers_; }
  Engine* operator->() const { return workers_.get(); }
  [[nodiscard]] Ref<ChannelCore> channel(ChannelCoreOptions options = {}) const {
    const auto made = tests::make_channel(workers_, std::move(options));
    expect(workers_->add(*made), "there is no room for a channel");
    return made;
  }

 private:
  Ref<Engine> workers_;
  bool stopped_ = false;
};

/// Threads that are joined.
class Threads {
 public:
  Threads() = default;
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;
  ~Threads() { join(); }
  template <class F>
  void start(F f) {
    threads_.emplace_back(std::move(f));
  }
  void join() {
    for (auto& t : threads_) t.join();
    threads_.clear();
  }

 private:
  std::vector<std::thread> threads_;
};

inline Lane& lane_of(ChannelCore& channel, const LaneOptions& options) {
  Lane* lane = channel.take_lane(options, channel);
  expect(lane != nullptr, "there is no lane");
  return *lane;
}

}  // namespace ringmain::interleave
