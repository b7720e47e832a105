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

#include "adapters/sources/replay/replay_chunk_queue.hpp"
#include "adapters/sources/replay/replay_pace.hpp"
#include "adapters/sources/replay/replay_publishers.hpp"

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
  struct RecordedThread {
    RecordedThread(Bus& bus, const PublisherOptions& options) : publishers(bus, options) {}
    Publishers publishers;
    ChunkQueue queue;
    Chunk gathered;  // the feeder's: not yet given
    std::int64_t late_ns_max = 0;
    std::jthread thread;
  };

  Core(Bus& bus_, const Recording& recording_, const ReplayOptions& options_)
      : bus(bus_), recording(recording_), options(options_), pace(options_.speed) {
    const PublisherOptions publishers = publisher_options(recording, options);
    for (std::size_t lane = 0; lane < recording.lanes.size(); ++lane) {
      threads.emplace_back(bus, publishers);
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
  bool give(RecordedThread& recorded);
  void give_what_fits();
  void publish(RecordedThread& recorded);
  void publish_in_order();

  Bus& bus;
  const Recording& recording;
  const ReplayOptions options;
  std::stop_source stop;
  Pace pace;
  std::deque<RecordedThread> threads;  // one per lane
  std::optional<SubscriberChurn> churn;
  Alarm::Clock::time_point begun;
  std::atomic<std::uint64_t> published{0};
  std::optional<Error> error;
  bool complete = false;
  std::jthread feeder;
};

void Source::Core::start() {
  if (options.visitors) churn.emplace(bus, recording);
  begun = Alarm::Clock::now();
  if (options.order == Order::thread) {
    for (std::size_t lane = 0; lane < threads.size(); ++lane) {
      if (recording.events_on[lane] == 0) continue;
      threads[lane].thread = std::jthread([this, lane] { publish(threads[lane]); });
    }
  }
  feeder = std::jthread([this] { feed(); });
}

void Source::Core::join() {
  if (feeder.joinable()) feeder.join();
}

/// Ends when all is published: the threads are joined here, then wait() returns.
void Source::Core::feed() {
  if (options.order == Order::recorded) {
    publish_in_order();
  } else {
    read([this](const KinetoMapped& mapped) { return gather(mapped); });
    for (RecordedThread& recorded : threads) {
      if (!recorded.gathered.empty()) (void)give(recorded);
      recorded.queue.close();
    }
    for (RecordedThread& recorded : threads) {
      if (recorded.thread.joinable()) recorded.thread.join();
    }
  }
  if (churn) churn->stop();
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
  RecordedThread& recorded = threads[mapped.lane];
  if (recorded.gathered.capacity() == 0) recorded.gathered.reserve(ChunkQueue::kChunkEvents);
  recorded.gathered.push_back({mapped, pace.due_ns(mapped.time_ns, mapped.lane != 0)});
  return recorded.gathered.size() < ChunkQueue::kChunkEvents || give(recorded);
}

/// Before the feeder waits for one thread, the others get what is theirs: it may be due first.
bool Source::Core::give(RecordedThread& recorded) {
  if (recorded.queue.full()) give_what_fits();
  return recorded.queue.give(std::exchange(recorded.gathered, {}), stop.get_token());
}

void Source::Core::give_what_fits() {
  for (RecordedThread& other : threads) {
    if (other.gathered.empty() || other.queue.full()) continue;
    (void)other.queue.give(std::exchange(other.gathered, {}), stop.get_token());
  }
}

void Source::Core::publish(RecordedThread& recorded) {
  const std::stop_token token = stop.get_token();
  Alarm alarm(begun);
  Chunk chunk;
  while (recorded.queue.take(chunk, token)) {
    for (const Due& due : chunk) {
      if (!pace.flat_out() && !alarm.wait(due.due_ns, token)) break;
      recorded.publishers.publish(due.mapped);
    }
    published += chunk.size();
  }
  recorded.late_ns_max = alarm.late_ns_max();
}

void Source::Core::publish_in_order() {
  const std::stop_token token = stop.get_token();
  Alarm alarm(begun);
  read([&](const KinetoMapped& mapped) {
    const std::int64_t due = pace.due_ns(mapped.time_ns, mapped.lane != 0);
    if (!pace.flat_out() && !alarm.wait(due, token)) return false;
    threads[mapped.lane].publishers.publish(mapped);
    ++published;
    return true;
  });
  threads.front().late_ns_max = alarm.late_ns_max();
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
  for (const auto& recorded : core_->threads) {
    outcome.accepted += recorded.publishers.accepted();
    outcome.unheard += recorded.publishers.unheard();
    outcome.refused += recorded.publishers.refused();
    outcome.late_ns_max = std::max(outcome.late_ns_max, recorded.late_ns_max);
  }
  const auto with_events =
      std::count_if(core_->recording.events_on.begin(), core_->recording.events_on.end(),
                    [](auto n) { return n > 0; });
  const bool alone = core_->options.order == Order::recorded;
  outcome.threads =
      static_cast<std::uint32_t>(alone ? std::min<long>(with_events, 1) : with_events);
  outcome.cut_ns = core_->pace.cut_ns();
  outcome.error = core_->error;
  outcome.interrupted = core_->stop.stop_requested() && !core_->complete;
  outcome.churn = churn();
  return outcome;
}

std::uint64_t Source::published() const noexcept {
  return core_->published;
}
ChurnFigures Source::churn() const noexcept {
  return core_->churn ? core_->churn->figures() : ChurnFigures{};
}

}  // namespace ringmain::replay
