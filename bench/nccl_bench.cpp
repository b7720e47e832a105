// Question: what do we add to a call of NCCL's to its profiler plugin, what does a plugin behind
// ours wait for us, and what do we keep (12g, 12i to 12k)?
//
// The plugin's functions are called as NCCL calls them, by pointers and with descriptors made here:
// no NCCL is in the figures. A process has one chain for good, so that its question is asked in a
// process of its own, as all are by ./dev bench.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <malloc.h>
#include <memory>

#include "engine/system/clock.hpp"

#include "bus/test_bus.hpp"

#include "adapters/sources/nccl/nccl_front.hpp"
#include "adapters/sources/nccl/nccl_profiler_abi.hpp"
#include "adapters/sources/nccl/nccl_source.hpp"
#include "adapters/sources/nccl/nccl_span.hpp"

#include "bench/process_memory.hpp"
#include "bench/reference.hpp"
#include "bench/repetition.hpp"
#include "bench/time_each.hpp"

namespace ringmain::bench {
namespace {

using namespace ringmain::nccl;

constexpr int kStretch = 4096;  // events; a lane has room for 8,192

abi::DescriptorV7 plan() {
  abi::DescriptorV7 what;
  std::memset(static_cast<void*>(&what), 0, sizeof what);
  what.type = abi::kGroup;
  return what;
}
abi::DescriptorV7 operation() {
  abi::DescriptorV7 what = plan();
  what.type = abi::kColl;
  what.coll.func = "AllReduce";
  what.coll.datatype = "ncclFloat32";
  what.coll.algo = "RING";
  what.coll.proto = "SIMPLE";
  what.coll.count = 1024;
  what.coll.n_channels = 1;
  return what;
}

/// One communicator of a plugin's, and spans of one type in it.
class Communicating {
 public:
  explicit Communicating(const abi::DescriptorV7& what, const abi::TableV7& plugin = ours())
      : plugin_(plugin), what_(what) {
    (void)plugin_.init(&context_, 1, &mask_, "bench", 2, 8, 0, nullptr);
  }
  Communicating(const Communicating&) = delete;
  Communicating& operator=(const Communicating&) = delete;
  ~Communicating() { (void)plugin_.finalize(context_); }
  [[gnu::always_inline]] void* start() {
    benchmark::DoNotOptimize(plugin_);
    void* handle = nullptr;
    (void)plugin_.start_event(context_, &handle, &what_);
    return handle;
  }
  /// As NCCL tells of an operation: with the call that asked for it as its parent, and in a plan,
  /// both of which are open. False: nobody follows those.
  bool begin_what_it_is_in() {
    const abi::DescriptorV7 operation = what_;
    what_ = plan();
    void* const in = start();
    what_.type = abi::kCollApi;
    void* const call = start();
    what_ = operation;
    what_.parent = call;
    what_.coll.parent_group = in;
    return in != nullptr && call != nullptr;
  }
  [[gnu::always_inline]] void span() {
    void* const handle = start();
    (void)plugin_.stop_event(handle);
  }

  static const abi::TableV7& ours() {
    static const abi::TableV7 table{"ringmain", &init_v7,      &start_v7,
                                    &stop,      &record_state, &finalize};
    return table;
  }

