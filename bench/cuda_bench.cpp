// Question: what do we add to a call of CUDA's, and what does a source take (10a to 10d, 10g)?
//
// Our callback is called as CUPTI calls it, with structs made here, so that no driver and no CUPTI
// is in the figures; what an empty callback takes is a contender of its own, to be subtracted.
#include <chrono>
#include <cstdint>
#include <fstream>
#include <memory>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include "engine/system/clock.hpp"

#include "bus/test_bus.hpp"

#include "adapters/sources/cuda/cuda_callback.hpp"
#include "adapters/sources/cuda/cuda_interest.hpp"
#include "adapters/sources/cuda/cuda_source.hpp"
#include "adapters/sources/cuda/traced.hpp"

#include "bench/reference.hpp"
#include "bench/repetition.hpp"
#include "bench/time_each.hpp"

namespace ringmain::bench {
namespace {

using namespace ringmain::cuda;

/// CUPTI as far as it is asked: it agrees to everything, and is on device 0.
Cupti agreeable() {
  Cupti cupti;
  cupti.enable_callback = [](std::uint32_t, abi::Subscriber, abi::Domain, std::uint32_t) {
    return abi::Result{abi::kSuccess};
  };
  cupti.device_id = [](void*, std::uint32_t* device) {
    *device = 0;
    return abi::Result{abi::kSuccess};
  };
  cupti.version = 130001;
  return cupti;
}

/// One call of cudaEventRecord, as its entry and its exit are told.
struct Told {
  struct {
    std::uint64_t event = 0x7f0000001000, stream = 0x7f0000002000;
  } params;
  std::int32_t result = 0;
  std::uint64_t slot = 0;
  abi::CallData data{.site = abi::kEnter,
                     .function = "cudaEventRecord",
                     .params = &params,
                     .result = &result,
                     .symbol = nullptr,
                     .context = &params,
                     .context_uid = 1,
                     .correlation_data = &slot,
                     .correlation_id = 1};
  [[gnu::always_inline]] void call(abi::Callback callback, void* user_data) {
    constexpr std::uint32_t kEventRecord = 135;
    data.site = abi::kEnter;
    callback(user_data, abi::kRuntime, kEventRecord, &data);
    data.site = abi::kExit;
    callback(user_data, abi::kRuntime, kEventRecord, &data);
  }
};

/// An attachment as the source makes it, without CUPTI.
class Attached {
 public:
  explicit Attached(Bus& bus) {
    made_ = Attachment::make(bus, Options{}, cupti_, handles_).value();
    made_->epoch = 1;
    made_->state = SourceState::attached;
    (void)enabled_.serve(made_->heard(), *made_, nullptr);              // it agrees to everything
    (void)handles_.made(HandleClass::event, told_.params.event, 0, 1);  // as its creation did
    switchboard.to = made_.get();
  }
  ~Attached() {
    switchboard.to = nullptr;
    enabled_.ended(*made_);
    (void)switchboard.presence.wait_until_none(-1);
  }
  void call() {
    benchmark::DoNotOptimize(callback_);
    told_.call(callback_, reinterpret_cast<void*>(std::uintptr_t{1}));
  }
  [[nodiscard]] std::uint64_t published() const { return made_->tally.sum(Tally::published); }
  [[nodiscard]] std::uint64_t refused() const { return made_->tally.sum(Tally::refused); }

 private:
  const Cupti cupti_ = agreeable();
  Handles handles_{65536};
  std::shared_ptr<Attachment> made_;
  Enabled enabled_;
  Told told_;
  abi::Callback callback_ = &on_callback;
};

void one_cycle(Repetition& repetition) {
  repetition.value(cycle_ns());
}

void empty_callback(Repetition& repetition) {
  Told told;
  abi::Callback callback = [](void*, abi::Domain, std::uint32_t, const void*) {};
  repetition.value(time_each([&] {
    benchmark::DoNotOptimize(callback);
    told.call(callback, nullptr);
  }));
}

constexpr int kStretch = 4096;  // events; a lane has room for 8,192

void heard(Repetition& repetition) {
  TestBus bus;
  std::uint64_t heard = 0;
  const auto subscription =
      bus.channel<EventRecord>().subscribe([&heard](const EventRecord&) { ++heard; });
  Attached attached(bus);
  repetition.value(
      time_stretches<kStretch>([&] { attached.call(); }, [&] { (void)bus.deliver(); }));
  if (heard != attached.published() || attached.refused() != 0) repetition.fail("events were lost");
}

/// What it is compared with: a bare enqueue of that slot by a token, and the two looks at the
/// clock.
void bare_enqueue(Repetition& repetition) {
  auto queue = std::make_unique<RawQueue<EventRecord>>();
  std::uint64_t seen = 0;
  const auto hear = [&seen](const EventRecord&) { ++seen; };
  std::int64_t began = 0;
  repetition.value(time_stretches<kStretch>(
      [&] {
        began = engine::now_ns();
        (void)queue->push([&]() noexcept {
          EventRecord event;
          event.duration_ns = engine::now_ns() - began;
          return event;
        });
      },
      [&] {
        while (queue->take(hear) != 0) {
        }
      }));
}

/// Its last listener has left, and the source was not told yet: the call is still enabled.
void nobody_listens(Repetition& repetition) {
  TestBus bus;
  auto subscription = bus.channel<EventRecord>().subscribe([](const EventRecord&) {});
  Attached attached(bus);
  (void)subscription.reset();
  repetition.value(time_stretches<kStretch>([&] { attached.call(); }, [] {}));
  if (attached.published() != 0) repetition.fail("somebody listened");
}
/// The source has switched everything off, and CUPTI tells of the call all the same.
void switched_off(Repetition& repetition) {
  TestBus bus;
  Attached attached(bus);
  repetition.value(time_each([&] { attached.call(); }));
}

/// Pages of this process's memory: all that it has mapped, or those that it has touched.
double pages(int column) {
  std::ifstream statm("/proc/self/statm");
  double value = 0;
  for (int i = 0; i <= column; ++i) statm >> value;
  return value * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

void thread_and_kind(Repetition& repetition) {
  TestBus bus;
  const auto subscription = bus.channel<EventRecord>().subscribe([](const EventRecord&) {});
  Attached attached(bus);
  attached.call();  // what comes once, comes now
  constexpr int kThreads = 32;
  const double before = pages(1);
  std::vector<std::jthread> threads;
  std::atomic<int> called{0};
  std::atomic<bool> go_home{false};
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      Told told;
      told.call(&on_callback, reinterpret_cast<void*>(std::uintptr_t{1}));
      ++called;
      called.notify_one();
      go_home.wait(false);
    });
  }
  for (int n = called; n != kThreads; n = called) called.wait(n);
  if (!bus.wait_told(std::chrono::minutes(1))) repetition.fail("the lanes were not touched");
  repetition.value((pages(1) - before) / kThreads);  // with the threads' own stacks
  go_home = true;
  go_home.notify_all();
  if (attached.refused() != 0) repetition.fail("events were lost");
}

