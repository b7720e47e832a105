#include "adapters/launch/running.hpp"

#include <exception>
#include <memory>
#include <new>
#include <pthread.h>
#include <system_error>
#include <thread>
#include <utility>

#include "engine/system/clock.hpp"

#include "events/recorded_operations.hpp"

#include "adapters/launch/await_change.hpp"
#include "adapters/launch/flight_mark.hpp"
#include "adapters/launch/standard_error.hpp"

namespace ringmain::run {
namespace {

template <class F>
void try_to(F open) noexcept {
  try {
    open();
  } catch (const std::exception& failed) {
    tell_unheard(failed.what());
  }
}

}  // namespace

void Running::open() noexcept {
  try_to([this] { record(); });
  for (const std::string& sink : plan_.sinks) try_to([&] { sinks_.open(sink); });
  if ((plan_.summary || !sinks_.all_are_open()) && sinks_.none_is_open())
    try_to([&] { sinks_.open_one_that_counts(); });
  for (const std::string& source : plan_.sources) try_to([&] { sources_.open(source); });
}

/// First, so that what sources publish as they attach is in it.
void Running::record() {
  if (plan_.flight.empty()) return;
  auto made = bus_.record(plan_.flight, {.operations = collective::recorded_operations()});
  if (!made) {
    mark_recording(plan_.flight_marks, "");
    return tell("nothing is recorded: " + made.error().message);
  }
  flight_ = std::move(made).value();
  mark_recording(plan_.flight_marks, flight_.path());
  if (!flight_.complaint().empty()) tell(process_title(me_) + ": " + flight_.complaint());
}

void Running::ask(RunThread::Errand errand) noexcept {
  if (RunThread* const thread = the_thread) thread->ask(errand, limit_);
}

void Running::errand(RunThread::Errand errand, nanoseconds limit) {
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
    // A sink whose file blocks holds up this thread only, which inherits the table of descriptors.
    std::thread([work] {
      ::pthread_setname_np(::pthread_self(), "ringmain:end");
      work();
    }).detach();
  } catch (const std::system_error&) {
    return work();
  }
  const std::int64_t share = limit.count() * 9 / 10;  // the rest is for the sentences
  await_change(*done, 0, engine::now_ns() + share);
  if (*done == 0) stuck_at_ = sinks_.arrived();
  if (*done == 0 && errand == RunThread::kFinish) late(limit);
}

void Running::flush(nanoseconds limit) {
  (void)bus_.flush(limit);
  sinks_.flush();
}

void Running::finish() {
  sources_.end(limit_ / 4);
  (void)bus_.flush(limit_ / 2);
  const std::uint64_t lost = sinks_.close(over_);
  if (!over_.exchange(true)) say_end(lost);
}

void Running::late(nanoseconds limit) {
  if (over_.exchange(true)) return;  // it ends just now
  const std::uint64_t lost = sinks_.give_up(limit);
  if (lost == 0) {
    tell(process_title(me_) + ": sources and sinks did not end within " + in_seconds(limit) +
         " and are left alone");
  }
  say_end(lost);
}

bool Running::is_stuck() const noexcept {
  return under_way_ > 0 && stuck_at_ == sinks_.arrived();
}

void Running::say_end(std::uint64_t lost) const {
  lost += sinks_.say_unopened();
  if (plan_.summary) tell(summary(me_, bus_.stats(), lost, plan_.sources, sources_.attached()));
}

}  // namespace ringmain::run
