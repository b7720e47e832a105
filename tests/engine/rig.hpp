// What an engine test needs: workers, a channel, a subscriber made of a lambda, a drain by hand.
#pragma once
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "engine/channel/channel_core.hpp"
#include "engine/deliver/drain.hpp"
#include "engine/deliver/merge.hpp"
#include "engine/deliver/pull.hpp"
#include "engine/engine.hpp"
#include "engine/publish/push.hpp"

namespace ringmain::tests {

struct Numbered {
  std::uint64_t n = 0;
};

/// A subscriber whose captures are `hear(run)`; one holder of it, the caller's.
template <class Callback>
engine::Subscriber* make_test_subscriber(Callback callback) {
  engine::Subscriber* s = engine::make_subscriber(sizeof(Callback));
  ::new (s->captures()) Callback(std::move(callback));
  s->call = [](engine::Subscriber& self, const engine::Run& run) {
    (*std::launder(static_cast<Callback*>(self.captures())))(run);
    self.count(self.delivered, run.count);
  };
  s->destroy = [](engine::Subscriber& self) noexcept {
    std::destroy_at(std::launder(static_cast<Callback*>(self.captures())));
  };
  return s;
}

/// Attached from construction to destruction, with the steps that the bus takes.
class AttachedSubscriber {
 public:
  template <class Callback>
  AttachedSubscriber(engine::ChannelCore& channel, Callback callback)
      : channel_(&channel), subscriber_(make_test_subscriber(std::move(callback))) {
    subscriber_->holders.fetch_add(1);
    if (!channel.attach(subscriber_)) throw std::bad_alloc();
  }
  AttachedSubscriber(const AttachedSubscriber&) = delete;
  AttachedSubscriber& operator=(const AttachedSubscriber&) = delete;
  ~AttachedSubscriber() {
    subscriber_->gate.close();
    channel_->unlist(subscriber_);
    if (engine::wait_uncalled(*subscriber_, -1) == engine::Gate::Waited::claimed) {
      subscriber_->destroy(*subscriber_);
      subscriber_->gate.gone();
    }
    engine::drop_subscriber(subscriber_);
  }
  [[nodiscard]] engine::Subscriber& operator*() const { return *subscriber_; }

 private:
  engine::Ref<engine::ChannelCore> channel_;
  engine::Subscriber* subscriber_;
};

inline engine::Ref<engine::ChannelCore> make_channel(const engine::Ref<engine::Engine>& workers,
                                                     engine::ChannelCoreOptions options = {}) {
  if (options.name.empty()) options.name = "test";
  if (options.payload_bytes == 0) options.payload_bytes = sizeof(Numbered);
  return engine::make_channel_core(workers.get(), std::move(options));
}

/// Workers that never start: the test drains by hand, so that every step is its own.
inline engine::Ref<engine::Engine> resting_workers() {
  return new engine::Engine({});
}

inline const char* name_of(engine::LaneKind kind) {
  return kind == engine::LaneKind::ring         ? "ring"
         : kind == engine::LaneKind::moodycamel ? "moodycamel"
                                                : "segments";
}

inline engine::Pushed push_number(engine::Lane& lane, std::uint64_t n) {
  auto make = [n]() noexcept { return Numbered{n}; };
  return engine::push<Numbered>(lane, make);
}

inline std::uint64_t number_of(const engine::Run& run, std::size_t i) {
  return reinterpret_cast<const Numbered*>(run.payload(i))->n;
}

/// Appends the numbers of each run to `to`.
inline auto keep_numbers(std::vector<std::uint64_t>& to) {
  return [&to](const engine::Run& run) {
    for (std::size_t i = 0; i < run.count; ++i) to.push_back(number_of(run, i));
  };
}

/// Who waits a little after a batch waits for good, as far as a test can tell.
inline engine::WaitOptions lingering_for_an_hour() {
  engine::WaitOptions wait;
  wait.linger_ns = 3'600'000'000'000;
  return wait;
}

/// Started workers and a way to end them.
class Running {
 public:
  explicit Running(unsigned count, engine::WaitOptions wait = {}) {
    engine::WorkersOptions options;
    options.count = count;
    options.wait = wait;
    workers_ = new engine::Engine(options);
    workers_->start();
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  ~Running() { (void)workers_->stop(false, 60'000'000'000); }
  [[nodiscard]] const engine::Ref<engine::Engine>& workers() const { return workers_; }
  engine::Engine* operator->() const { return workers_.get(); }
  /// A channel that the workers drain.
  engine::Ref<engine::ChannelCore> channel(engine::ChannelCoreOptions options = {}) const {
    const auto made = make_channel(workers_, std::move(options));
    if (!workers_->add(*made)) throw std::bad_alloc();
    return made;
  }

 private:
  engine::Ref<engine::Engine> workers_;
};

}  // namespace ringmain::tests
