#include "ringmain/adapters/run.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <poll.h>
#include <sys/eventfd.h>
#include <system_error>
#include <thread>
#include <unistd.h>

#include "ringmain/adapters/registry.hpp"
#include "ringmain/adapters/run.h"

namespace ringmain::run {
namespace {

using registry::ProviderKind;
using registry::Registry;
using registry::Spec;

/// Hears everything and keeps nothing: without a subscriber nothing is counted.
class CountingSink final : public registry::Sink {
 public:
  void hear(const EventView&) override {}
};

void say(const std::string& sentence) {
  const std::string line = "ringmain: " + sentence + "\n";
  (void)!::write(STDERR_FILENO, line.data(), line.size());  // one write: lines of ranks stay whole
}

std::string process_title(const RankIdentity& me) {
  std::string title =
      std::string(::program_invocation_short_name) + " (pid " + std::to_string(me.pid);
  if (me.launcher != "none") title += ", rank " + std::to_string(me.rank);
  return title + ")";
}

/// What runs in this process. Never destroyed: other threads publish until the process is gone.
class Running {
 public:
  explicit Running(Plan plan)
      : plan_(std::move(plan)), pid_(::getpid()), me_(read_rank_identity()) {}

  [[nodiscard]] bool in_child() const noexcept { return ::getpid() != pid_; }

  void open() {
    open_sinks();
    for (const std::string& source : plan_.sources) {
      const auto known = Registry::process().check(ProviderKind::source, source);
      if (!known) {
        miss(source, known.error().message);
      } else if (known.value().run.in_process) {
        open_source(source);
      }
    }
  }

  Bus* join(std::string_view source) {
    const auto asked = std::find_if(plan_.sources.begin(), plan_.sources.end(),
                                    [&](const auto& one) { return Spec::of(one).name == source; });
    if (asked == plan_.sources.end()) return nullptr;
    const std::lock_guard lock(mutex_);
    attached_[std::string(source)] = "";
    return &bus_;
  }

  void miss(std::string_view source, std::string_view why) {
    const std::string name(Spec::of(source).name);
    say("source " + name + " could not attach to " + process_title(me_) + ": " + std::string(why));
    const std::lock_guard lock(mutex_);
    attached_[name] = why;
  }

  void flush(nanoseconds limit) {
    (void)bus_.flush(limit);
    const std::lock_guard lock(mutex_);
    for (auto& sink : sinks_) sink.flush();
  }

  void finish() {
    std::vector<registry::Opened<registry::Source>> sources;
    {
      const std::lock_guard lock(mutex_);
      sources.swap(sources_);
    }
    sources.clear();  // outside the lock: a source may call back while it ends
    (void)bus_.flush(std::chrono::seconds(2));
    const std::lock_guard lock(mutex_);
    std::uint64_t dropped = 0;
    for (auto& sink : sinks_) {
      if (auto closed = sink.close(); !closed) {
        say("sink " + sink.name() + " of " + process_title(me_) + ": " + closed.error().message);
      }
      dropped += sink.stats().dropped;
    }
    if (plan_.summary) say(summary(dropped));
  }

 private:
  void open_sinks() {
    for (const std::string& sink : plan_.sinks) {
      auto opened = Registry::process().open_sink(sink);
      if (!opened) {
        say("sink " + std::string(Spec::of(sink).name) + " could not open in " +
            process_title(me_) + ": " + opened.error().message);
      } else {
        attach(std::move(opened).value());
      }
    }
    if (plan_.summary && sinks_.empty()) {
      attach(registry::SinkHandle("summary", std::make_shared<CountingSink>()));
    }
  }
  void attach(registry::SinkHandle sink) {
    if (auto attached = sink.attach(bus_); !attached) return say(attached.error().message);
    sinks_.push_back(std::move(sink));
  }
  void open_source(const std::string& source) {
    auto opened = Registry::process().open_source(bus_, source);
    if (!opened) return miss(source, opened.error().message);
    sources_.push_back(std::move(opened).value());
    attached_[std::string(Spec::of(source).name)] = "";
  }

  [[nodiscard]] std::string summary(std::uint64_t dropped) const {
    std::uint64_t events = 0;
    std::uint64_t lost = dropped;
    std::vector<std::pair<std::uint64_t, std::string>> busiest;
    for (const ChannelStats& c : bus_.stats().channels) {
      // What the bus says on itself is not the program's.
      if (c.mailbox || c.offered == 0 || c.name.starts_with("bus.")) continue;
      events += c.offered;
      lost += c.full + c.closed + c.no_memory + c.too_deep + c.evicted + c.discarded + c.pending;
      busiest.emplace_back(c.offered, c.name);
    }
    std::sort(busiest.rbegin(), busiest.rend());
    std::string text = process_title(me_) + ": " + std::to_string(events) + " events, " +
                       std::to_string(lost) + " lost";
    const char* before = ": ";
    for (const auto& [count, name] : busiest) {
      if (text.size() > 200) break;
      text += std::exchange(before, ", ") + name + " " + std::to_string(count);
    }
    for (const std::string& source : plan_.sources) {
      const std::string name(Spec::of(source).name);
      const auto found = attached_.find(name);
      if (found == attached_.end()) text += "; " + name + " was never used by the program";
      if (found != attached_.end() && !found->second.empty())
        text += "; " + name + " did not attach";
    }
    return text;
  }

