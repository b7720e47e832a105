#include "adapters/sink_handle.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <pthread.h>
#include <stop_token>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "engine/subscribe/subscriber.hpp"
#include "engine/system/configure_thread.hpp"

#include "events/steps/log.hpp"

namespace ringmain::registry {
namespace {
constexpr milliseconds kDay = std::chrono::hours(24);
}  // namespace

struct SinkHandle::Core {
  Core(std::string name_, std::shared_ptr<Sink> sink_)
      : name(std::move(name_)), sink(std::move(sink_)) {
    if (const auto* periodic = dynamic_cast<const Periodic*>(sink.get())) {
      period = std::min(periodic->idle_every(), kDay);
    }
  }
  ~Core() { end(); }

  /// Counts what the sink throws, so that events from a mailbox and from a channel are counted
  /// alike.
  void hear(const EventView& event) {
    heard.fetch_add(1);
    try {
      sink->hear(event);
    } catch (...) {
      threw.fetch_add(1);
    }
  }
  /// In a callback, as hear() is: what a sink does when it is idle must not make it busy again.
  void idle() noexcept {
    const engine::CallbackScope scope;
    try {
      sink->idle();
    } catch (...) {
      threw.fetch_add(1);
    }
  }

  /// False: no event was there.
  bool hand_over_some(std::size_t max = 256) {
    const std::lock_guard lock(turn);
    return box.drain(
               [this](const EventView& event) {
                 const StepPlace in = steps->at(event.stamp());
                 hear(in.inside ? EventView(event, in) : event);
               },
               max) != 0;
  }
  void run(const std::stop_token& stop) {
    ::pthread_setname_np(::pthread_self(), "ringmain:sink");
    auto due = Clock::now() + period;
    while (!stop.stop_requested()) {
      while (hand_over_some() && !(is_periodic() && Clock::now() >= due)) {
      }
      {
        const std::lock_guard lock(turn);
        idle();
      }
      const auto now = Clock::now();
      if (now >= due) due = std::max(due + period, now);
      // Sleeps until the period is over or an event comes.
      (void)box.wait_for(is_periodic() ? std::chrono::ceil<milliseconds>(due - now) : kDay);
    }
    hand_over_pending();
  }
  /// The thread of a sink that hears on workers only, which call it when there are events.
  void tick(const std::stop_token& stop) {
    ::pthread_setname_np(::pthread_self(), "ringmain:sink");
    std::mutex unused;
    std::condition_variable_any stopped;
    std::unique_lock lock(unused);
    while (!stopped.wait_for(lock, stop, period, [&stop] { return stop.stop_requested(); })) {
      const std::lock_guard ours(turn);
      idle();
    }
  }
  [[nodiscard]] bool is_periodic() const noexcept { return period > milliseconds(0); }
  /// Hands over what is there now, and no more: publishers may go on for ever.
  void hand_over_pending() {
    for (std::uint64_t left = box.stats().pending; left > 0 && hand_over_some();) {
      left -= left < 256 ? left : 256;
    }
    const std::lock_guard lock(turn);
    idle();
  }
  /// Throws std::system_error where there is no thread.
  void start(void (Core::*work)(const std::stop_token&)) {
    const engine::BlockedSignals blocked;
    thread = std::jthread([this, work](const std::stop_token& stop) { (this->*work)(stop); });
  }
  void tick_if_periodic() {
    if (!is_periodic() || thread.joinable()) return;
    try {
      start(&Core::tick);
    } catch (const std::system_error&) {  // then it is idle only after events, or when it is closed
    }
  }
  void stop() {
    if (!thread.joinable()) return;
    thread.request_stop();
    if (box.attached()) box.rouse();
    thread.join();
  }
  void end() {
    said.clear();
    if (own != nullptr) std::exchange(own, nullptr)->unsubscribe();
    stop();
    dropped = box.attached() ? box.stats() : dropped;
    box.reset();
  }

  using Clock = std::chrono::steady_clock;