void into_a_sleeping_bus(Repetition& repetition) {
  Bus bus;
  const auto subscription = bus.channel<EventRecord>().subscribe([](const EventRecord&) {});
  Attached attached(bus);
  constexpr std::int64_t kEveryNs = 5000;
  const std::int64_t begin = engine::now_ns();
  for (std::int64_t i = 0; i < 20'000; ++i) {
    while (engine::now_ns() < begin + i * kEveryNs) {
    }
    attached.call();
  }
  repetition.value(static_cast<double>(attached.refused()));
}

void live_handle(Repetition& repetition) {
  constexpr std::uint32_t kRoom = 1 << 20;
  const double before = pages(0);
  const Handles handles(kRoom);
  repetition.value((pages(0) - before) / kRoom);
}

[[gnu::noinline]] traced::cudaError_t record_nothing(traced::cudaEvent_t, traced::cudaStream_t) {
  asm volatile("");
  return traced::cudaSuccess;
}
[[gnu::noinline]] traced::cudaError_t device_zero(int* device) {
  *device = 0;
  return traced::cudaSuccess;
}
[[gnu::noinline]] traced::cudaError_t create_nothing(traced::cudaEvent_t* event) {
  *event = reinterpret_cast<traced::cudaEvent_t>(std::uintptr_t{0x7f0000001000});
  return traced::cudaSuccess;
}
/// Calls of the wrapper go to a function that does nothing.
struct Replaced {
  Replaced() {
    (void)traced::replace("cudaEventRecord", &record_nothing);
    (void)traced::replace("cudaEventCreate", &create_nothing);
    (void)traced::replace("cudaGetDevice", &device_zero);
  }
  ~Replaced() {
    (void)traced::restore("cudaEventRecord");
    (void)traced::restore("cudaEventCreate");
    (void)traced::restore("cudaGetDevice");
  }
};

/// What the wrapper's call is compared with: the same function by a pointer.
void traced_straight(Repetition& repetition) {
  auto* function = &record_nothing;
  repetition.value(time_each([&] {
    benchmark::DoNotOptimize(function);
    (void)function(nullptr, nullptr);
  }));
}
void traced_unheard(Repetition& repetition) {
  const Replaced replaced;
  repetition.value(time_each([] { (void)traced::cudaEventRecord(nullptr, nullptr); }));
}
void traced_heard(Repetition& repetition) {
  const Replaced replaced;
  TestBus bus;
  std::uint64_t heard = 0;
  const auto subscription =
      bus.channel<EventRecord>().subscribe([&heard](const EventRecord&) { ++heard; });
  auto source = Source::attach(bus, {.wrapped_only = true});
  if (!source) return repetition.fail(source.error().message.c_str());
  traced::cudaEvent_t event = nullptr;
  (void)traced::cudaEventCreate(&event);  // so that its generation is known, as in 10a
  repetition.value(time_stretches<kStretch>(
      [event] { (void)traced::cudaEventRecord(event, nullptr); }, [&] { (void)bus.deliver(); }));
  const Counts counts = source.value().counts();
  if (heard != counts.published || counts.refused != 0) repetition.fail("events were lost");
}

[[maybe_unused]] const bool kAdded[] = {
    add("cuda_call", "cycle", {}, one_cycle),
    add("cuda_call", "empty_callback", {}, empty_callback),
    add("cuda_call", "bare_enqueue", {}, bare_enqueue),
    add("cuda_call", "heard", {}, heard),
    add("cuda_call", "nobody_listens", {}, nobody_listens),
    add("cuda_call", "switched_off", {}, switched_off),
    add("traced", "straight", {}, traced_straight),
    add("traced", "unheard", {}, traced_unheard),
    add("traced", "heard", {}, traced_heard),
    add("cuda_memory", "thread_and_kind", {}, thread_and_kind),
    add("cuda_memory", "live_handle", {}, live_handle),
    add("cuda_loss", "sleeping_bus", {}, into_a_sleeping_bus),
};

}  // namespace
}  // namespace ringmain::bench
