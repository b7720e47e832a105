#include "ringmain/adapters/run.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <pthread.h>
#include <sys/syscall.h>
#include <system_error>
#include <thread>
#include <unistd.h>

#include "ringmain/engine/missed.hpp"

#include "ringmain/adapters/main_thread.hpp"
#include "ringmain/adapters/registry.hpp"
#include "ringmain/adapters/run.h"
#include "ringmain/adapters/run_text.hpp"
#include "ringmain/adapters/run_thread.hpp"

namespace ringmain::run {

void clear_of_run();
void leave_by(bool to_finish) noexcept;

namespace {

constexpr auto kOpenLimit = std::chrono::seconds(5);

using registry::ProviderKind;
using registry::Registry;
using registry::Spec;

/// Hears everything and keeps nothing: without a subscriber nothing is counted.
class CountingSink final : public registry::Sink {
 public:
  void hear(const EventView&) override {}
};

/// Nobody while it opens.
std::atomic<RunThread*> the_thread{nullptr};

/// What runs in this process. Never destroyed: other threads publish until the process is gone.
class Running {
 public:
  explicit Running(Plan plan)
      : plan_(std::move(plan)), pid_(::getpid()), me_(read_rank_identity()), limit_(end_limit()) {}

  [[nodiscard]] bool in_child() const noexcept { return ::getpid() != pid_; }

  /// What cannot be opened is left out, and said.
  void open() noexcept {
    for (const std::string& sink : plan_.sinks) try_to([&] { open_sink(sink); });
    if (plan_.summary && sinks_.empty()) {
      try_to([&] { attach(registry::SinkHandle("summary", std::make_shared<CountingSink>())); });
    }
    for (const std::string& source : plan_.sources) {
      try_to([&] {
        const auto known = Registry::process().check(ProviderKind::source, source);
        if (!known) {
          miss(source, known.error().message);
        } else if (known.value().run.in_process) {
          open_source(source);
        }
      });
    }
  }

  Bus* join(std::string_view source) {
    const auto asked = std::find_if(plan_.sources.begin(), plan_.sources.end(),
                                    [&](const auto& one) { return Spec::of(one).name == source; });
    if (asked == plan_.sources.end()) return nullptr;
    const std::lock_guard lock(attached_mutex_);
    attached_[std::string(source)] = "";
    return &bus_;
  }

  /// Flushes or finishes, but for no longer than `limit`.
  void errand(RunThread::Errand errand, nanoseconds limit) {
    if (errand == RunThread::kFlush && is_stuck()) return;
    auto done = std::make_shared<std::atomic<std::uint32_t>>(0);
    ++under_way_;
    const auto work = [this, errand, limit, done] {
      try {
        errand == RunThread::kFinish ? finish() : flush(limit);
      } catch (const std::bad_alloc&) {
        write_sentence("ringmain: there was no memory to end sources and sinks\n");
      }
      --under_way_;
      *done = 1;
      wake_all(*done);
    };
    try {
      // What blocks, a sink's file above all, holds up its own thread only. It inherits our table.
      std::thread([work] {
        ::pthread_setname_np(::pthread_self(), "ringmain:end");
        work();
      }).detach();
    } catch (const std::system_error&) {
      return work();
    }
    const std::int64_t share = limit.count() * 9 / 10;  // the rest is for what is to be said
    await_change(*done, 0, monotonic_ns() + share);
    if (*done == 0) stuck_at_ = arrived();
    if (*done == 0 && errand == RunThread::kFinish) late(limit);
  }
  void ask(RunThread::Errand errand) noexcept {
    if (RunThread* const thread = the_thread) thread->ask(errand, limit_);
  }
  static void say(std::string sentence) {
    if (RunThread* const thread = the_thread) return thread->say(std::move(sentence));
    write_sentence("ringmain: " + sentence + "\n");  // while it opens
  }

