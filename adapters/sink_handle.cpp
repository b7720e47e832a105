#include "adapters/sink_handle.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <pthread.h>
#include <stop_token>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "engine/system/configure_thread.hpp"

#include "events/steps/log.hpp"

namespace ringmain::registry {
struct SinkHandle::Core {
  Core(std::string name_, std::shared_ptr<Sink> sink_)
      : name(std::move(name_)), sink(std::move(sink_)) {}
  ~Core() { end(); }

  /// What the sink throws is the mailbox's, too: it is counted here, so that both ways say the
  /// same.
  void hear(const EventView& event) {
    heard.fetch_add(1);
    try {
      sink->hear(event);
    } catch (...) {
      threw.fetch_add(1);
    }
  }
  void idle() noexcept {
    try {
      sink->idle();
    } catch (...) {
      threw.fetch_add(1);
    }
  }

  /// False when nothing was there.
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
    while (!stop.stop_requested()) {
      while (hand_over_some()) {
      }
      {
        const std::lock_guard lock(turn);
        idle();
      }
      (void)box.wait_for(std::chrono::hours(24));  // or until it is roused
    }
    hand_over_pending();
  }
  /// What is there now: publishers may go on for ever.
  void hand_over_pending() {
    for (std::uint64_t left = box.stats().pending; left > 0 && hand_over_some();) {
      left -= left < 256 ? left : 256;
    }
    const std::lock_guard lock(turn);
    idle();
  }
  void end() {
    said.clear();
    if (thread.joinable()) {
      thread.request_stop();
      box.rouse();
      thread.join();
    }
    dropped = box.attached() ? box.stats() : dropped;
    box.reset();
  }

  const std::string name;
  std::shared_ptr<Sink> sink;
  std::mutex turn;
  std::atomic<std::uint64_t> heard{0};
  std::atomic<std::uint64_t> threw{0};
  std::vector<Subscription> said;
  std::optional<step::Follow> steps;  // while attached
  AnyMailbox box;
  SubscriberStats dropped;  // the mailbox's last figures
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
  if (core_->thread.joinable() || core_->closed) {
    return Error{Error::Code::conflict,
                 "sink '" + core_->name + "' is attached already, or closed"};
  }
  core_->steps.emplace(bus);
  core_->box = bus.mailbox(pattern, {.name = core_->name});
  try {
    const engine::BlockedSignals blocked;
    core_->thread =
        std::jthread([core = core_.get()](const std::stop_token& stop) { core->run(stop); });
  } catch (const std::system_error& failed) {
    return Error{Error::Code::system,
                 "no thread for the sink '" + core_->name + "': " + failed.what()};
  }
  return true;
}

void SinkHandle::flush() {
  if (core_->box.attached()) core_->hand_over_pending();
}

Result<bool> SinkHandle::close() {
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