 private:
  abi::TableV7 plugin_;
  void* context_ = nullptr;
  int mask_ = 0;
  abi::DescriptorV7 what_;
};

void heard_span(Repetition& repetition) {
  TestBus bus;
  std::uint64_t heard = 0;
  const auto subscription =
      bus.channel<nccl::Group>().subscribe([&heard](const nccl::Group&) { ++heard; });
  const nccl::Counts before = nccl::Source::counts();
  auto source = nccl::Source::attach(bus);
  if (!source) return repetition.fail(source.error().message.c_str());
  Communicating nccl(plan());
  repetition.value(time_stretches<kStretch>([&] { nccl.span(); }, [&] { (void)bus.deliver(); }));
  const nccl::Counts now = nccl::Source::counts();
  if (heard != now.published - before.published || now.refused != before.refused)
    repetition.fail("events were lost");
}

/// What it is compared with: a bare enqueue of that slot by a token, and two looks at the clock.
void bare_enqueue_of_a_span(Repetition& repetition) {
  auto queue = std::make_unique<RawQueue<nccl::Group>>();
  std::uint64_t seen = 0;
  const auto hear = [&seen](const nccl::Group&) { ++seen; };
  std::int64_t began = 0;
  repetition.value(time_stretches<kStretch>(
      [&] {
        began = engine::now_ns();
        (void)queue->push([&]() noexcept {
          nccl::Group event;
          event.duration_ns = engine::now_ns() - began;
          return event;
        });
      },
      [&] {
        while (queue->take(hear) != 0) {
        }
      }));
}

/// NCCL tells of a kind that nobody listens to, as it does of parents.
void unheard_start(Repetition& repetition) {
  TestBus bus;
  auto source = nccl::Source::attach(bus);
  if (!source) return repetition.fail(source.error().message.c_str());
  Communicating nccl(plan());
  void* handle = nullptr;
  repetition.value(time_each([&] { handle = nccl.start(); }));
  if (handle != nullptr) repetition.fail("somebody listened");
}

/// What every plugin is called for: it gives no handle, and that is all.
void empty_start(Repetition& repetition) {
  abi::TableV7 empty = Communicating::ours();
  empty.start_event = [](void*, void** handle, abi::DescriptorV7*) {
    *handle = nullptr;
    return abi::Result{abi::kSuccess};
  };
  Communicating nccl(plan(), empty);
  repetition.value(time_each([&] { (void)nccl.start(); }));
}

/// Operations come faster than anybody takes them out. How many are neither heard nor counted?
void burst(Repetition& repetition) {
  constexpr std::uint64_t kOffered = 20'000;
  TestBus bus;
  std::uint64_t heard = 0;
  const auto subscription =
      bus.channel<nccl::Operation>().subscribe([&heard](const nccl::Operation&) { ++heard; });
  const nccl::Counts before = nccl::Source::counts();
  auto source = nccl::Source::attach(bus);
  if (!source) return repetition.fail(source.error().message.c_str());
  Communicating nccl(operation());
  for (std::uint64_t i = 0; i < kOffered; ++i) nccl.span();
  const nccl::Counts after = nccl::Source::counts();
  (void)bus.deliver();
  const std::uint64_t lost = after.refused - before.refused + after.no_room - before.no_room;
  if (lost == 0) repetition.fail("the bus was not full");
  repetition.figure("lost", static_cast<double>(lost));
  const auto unknown = static_cast<std::int64_t>(kOffered - heard - lost);
  repetition.value(static_cast<double>(unknown < 0 ? -unknown : unknown));
}

/// Memory that one more takes: what the table itself takes is subtracted. What was freed before is
/// given back first, so that it does not come from there.
void open_event(Repetition& repetition) {
  ::malloc_trim(0);
  Spans spans(Spans::kPlacesMax, 4);
  std::uint32_t seed = 0;
  std::size_t opened = 0;
  const auto open_up_to = [&](std::size_t many) {
    for (; opened < many && spans.open(seed, Spans::kPlacesMax); ++opened) {
    }
    return resident_bytes();
  };
  (void)open_up_to(1);
  const double some = open_up_to(Spans::kPlacesMax / 4);
  const double all = open_up_to(Spans::kPlacesMax);
  if (opened != Spans::kPlacesMax) repetition.fail("an event found no room");
  repetition.value((all - some) / static_cast<double>(Spans::kPlacesMax / 4 * 3));
}
void communicator(Repetition& repetition) {
  ::malloc_trim(0);
  auto communicators = std::make_unique<Communicators>(4);
  std::size_t opened = 0;
  const auto open_up_to = [&](std::size_t many) {
    for (; opened < many && communicators->open(Identity{}, nullptr).bits() != 0; ++opened) {
    }
    return resident_bytes();
  };
  (void)open_up_to(1);
  const double some = open_up_to(Communicators::kRoom / 4);
  const double all = open_up_to(Communicators::kRoom);
  if (opened != Communicators::kRoom) repetition.fail("a communicator found no room");
  repetition.value((all - some) / static_cast<double>(Communicators::kRoom / 4 * 3));
}

/// A plugin that keeps a record of each operation (nccl_plugin.cpp), called as NCCL would.
void called_directly(Repetition& repetition) {
  void* const library = ::dlopen(RINGMAIN_BENCH_NCCL_PLUGIN, RTLD_NOW | RTLD_LOCAL);
  const void* const table = library == nullptr ? nullptr : ::dlsym(library, abi::symbol_of(7));
  if (table == nullptr) return repetition.fail("the plugin cannot be loaded");
  Communicating nccl(operation(), *static_cast<const abi::TableV7*>(table));
  if (!nccl.begin_what_it_is_in()) return repetition.fail("it follows nothing");
  repetition.value(time_stretches<kStretch>([&] { nccl.span(); }, [] {}));
}
/// The same behind ringmain's, of which nobody hears.
void chained(Repetition& repetition) {
  chain_plugins(RINGMAIN_BENCH_NCCL_PLUGIN, 7, [](const char* fault) { std::puts(fault); });
  Communicating nccl(operation());
  if (!nccl.begin_what_it_is_in()) return repetition.fail("nothing is chained");
  repetition.value(time_stretches<kStretch>([&] { nccl.span(); }, [] {}));
}

[[maybe_unused]] const bool kAdded[] = {
    add("nccl_span", "bare_enqueue", {}, bare_enqueue_of_a_span),
    add("nccl_span", "heard", {}, heard_span),
    add("nccl_span", "unheard_start", {}, unheard_start),
    add("nccl_span", "empty_start", {}, empty_start),
    add("nccl_span", "cycle", {}, [](Repetition& r) { r.value(cycle_ns()); }),
    add("nccl_loss", "burst", {}, burst),
    add("nccl_memory", "open_event", {}, open_event),
    add("nccl_memory", "communicator", {}, communicator),
    add("nccl_chain", "called_directly", {}, called_directly),
    add("nccl_chain", "chained", {}, chained),
};

}  // namespace
}  // namespace ringmain::bench
