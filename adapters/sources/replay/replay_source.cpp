#include "adapters/sources/replay/replay_source.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <stop_token>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "bus/origin.hpp"

#include "adapters/sources/replay/replay_handover.hpp"
#include "adapters/sources/replay/replay_pace.hpp"
#include "adapters/sources/replay/replay_voice.hpp"

namespace ringmain::replay {
namespace {

/// Room per publisher, so that all of them together stay within their share of the memory. More
/// would only make events wait longer.
PublisherOptions publisher_options(const Recording& recording, const ReplayOptions& options) {
  constexpr std::uint64_t kSlotBytes = 160;  // a queued event with its share of the queue's blocks
  const std::uint64_t share =
      options.queueing_bytes() / (std::max<std::uint64_t>(recording.publishers, 1) * kSlotBytes);
  PublisherOptions made;
  made.capacity_events = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(share, 32, 1024));
  made.overflow = Overflow::block;
  made.block_us_max = std::chrono::hours(24 * 365);  // lossless: only stop() ends the wait
  made.source_time = true;
  return made;
}

}  // namespace

struct Source::Core {
  struct Speaker {
    Speaker(Bus& bus, const PublisherOptions& publishers) : voice(bus, publishers) {}
    Voice voice;
    HandOver queue;
    Chunk gathered;  // the feeder's: not yet given
    std::int64_t late_ns_max = 0;
    std::jthread thread;
  };

  Core(Bus& bus_, const Recording& recording_, const ReplayOptions& options_)
      : bus(bus_), recording(recording_), options(options_), pace(options_.speed) {
    const PublisherOptions publishers = publisher_options(recording, options);
    for (std::size_t lane = 0; lane < recording.lanes.size(); ++lane) {
      speakers.emplace_back(bus, publishers);
    }
  }
  ~Core() {
    stop.request_stop();
    join();
  }

  void start();
  void join();
  void feed();
  template <class Take>
  void read(Take&& take);
  bool gather(const KinetoMapped& mapped);
  bool give(Speaker& speaker);
  void give_what_fits();
  void speak(Speaker& speaker);
  void say_in_order();

  Bus& bus;
  const Recording& recording;
  const ReplayOptions options;
  std::stop_source stop;
  Pace pace;
  std::deque<Speaker> speakers;  // one per lane
  std::optional<Visitors> visitors;
  Alarm::Clock::time_point begun;
  std::atomic<std::uint64_t> published{0};
  std::optional<Error> error;
  bool complete = false;
  std::jthread feeder;
};

void Source::Core::start() {
  if (options.visitors) visitors.emplace(bus, recording);
  begun = Alarm::Clock::now();
  if (options.order == Order::thread) {
    for (std::size_t lane = 0; lane < speakers.size(); ++lane) {
      if (recording.events_on[lane] == 0) continue;
      speakers[lane].thread = std::jthread([this, lane] { speak(speakers[lane]); });
    }
  }
  feeder = std::jthread([this] { feed(); });
}

void Source::Core::join() {
  if (feeder.joinable()) feeder.join();
}

/// Ends when all is published: the speakers are joined here, then whoever waits is told.
void Source::Core::feed() {
  if (options.order == Order::recorded) {
    say_in_order();
  } else {
    read([this](const KinetoMapped& mapped) { return gather(mapped); });
    for (Speaker& speaker : speakers) {
      if (!speaker.gathered.empty()) (void)give(speaker);
      speaker.queue.close();
    }
    for (Speaker& speaker : speakers) {
      if (speaker.thread.joinable()) speaker.thread.join();
    }
  }
  if (visitors) visitors->stop();
  if (options.done) options.done();
}

/// Every event of every loop to `take`, until that returns false. Operations get numbers that
/// nobody else in this process has, in each loop others.
template <class Take>
void Source::Core::read(Take&& take) {
  std::uint64_t before = new_op_ids(recording.operations * options.loops) - 1;
  for (std::uint32_t loop = 0; loop < options.loops; ++loop) {
    ReplayStore::Reader reader(recording.store);
    KinetoMapped mapped;
    for (;;) {
      if (stop.stop_requested()) return;
      const auto more = reader.next(mapped);
      if (!more) {
        error = more.error();
        return;
      }
      if (!more.value()) break;
      if (std::uint64_t* const op_id = op_id_of(mapped.event)) *op_id += before;
      if (!take(mapped)) return;
    }
    before += recording.operations;
  }
  complete = true;
}