  const std::string name;
  std::shared_ptr<Sink> sink;
  milliseconds period{0};  // of idle(); 0: it is called when there are no events, and only then
  std::mutex turn;
  std::atomic<std::uint64_t> heard{0};
  std::atomic<std::uint64_t> threw{0};
  std::vector<Subscription> said;
  std::optional<step::Follow> steps;  // while attached
  AnyMailbox box;
  Subscribes* own = nullptr;  // the sink, while it has subscriptions of its own
  SubscriberStats dropped;    // the mailbox's last figures
  bool closed = false;
  std::jthread thread;
};

SinkHandle::SinkHandle(std::string name, std::shared_ptr<Sink> sink)
    : core_(std::make_unique<Core>(std::move(name), std::move(sink))) {}
SinkHandle::SinkHandle(SinkHandle&&) noexcept = default;
SinkHandle& SinkHandle::operator=(SinkHandle&&) noexcept = default;
SinkHandle::~SinkHandle() {
  if (core_ != nullptr) (void)close();
}

Result<bool> SinkHandle::attach(Bus& bus, std::string_view pattern) {
  if (core_->box.attached() || core_->own != nullptr || core_->closed) {
    return Error{Error::Code::conflict,
                 "sink '" + core_->name + "' is attached already, or closed"};
  }
  if (auto* const own = dynamic_cast<Subscribes*>(core_->sink.get())) return attach_own(bus, *own);
  core_->stop();  // the thread that ticks, if there is one
  core_->steps.emplace(bus);
  core_->box = bus.mailbox(pattern, {.name = core_->name});
  try {
    core_->start(&Core::run);
  } catch (const std::system_error& failed) {
    core_->box.reset();
    return Error{Error::Code::system,
                 "no thread for the sink '" + core_->name + "': " + failed.what()};
  }
  return true;
}

Result<bool> SinkHandle::attach_own(Bus& bus, Subscribes& own) {
  try {
    own.subscribe(bus);
  } catch (const std::exception& thrown) {
    return Error{Error::Code::system,
                 "sink '" + core_->name + "' cannot subscribe: " + thrown.what()};
  }
  core_->own = &own;
  core_->tick_if_periodic();
  return true;
}

bool SinkHandle::subscribes() const noexcept {
  return dynamic_cast<const Subscribes*>(core_->sink.get()) != nullptr;
}

void SinkHandle::flush() {
  if (core_->box.attached()) core_->hand_over_pending();
  if (core_->own == nullptr) return;
  const std::lock_guard lock(core_->turn);
  core_->idle();
}

Result<bool> SinkHandle::close() {
  if (core_->own != nullptr) core_->dropped = stats();
  core_->end();
  if (std::exchange(core_->closed, true)) return true;
  try {
    return core_->sink->close();
  } catch (const std::exception& thrown) {
    return Error{Error::Code::system,
                 "sink '" + core_->name + "' could not close: " + thrown.what()};
  } catch (...) {
    return Error{Error::Code::system, "sink '" + core_->name + "' could not close: it threw"};
  }
}

const std::string& SinkHandle::name() const noexcept {
  return core_->name;
}
SubscriberStats SinkHandle::stats() const {
  if (core_->own != nullptr) return core_->own->stats();
  return core_->box.attached() ? core_->box.stats() : core_->dropped;
}
std::uint64_t SinkHandle::not_arrived() const noexcept {
  const auto* arrivals = dynamic_cast<const Arrivals*>(core_->sink.get());
  return arrivals == nullptr ? 0 : arrivals->not_arrived();
}
void SinkHandle::give_up() noexcept {
  if (auto* arrivals = dynamic_cast<Arrivals*>(core_->sink.get())) arrivals->give_up();
}
std::uint64_t SinkHandle::heard() const noexcept {
  return core_->heard;
}
std::uint64_t SinkHandle::threw() const noexcept {
  return core_->threw;
}
void SinkHandle::keep(Subscription said) {
  core_->said.push_back(std::move(said));
  core_->tick_if_periodic();
}

SinkHandle::Turn::Turn(Core& core) : core_(core) {
  core_.turn.lock();
}
SinkHandle::Turn::~Turn() {
  core_.idle();
  core_.turn.unlock();
}
void SinkHandle::Turn::hear(const EventView& event) const {
  core_.hear(event);
}

}  // namespace ringmain::registry
