// What hears of a process that belongs to a run: its sinks, the sources that live in it, and what
// they lost.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <pthread.h>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include "adapters/launch/files.hpp"
#include "adapters/launch/text.hpp"
#include "adapters/launch/thread.hpp"
#include "adapters/registry.hpp"
#include "adapters/run.hpp"

namespace ringmain::run {

/// Hears everything and keeps nothing: without a subscriber nothing is counted.
class CountingSink final : public registry::Sink {
 public:
  void hear(const EventView&) override {}
};

/// Nobody while it opens.
inline std::atomic<RunThread*> the_thread{nullptr};

/// What runs in this process. Never destroyed: other threads publish until the process is gone.
class Running {
 public:
  Running(Plan plan, std::vector<FileAtStart> files)
      : plan_(std::move(plan)),
        files_(std::move(files)),
        pid_(::getpid()),
        me_(read_rank_identity()),
        limit_(end_limit()) {}

  [[nodiscard]] bool in_child() const noexcept { return ::getpid() != pid_; }

  /// What cannot be opened is left out, and said.
  void open() noexcept {
    for (const std::string& sink : plan_.sinks) try_to([&] { open_sink(sink); });
    if ((plan_.summary || !unopened_.empty()) && sinks_.empty()) {
      try_to([&] { attach(registry::SinkHandle("summary", std::make_shared<CountingSink>())); });
    }
    for (const std::string& source : plan_.sources) {
      try_to([&] {
        const auto known =
            registry::Registry::process().check(registry::ProviderKind::source, source);
        if (!known) {
          miss(source, known.error().message);
        } else if (known.value().run.in_process) {
          open_source(source);
        }
      });
    }
  }

  Bus* join(std::string_view source) {
    const auto asked =
        std::find_if(plan_.sources.begin(), plan_.sources.end(),
                     [&](const auto& one) { return registry::Spec::of(one).name == source; });
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
    const std::string name(registry::Spec::of(source).name);
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
    if (over_.exchange(true)) return;
    lost += say_unopened();
    if (plan_.summary) say(summary(lost));
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
    lost += say_unopened();
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
    const auto file = std::find_if(files_.begin(), files_.end(),
                                   [&](const FileAtStart& one) { return one.sink == sink; });
    if (file == files_.end()) return open_sink_now(sink);
    if (!file->fault.empty())
      return unopened_.emplace_back(registry::Spec::of(sink).name), void();  // is said
    if (const std::string why = file->changed(); !why.empty()) return could_not_open(sink, why);
    open_sink_now(file->spec());
  }
  void open_sink_now(const std::string& sink) {
    auto opened = registry::Registry::process().open_sink(sink);
    opened ? attach(std::move(opened).value()) : could_not_open(sink, opened.error().message);
  }
  void could_not_open(const std::string& sink, const std::string& why) {
    say(no_sink(me_, sink, why));
    unopened_.emplace_back(registry::Spec::of(sink).name);
  }
  /// Returns what the sinks that could not open have lost.
  std::uint64_t say_unopened() const {
    const std::uint64_t events = unopened_.empty() ? 0 : events_of(bus_.stats());
    for (const std::string& sink : unopened_) {
      if (events != 0) {
        say("sink " + sink + " of " + process_title(me_) + ": " + std::to_string(events) +
            " events were not written");
      }
    }
    return events * unopened_.size();
  }
  void attach(registry::SinkHandle sink) {
    if (auto attached = sink.attach(bus_); !attached) return say(attached.error().message);
    sinks_.push_back(std::move(sink));
  }
  void open_source(const std::string& source) {
    auto opened = registry::Registry::process().open_source(bus_, source);
    if (!opened) return miss(source, opened.error().message);
    sources_.push_back(std::move(opened).value());
    const std::lock_guard lock(attached_mutex_);
    attached_[std::string(registry::Spec::of(source).name)] = "";
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
  const std::vector<FileAtStart> files_;
  const pid_t pid_;
  const RankIdentity me_;
  const nanoseconds limit_;
  Bus& bus_ = Bus::process();
  std::mutex mutex_;  // of threads that flush or finish; held while a sink writes
  std::vector<registry::SinkHandle> sinks_;                 // as it was opened
  std::vector<std::string> unopened_;                       // the names of those that were not
  std::atomic<std::size_t> closed_{0};                      // of the sinks, in their order
  std::atomic<std::uint32_t> under_way_{0};                 // errands
  std::atomic<bool> over_{false};                           // the end is said, by whom ever
  std::atomic<std::uint64_t> stuck_at_{~std::uint64_t{0}};  // what had arrived when time was up
  std::vector<registry::Opened<registry::Source>> sources_;
  mutable std::mutex attached_mutex_;
  std::map<std::string, std::string> attached_;  // by source; "" or why not
};

}  // namespace ringmain::run
