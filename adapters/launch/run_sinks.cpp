#include "adapters/launch/run_sinks.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "adapters/launch/text.hpp"
#include "adapters/launch/thread.hpp"

namespace ringmain::run {
namespace {

class CountingSink final : public registry::Sink {
 public:
  void hear(const EventView&) override {}
};

std::string name_of_sink(const std::string& sink) {
  return std::string(registry::Spec::of(sink).name);
}

}  // namespace

void RunSinks::open(const std::string& sink) {
  const auto file = std::find_if(files_.begin(), files_.end(),
                                 [&](const FileAtStart& one) { return one.sink == sink; });
  if (file == files_.end()) return open_now(sink);
  if (!file->fault.empty()) {
    unopened_.push_back(name_of_sink(sink));  // it was said when the process began
    return;
  }
  if (const std::string why = file->changed(); !why.empty()) return could_not_open(sink, why);
  open_now(file->spec());
}

void RunSinks::open_now(const std::string& sink) {
  auto opened = registry::Registry::process().open_sink(sink);
  opened ? attach(std::move(opened).value()) : could_not_open(sink, opened.error().message);
}

void RunSinks::could_not_open(const std::string& sink, const std::string& why) {
  tell(no_sink(me_, sink, why));
  unopened_.push_back(name_of_sink(sink));
}

void RunSinks::attach(registry::SinkHandle sink) {
  if (auto attached = sink.attach(bus_); !attached) return tell(attached.error().message);
  sinks_.push_back(std::move(sink));
}

void RunSinks::open_one_that_counts() {
  attach(registry::SinkHandle("summary", std::make_shared<CountingSink>()));
}

void RunSinks::flush() {
  const std::lock_guard lock(mutex_);
  for (auto& sink : sinks_) sink.flush();
}

std::uint64_t RunSinks::close(const std::atomic<bool>& over) {
  const std::lock_guard lock(mutex_);
  std::uint64_t lost = 0;
  for (auto& sink : sinks_) {
    if (auto closed = sink.close(); !closed && !over) {
      tell("sink " + sink.name() + " of " + process_title(me_) + ": " + closed.error().message);
    }
    lost += sink.stats().dropped + sink.not_arrived();
    ++closed_;
  }
  return lost;
}

std::uint64_t RunSinks::give_up(nanoseconds limit) {
  const auto every = missing();
  for (auto& sink : sinks_) sink.give_up();
  std::uint64_t lost = 0;
  for (const auto& [name, events] : every) {
    lost += events;
    if (events == 0) continue;
    tell("sink " + name + " of " + process_title(me_) + ": " + std::to_string(events) +
         (events == 1 ? " event was" : " events were") + " not written within " +
         in_seconds(limit) + "; where that is too short for it, set RINGMAIN_END_S");
  }
  return lost;
}

std::uint64_t RunSinks::say_unopened() const {
  const std::uint64_t events = unopened_.empty() ? 0 : events_of(bus_.stats());
  for (const std::string& sink : unopened_) {
    if (events != 0) {
      tell("sink " + sink + " of " + process_title(me_) + ": " + std::to_string(events) +
           (events == 1 ? " event was not written" : " events were not written"));
    }
  }
  return events * unopened_.size();
}

std::uint64_t RunSinks::arrived() const noexcept {
  std::uint64_t sum = 0;
  for (const auto& sink : sinks_) sum += sink.heard() - sink.not_arrived();
  return sum;
}

/// How many events have not arrived, by the sinks' names. Sinks of one kind share a name, and so do
/// their mailboxes, which exist until a sink is closed.
std::map<std::string, std::uint64_t> RunSinks::missing() const {
  std::map<std::string, std::uint64_t> found;
  const std::size_t closed = closed_;
  for (std::size_t i = 0; i < sinks_.size(); ++i) {
    const std::uint64_t lost = sinks_[i].not_arrived();
    // For an open sink: what its mailbox was offered, less what arrived.
    found[sinks_[i].name()] += lost + (i < closed ? sinks_[i].stats().dropped : -sinks_[i].heard());
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

}  // namespace ringmain::run