  const Plan plan_;
  const pid_t pid_;
  const RankIdentity me_;
  Bus& bus_ = Bus::process();
  std::mutex mutex_;
  std::vector<registry::SinkHandle> sinks_;
  std::vector<registry::Opened<registry::Source>> sources_;
  std::map<std::string, std::string> attached_;  // by source; "" or why not
};

/// A thread that flushes and finishes for others: whoever leaves by _exit or exec may do so in a
/// handler that has interrupted anything, malloc included.
class Errands {
 public:
  /// nullptr: no descriptor or no thread is left.
  static Errands* start() {
    auto made = std::unique_ptr<Errands>(new Errands);
    if (made->asked_ < 0 || made->done_ < 0) return nullptr;
    sigset_t all;
    sigset_t before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_BLOCK, &all, &before);
    try {
      std::thread([self = made.get()] { self->run(); }).detach();
    } catch (const std::system_error&) {
      made.reset();
    }
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return made.release();
  }
  /// Waits until it is done, or for `limit`. Async-signal-safe.
  void send(bool to_finish, nanoseconds limit) noexcept {
    if (to_finish) finish_ = true;
    const std::uint64_t one = 1;
    if (::write(asked_, &one, sizeof one) != sizeof one) return;
    pollfd watched{done_, POLLIN, 0};
    const auto limit_ms = std::chrono::duration_cast<milliseconds>(limit).count();
    std::uint64_t taken = 0;
    if (::poll(&watched, 1, static_cast<int>(limit_ms)) == 1) {
      (void)!::read(done_, &taken, sizeof taken);
    }
  }

 private:
  void run() {
    std::uint64_t taken = 0;
    while (::read(asked_, &taken, sizeof taken) == sizeof taken || errno == EINTR) {
      finish_ ? run::finish() : run::flush(std::chrono::seconds(1));
      const std::uint64_t one = 1;
      (void)!::write(done_, &one, sizeof one);
    }
  }

  const int asked_ = ::eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
  const int done_ = ::eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE | EFD_NONBLOCK);
  std::atomic<bool> finish_{false};
};

std::atomic<Running*> running{nullptr};
std::atomic<bool> finished{false};
std::atomic<Errands*> errands{nullptr};

/// While this thread opens sources: one of them may join.
thread_local Running* opening = nullptr;

/// The one of this process, made at the first call; nullptr outside a run.
Running* started() {
  if (opening != nullptr) return opening;
  static std::once_flag once;
  std::call_once(once, [] {
    auto plan = Plan::from_environment();
    if (!plan) return;
    auto* made = new Running(std::move(*plan));
    opening = made;
    made->open();
    opening = nullptr;
    running = made;
    errands = Errands::start();
  });
  Running* const found = running;
  return found == nullptr || found->in_child() ? nullptr : found;
}

}  // namespace

Bus* join(std::string_view source) {
  Running* const here = started();
  return here == nullptr ? nullptr : here->join(source);
}

std::string argument_of(std::string_view source) {
  const auto plan = Plan::from_environment();
  if (!plan) return "";
  for (const std::string& one : plan->sources) {
    const Spec spec = Spec::of(one);
    if (spec.name == source) return std::string(spec.argument.value_or(""));
  }
  return "";
}

void could_not_attach(std::string_view source, std::string_view why) {
  if (Running* const here = started()) here->miss(source, why);
}

void flush(nanoseconds limit) {
  Running* const here = running;
  if (here != nullptr && !here->in_child() && !finished) here->flush(limit);
}

void finish() {
  Running* const here = running;
  if (here == nullptr || here->in_child() || finished.exchange(true)) return;
  here->finish();
}

/// On the way to an exec (or, to finish, to the end), from wherever that is.
void leave_by(bool to_finish, nanoseconds limit) noexcept {
  Running* const here = running;
  Errands* const helper = errands;
  if (here == nullptr || helper == nullptr || here->in_child() || finished) return;
  const int before = errno;
  helper->send(to_finish, limit);
  errno = before;
}

/// For the preload's first moment.
void start_at_start() {
  const auto plan = Plan::from_environment();
  if (plan && plan->at_start) (void)started();
}

}  // namespace ringmain::run

extern "C" {

void* ringmain_run_join(const char* source) {
  return ringmain::run::join(source);
}
void ringmain_run_could_not_attach(const char* source, const char* why) {
  ringmain::run::could_not_attach(source, why);
}
void ringmain_run_flush(int64_t limit_ns) {
  ringmain::run::flush(ringmain::nanoseconds(limit_ns));
}

}  // extern "C"
