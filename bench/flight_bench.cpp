// Question: what does a publish cost on a channel that is only recorded (13a), in eight threads
// (13b), and what does its record take in its ring (13d)? 13c compares it with LTTng's tracepoint:
// bench/peers/lttng.cpp.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "engine/flight/ring_reader.hpp"
#include "engine/system/clock.hpp"

#include "bus/bus.hpp"

#include "bench/on_bus.hpp"
#include "bench/reference.hpp"
#include "bench/repetition.hpp"
#include "bench/time_each.hpp"

namespace ringmain::bench {
namespace {

using Event = Sized<48>;
constexpr int kStretch = 4096;  // events

/// A folder of its own, in memory where there is such a place, for as long as this lives.
class Folder {
 public:
  Folder() {
    for (const char* place : {"/dev/shm", "/tmp"}) {
      std::string name = std::string(place) + "/ringmain-bench-XXXXXX";
      if (::mkdtemp(name.data()) == nullptr) continue;
      path_ = name;
      return;
    }
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
};

/// A bus whose channels are recorded, and nobody listens to them.
class Recorder {
 public:
  Recorder() : bus_(bus_options(Worker::standard)) {
    RecordOptions options;
    options.folder = folder_.path();
    auto made = bus_.record("bench.>", options);
    if (made) recording_ = std::move(made.value());
  }
  /// False: there is no file, and the repetition has failed.
  [[nodiscard]] bool in_a_file(Repetition& repetition) const {
    if (!recording_ || recording_.path().empty()) {
      repetition.fail("the record is not in a file");
      return false;
    }
    return true;
  }
  template <class E>
  [[nodiscard]] Publisher<E> publisher(const char* channel) {
    return bus_.channel<E>(channel).publisher();
  }
  [[nodiscard]] std::string path() const { return recording_.path(); }

 private:
  Folder folder_;
  Bus bus_;
  Recording recording_;
};

template <class E>
[[gnu::always_inline]] inline void publish(Publisher<E>& publisher, std::uint64_t number) {
  (void)publisher.publish_with([number]() noexcept { return make_event<E>(number, 0); });
}

/// All that were published are in the rings, readable or overwritten.
void check(Repetition& repetition, const Recorder& recorder, std::uint64_t published) {
  const auto read = engine::flight::read_flight(recorder.path());
  std::uint64_t written = 0;
  for (const auto& ring : read.rings) written += ring.ring.written;
  if (!read.damage.empty() || !read.refusal.empty() || written != published)
    repetition.fail("events were not recorded");
}

void recorded(Repetition& repetition) {
  Recorder recorder;
  if (!recorder.in_a_file(repetition)) return;
  auto publisher = recorder.publisher<Event>("bench.recorded");
  std::uint64_t number = 0;
  for (; number < kStretch; ++number) publish(publisher, number);  // touches the ring's pages
  repetition.value(time_stretches<kStretch>([&] { publish(publisher, ++number); }, [] {}));
  check(repetition, recorder, number);
}

/// What it is compared with: a bare enqueue of that slot by a token, and a look at the clock.
void bare_enqueue(Repetition& repetition) {
  auto queue = std::make_unique<RawQueue<Event>>();
  std::uint64_t number = 0, seen = 0;
  const auto hear = [&seen](const Event&) { ++seen; };
  const auto push = [&] {
    const std::int64_t now = engine::now_ns();
    (void)queue->push([&]() noexcept { return make_event<Event>(++number, now); });
  };
  const auto empty = [&] {
    while (queue->take(hear) != 0) {
    }
  };
  for (int i = 0; i < kStretch; ++i) push();
  empty();
  repetition.value(time_stretches<kStretch>(push, empty));
  if (seen != number) repetition.fail("events were lost");
}

/// CPU time for each event where so many threads record, each its own events.
double cpu_each(Recorder& recorder, unsigned count) {
  enum : std::uint64_t { kWarm = 2048, kEach = 100'000 };
  std::vector<double> each(count);
  {
    std::vector<std::jthread> threads;
    for (unsigned i = 0; i < count; ++i) {
      threads.emplace_back([&recorder, &mine = each[i]] {
        auto publisher = recorder.publisher<Event>("bench.recorded");
        std::uint64_t number = 0;
        for (; number < kWarm; ++number) publish(publisher, number);
        const std::int64_t before = cpu_ns(CLOCK_THREAD_CPUTIME_ID);
        for (; number < kWarm + kEach; ++number) publish(publisher, number);
        mine = static_cast<double>(cpu_ns(CLOCK_THREAD_CPUTIME_ID) - before) / double{kEach};
      });
    }
  }
  double sum = 0;
  for (const double one : each) sum += one;
  return sum / count;
}

/// Eight threads on the cores there are, against one, in turn.
void threads(Repetition& repetition) {
  const AnyCore any_core;
  Recorder recorder;
  if (!recorder.in_a_file(repetition)) return;
  std::vector<double> one, eight;
  for (int round = 0; round < 5; ++round) {
    one.push_back(cpu_each(recorder, 1));
    eight.push_back(cpu_each(recorder, 8));
  }
  repetition.value(median(eight));
  repetition.figure("one_thread", median(one));
  repetition.figure("times_one", median(eight) / median(one));
}

/// How much more than payload and 48 bytes, rounded up to cells, a record takes: what the file's
/// own words say of the ring.
template <std::size_t kBytes>
double surplus(Repetition& repetition) {
  namespace flight = engine::flight;
  Recorder recorder;
  if (!recorder.in_a_file(repetition)) return 0;
  auto publisher = recorder.publisher<Sized<kBytes>>("bench.recorded");
  for (std::uint64_t i = 0; i < kStretch; ++i) publish(publisher, i);
  std::ifstream file(recorder.path(), std::ios::binary);
  flight::Header header{};
  file.read(reinterpret_cast<char*>(&header), sizeof header);
  file.seekg(static_cast<std::streamoff>(header.fixed.rings.at));
  for (flight::RingLine line{}; file.read(reinterpret_cast<char*>(&line), sizeof line);) {
    if (line.ring.written != kStretch) continue;
    return static_cast<double>(line.ring.committed * header.fixed.cell_bytes) / kStretch -
           static_cast<double>((kBytes + 48 + 63) / 64 * 64);
  }
  repetition.fail("nothing was recorded");
  return 0;
}
void record_bytes(Repetition& repetition) {
  repetition.value(std::max({surplus<8>(repetition), surplus<48>(repetition),
                             surplus<80>(repetition), surplus<1024>(repetition)}));
}

[[maybe_unused]] const bool kAdded[] = {
    add("flight", "bare_enqueue", {}, bare_enqueue),
    add("flight", "recorded", {}, recorded),
    add("flight_threads", "recorded", {}, threads),
    add("flight_memory", "surplus", {}, record_bytes),
};

}  // namespace
}  // namespace ringmain::bench