  void miss(std::string_view source, std::string_view why) {
    const std::string name(Spec::of(source).name);
    say("source " + name + " could not attach to " + process_title(me_) + ": " + std::string(why));
    const std::lock_guard lock(attached_mutex_);
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
    (void)bus_.flush(limit_ / 2);
    const std::lock_guard lock(mutex_);
    std::uint64_t lost = 0;
    for (auto& sink : sinks_) {
      if (auto closed = sink.close(); !closed && !over_) {
        say("sink " + sink.name() + " of " + process_title(me_) + ": " + closed.error().message);
      }
      lost += sink.stats().dropped + sink.not_arrived();
      ++closed_;
    }
    if (!over_.exchange(true) && plan_.summary) say(summary(lost));
  }

  /// Time is up, and a thread of ours still works at the end: what it has not done is counted and
  /// said, and it is left alone.
  void late(nanoseconds limit) {
    if (over_.exchange(true)) return;  // it ends just now
    std::uint64_t lost = 0;
    const auto every = missing();
    for (auto& sink : sinks_) sink.give_up();
    for (const auto& [name, events] : every) {
      lost += events;
      if (events == 0) continue;
      say("sink " + name + " of " + process_title(me_) + ": " + std::to_string(events) +
          " events were not written within " + in_seconds(limit) +
          "; where that is too short for it, set RINGMAIN_END_S");
    }
    if (lost == 0) {
      say(process_title(me_) + ": sources and sinks did not end within " + in_seconds(limit) +
          " and are left alone");
    }
    if (plan_.summary) say(summary(lost));
  }

 private:
  template <class F>
  static void try_to(F open) noexcept {
    try {
      open();
    } catch (const std::exception& failed) {
      tell_unheard(failed.what());
    }
  }
  void open_sink(const std::string& sink) {
    auto opened = Registry::process().open_sink(sink);
    if (opened) return attach(std::move(opened).value());
    say("sink " + std::string(Spec::of(sink).name) + " could not open in " + process_title(me_) +
        ": " + opened.error().message);
  }
  void attach(registry::SinkHandle sink) {
    if (auto attached = sink.attach(bus_); !attached) return say(attached.error().message);
    sinks_.push_back(std::move(sink));
  }
  void open_source(const std::string& source) {
    auto opened = Registry::process().open_source(bus_, source);
    if (!opened) return miss(source, opened.error().message);
    sources_.push_back(std::move(opened).value());
    const std::lock_guard lock(attached_mutex_);
    attached_[std::string(Spec::of(source).name)] = "";
  }

  /// `lost`: what the sinks lost.
  [[nodiscard]] std::string summary(std::uint64_t lost) const {
    const std::lock_guard lock(attached_mutex_);
    return run::summary(me_, bus_.stats(), lost, plan_.sources, attached_);
  }

  /// Events that have not arrived, by the name of their sinks: sinks of one kind share it, and so
  /// do their mailboxes, which are there until a sink is closed.
  [[nodiscard]] std::map<std::string, std::uint64_t> missing() const {
    std::map<std::string, std::uint64_t> found;
    const std::size_t closed = closed_;
    for (std::size_t i = 0; i < sinks_.size(); ++i) {
      const std::uint64_t lost = sinks_[i].not_arrived();
      // Of an open one: what arrived is taken off what its mailbox was offered.
      found[sinks_[i].name()] +=
          lost + (i < closed ? sinks_[i].stats().dropped : -sinks_[i].heard());
    }
    for (const ChannelStats& c : bus_.stats().channels) {
      const auto sink = c.mailbox ? found.find(c.name) : found.end();
      if (sink != found.end()) sink->second += c.accepted + c.full;
    }
    for (auto& [name, events] : found) {  // counted while one moved
      if (static_cast<std::int64_t>(events) < 0) events = 0;
    }
    return found;
  }
  /// A flush was waited for in vain, is under way yet, and since then nothing has arrived anywhere.
  [[nodiscard]] bool is_stuck() const noexcept { return under_way_ > 0 && stuck_at_ == arrived(); }
  /// Events that sinks have written, or taken where they do not say so.
  [[nodiscard]] std::uint64_t arrived() const noexcept {
    std::uint64_t sum = 0;
    for (const auto& sink : sinks_) sum += sink.heard() - sink.not_arrived();
    return sum;
  }