bool Source::Core::gather(const KinetoMapped& mapped) {
  Speaker& speaker = speakers[mapped.lane];
  if (speaker.gathered.capacity() == 0) speaker.gathered.reserve(HandOver::kChunkEvents);
  speaker.gathered.push_back({mapped, pace.due_ns(mapped.time_ns, mapped.lane != 0)});
  return speaker.gathered.size() < HandOver::kChunkEvents || give(speaker);
}

/// Before the feeder waits for one speaker, the others get what is theirs: it may be due first.
bool Source::Core::give(Speaker& speaker) {
  if (speaker.queue.full()) give_what_fits();
  return speaker.queue.give(std::exchange(speaker.gathered, {}), stop.get_token());
}

void Source::Core::give_what_fits() {
  for (Speaker& other : speakers) {
    if (other.gathered.empty() || other.queue.full()) continue;
    (void)other.queue.give(std::exchange(other.gathered, {}), stop.get_token());
  }
}

void Source::Core::speak(Speaker& speaker) {
  const std::stop_token token = stop.get_token();
  Alarm alarm(begun);
  Chunk chunk;
  while (speaker.queue.take(chunk, token)) {
    for (const Due& due : chunk) {
      if (!pace.flat_out() && !alarm.wait(due.due_ns, token)) break;
      speaker.voice.say(due.mapped);
    }
    published += chunk.size();
  }
  speaker.late_ns_max = alarm.late_ns_max();
}

void Source::Core::say_in_order() {
  const std::stop_token token = stop.get_token();
  Alarm alarm(begun);
  read([&](const KinetoMapped& mapped) {
    const std::int64_t due = pace.due_ns(mapped.time_ns, mapped.lane != 0);
    if (!pace.flat_out() && !alarm.wait(due, token)) return false;
    speakers[mapped.lane].voice.say(mapped);
    ++published;
    return true;
  });
  speakers.front().late_ns_max = alarm.late_ns_max();
}

Source::Source(std::unique_ptr<Core> core) noexcept : core_(std::move(core)) {}
Source::Source(Source&&) noexcept = default;
Source& Source::operator=(Source&&) noexcept = default;
Source::~Source() = default;

Result<Source> Source::attach(Bus& bus, const Recording& recording, const ReplayOptions& options) {
  auto core = std::make_unique<Core>(bus, recording, options);
  try {
    core->start();
  } catch (const std::system_error& failed) {
    return Error{Error::Code::system, std::string("no thread left for the replay: ") +
                                          failed.what() +
                                          "; raise the limit (ulimit -u), or use Order::recorded"};
  }
  return Source(std::move(core));
}

void Source::stop() noexcept {
  core_->stop.request_stop();
}

Outcome Source::wait() {
  core_->join();
  Outcome outcome;
  for (const auto& speaker : core_->speakers) {
    outcome.accepted += speaker.voice.accepted();
    outcome.unheard += speaker.voice.unheard();
    outcome.refused += speaker.voice.refused();
    outcome.late_ns_max = std::max(outcome.late_ns_max, speaker.late_ns_max);
  }
  const auto spoke = std::count_if(core_->recording.events_on.begin(),
                                   core_->recording.events_on.end(), [](auto n) { return n > 0; });
  const bool alone = core_->options.order == Order::recorded;
  outcome.threads = static_cast<std::uint32_t>(alone ? std::min<long>(spoke, 1) : spoke);
  outcome.cut_ns = core_->pace.cut_ns();
  outcome.error = core_->error;
  outcome.interrupted = core_->stop.stop_requested() && !core_->complete;
  outcome.visitors = visitors();
  return outcome;
}

std::uint64_t Source::published() const noexcept {
  return core_->published;
}
VisitorFigures Source::visitors() const noexcept {
  return core_->visitors ? core_->visitors->figures() : VisitorFigures{};
}

}  // namespace ringmain::replay