  const Plan plan_;
  const pid_t pid_;
  const RankIdentity me_;
  const nanoseconds limit_;
  Bus& bus_ = Bus::process();
  std::mutex mutex_;  // who flushes and who finishes; held while a sink writes
  std::vector<registry::SinkHandle> sinks_;                 // as it was opened
  std::atomic<std::size_t> closed_{0};                      // of the sinks, in their order
  std::atomic<std::uint32_t> under_way_{0};                 // errands
  std::atomic<bool> over_{false};                           // the end is said, by whom ever
  std::atomic<std::uint64_t> stuck_at_{~std::uint64_t{0}};  // what had arrived when time was up
  std::vector<registry::Opened<registry::Source>> sources_;
  mutable std::mutex attached_mutex_;
  std::map<std::string, std::string> attached_;  // by source; "" or why not
};

std::atomic<Running*> running{nullptr};
std::atomic<bool> finished{false};

/// While this thread opens sources: one of them may join.
thread_local Running* opening = nullptr;

/// The main thread has left the process to others: it ends with the last of the program's.
void main_thread_left(bool in_order) noexcept {
  const int status = the_thread.load()->await_solitude();
  finish();
  if (!in_order) ::syscall(SYS_exit_group, status);
  sigset_t none;
  ::sigemptyset(&none);
  (void)::pthread_sigmask(SIG_SETMASK, &none, nullptr);  // the program's handlers may run again
  std::exit(0);  // as the C library does after the last thread
}

/// In a thread with descriptors of its own: all that is opened here, and all threads that are
/// started here, have them. The bus's threads do not: they write to the descriptors of mailboxes,
/// which are the program's.
void open_run(Plan plan) {
  start_bus();
  engine::begin_counting_missed();
  const bool standard_output =
      std::any_of(plan.sinks.begin(), plan.sinks.end(), [](const std::string& sink) {
        return sink.ends_with(":-") || sink.ends_with(":/dev/stdout");
      });
  auto* const made = new std::atomic<Running*>(nullptr);
  the_thread = &RunThread::start(
      {.open =
           [made, plan = std::move(plan)] {
             auto* const here = new Running(plan);
             opening = here;
             here->open();
             opening = nullptr;
             *made = here;
             running = here;
           },
       .errand = [made](RunThread::Errand errand,
                        nanoseconds limit) { made->load()->errand(errand, limit); },
       .standard_output = standard_output},
      kOpenLimit);
  watch_main_thread(&main_thread_left);
}

/// The one of this process, made at the first call; nullptr outside a run.
Running* started() {
  if (opening != nullptr) return opening;
  // A child that is forked meanwhile would begin anew, among locks that nobody will open.
  static std::atomic<pid_t> first{0};
  pid_t none = 0;
  if (!first.compare_exchange_strong(none, ::getpid()) && none != ::getpid()) return nullptr;
  static std::once_flag once;
  std::call_once(once, [] {
    try {
      if (auto plan = Plan::from_environment()) open_run(std::move(*plan));
    } catch (const std::exception& failed) {  // no thread, no memory: the program goes on unheard
      tell_unheard(failed.what());
    }
  });
  Running* const found = running;
  return found == nullptr || found->in_child() ? nullptr : found;
}

}  // namespace

Bus* join(std::string_view source) {
  Running* const here = started();
  try {
    return here == nullptr ? nullptr : here->join(source);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
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
  Running* const here = started();
  try {
    if (here != nullptr) here->miss(source, why);
  } catch (const std::bad_alloc&) {
    tell_unheard("there was no memory to say why");
  }
}

void flush(nanoseconds) {
  leave_by(false);
}

void finish() {
  leave_by(true);
}

/// On the way to an exec or, to finish, to the end, from wherever that is.
void leave_by(bool to_finish) noexcept {
  Running* const here = running;
  if (here == nullptr || here->in_child()) return;
  // Whoever comes second waits for the first: the process must not end under it.
  const bool over = to_finish ? finished.exchange(true) : finished.load();
  here->ask(over ? RunThread::kNothing : to_finish ? RunThread::kFinish : RunThread::kFlush);
}

/// For the preload's first moment.
void start_at_start() noexcept {
  try {
    clear_of_run();
    const auto plan = Plan::from_environment();
    if (plan && plan->at_start) (void)started();
  } catch (const std::exception& failed) {
    tell_unheard(failed.what());
  }
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
