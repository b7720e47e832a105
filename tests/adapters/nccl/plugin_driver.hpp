// The plugin as NCCL has it: its library is opened, a table of one version is found by its symbol,
// and its functions are called with that version's descriptors.
#pragma once
#include <cstdint>
#include <dlfcn.h>
#include <utility>

#include <gtest/gtest.h>

#include "bus/test_bus.hpp"

#include "events/collective.hpp"

#include "adapters/sources/nccl/nccl_descriptors.hpp"
#include "adapters/sources/nccl/nccl_profiler_abi.hpp"
#include "adapters/sources/nccl/nccl_source.hpp"

namespace ringmain::nccl {

/// What was not written: no handle has this value.
inline void* const kUnwritten = reinterpret_cast<void*>(std::uintptr_t{0xdead});

/// One version's table of a library, behind descriptors of the newest form.
class PluginTable {
 public:
  /// RINGMAIN_NCCL_PLUGIN is the file, compiled in.
  explicit PluginTable(int version, const char* file = RINGMAIN_NCCL_PLUGIN)
      : version_(version), library_(::dlopen(file, RTLD_NOW | RTLD_LOCAL)) {
    table_ = library_ == nullptr ? nullptr : ::dlsym(library_, abi::symbol_of(version));
    if (table_ == nullptr) ADD_FAILURE() << ::dlerror();
  }
  PluginTable(const PluginTable&) = delete;
  PluginTable& operator=(const PluginTable&) = delete;
  ~PluginTable() { ::dlclose(library_); }

  [[nodiscard]] int version() const noexcept { return version_; }
  abi::Result init(void** context, int* mask, const char* name, std::uint64_t id, int nodes,
                   int ranks, int rank) const {
    if (version_ == 4)
      return as<abi::TableV4>().init(context, mask, name, id, nodes, ranks, rank, nullptr);
    return as<abi::TableV7>().init(context, id, mask, name, nodes, ranks, rank, nullptr);
  }
  abi::Result start(void* context, void** handle, const abi::DescriptorV7& what) const {
    switch (version_) {
      case 4:
        return start_as<abi::TableV4, abi::DescriptorV4>(context, handle, what);
      case 5:
        return start_as<abi::TableV5, abi::DescriptorV5>(context, handle, what);
      case 6:
        return start_as<abi::TableV6, abi::DescriptorV6>(context, handle, what);
      default:
        return start_as<abi::TableV7, abi::DescriptorV7>(context, handle, what);
    }
  }
  abi::Result stop(void* handle) const { return as<abi::TableV7>().stop_event(handle); }
  abi::Result record(void* handle, abi::State state, abi::StateArgs* args) const {
    return as<abi::TableV7>().record_event_state(handle, state, args);
  }
  abi::Result finalize(void* context) const { return as<abi::TableV7>().finalize(context); }

  /// The table as it is.
  template <class T>
  [[nodiscard]] const T& as() const {
    return *static_cast<const T*>(table_);
  }

 private:
  template <class T, class D>
  abi::Result start_as(void* context, void** handle, const abi::DescriptorV7& what) const {
    D converted;
    convert(converted, what, what.parent);
    if constexpr (std::is_same_v<D, abi::DescriptorV4>) {  // its parent is the plan
      if (what.type == abi::kColl) converted.parent = what.coll.parent_group;
      if (what.type == abi::kP2p) converted.parent = what.p2p.parent_group;
    }
    return as<T>().start_event(context, handle, &converted);
  }

  const int version_;
  void* library_;
  void* table_ = nullptr;
};

/// A communicator, and what NCCL tells of it.
class Driver {
 public:
  explicit Driver(const PluginTable& table, const char* name = "0:default_pg", int ranks = 8,
                  int nodes = 2, int rank = 3, std::uint64_t id = 0xc0ffee)
      : table_(table) {
    EXPECT_EQ(table_.init(&context, &mask, name, id, nodes, ranks, rank), abi::kSuccess);
  }
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;
  ~Driver() { finalize(); }
  void finalize() {
    if (context == nullptr) return;
    EXPECT_EQ(table_.finalize(std::exchange(context, nullptr)), abi::kSuccess);
  }

  static abi::DescriptorV7 descriptor(abi::Type type, void* parent = nullptr) {
    abi::DescriptorV7 made;
    std::memset(&made, 0, sizeof made);
    made.type = type;
    made.parent = parent;
    return made;
  }
  /// NULL: not followed. What is returned was written.
  void* start(const abi::DescriptorV7& what, void* in) const {
    void* handle = kUnwritten;
    EXPECT_EQ(table_.start(in, &handle, what), abi::kSuccess);
    EXPECT_NE(handle, kUnwritten) << what.type;
    return handle;
  }
  void* start(const abi::DescriptorV7& what) const { return start(what, context); }
  void stop(void* handle) const {
    if (handle == nullptr) return;  // as NCCL does
    EXPECT_EQ(table_.stop(handle), abi::kSuccess);
  }
  void record(void* handle, abi::State state, abi::StateArgs* args = nullptr) const {
    if (handle == nullptr) return;
    EXPECT_EQ(table_.record(handle, state, args), abi::kSuccess);
  }

  void* group_api(int depth = 1) const {
    auto d = descriptor(abi::kGroupApi);
    d.group_api.group_depth = depth;
    return start(d);
  }
  void* coll_api(void* group, const char* func = "AllReduce", std::size_t count = 1024) const {
    auto d = descriptor(abi::kCollApi, group);
    d.coll_api = {func, count, "ncclFloat32", 0, reinterpret_cast<void*>(0x57), captured, 0};
    return start(d);
  }
  void* p2p_api(void* group, const char* func) const {
    auto d = descriptor(abi::kP2pApi, group);
    d.p2p_api = {func, 256, "ncclFloat16", reinterpret_cast<void*>(0x57), captured, 0};
    return start(d);
  }
  void* plan() const { return start(descriptor(abi::kGroup)); }
  void* coll(void* call, void* plan, int channels = 2, const char* func = "AllReduce") const {
    auto d = descriptor(abi::kColl, call);
    d.rank = 3;
    d.coll.seq_number = 7;
    d.coll.func = func;
    d.coll.count = 1024;
    d.coll.datatype = "ncclFloat32";
    d.coll.n_channels = static_cast<std::uint8_t>(channels);
    d.coll.n_warps = 16;
    d.coll.algo = "RING";
    d.coll.proto = "LL";
    d.coll.parent_group = plan;
    return start(d);
  }
  void* p2p(void* call, void* plan, const char* func, int peer, int channels = 1) const {
    auto d = descriptor(abi::kP2p, call);
    d.p2p = {func, nullptr, "ncclFloat16", 256, peer, static_cast<std::uint8_t>(channels), plan, 0};
    return start(d);
  }
  void* proxy_op(void* operation, int channel, int peer = 5, bool send = true,
                 int pid = ::getpid()) const {
    auto d = descriptor(abi::kProxyOp, operation);
    d.rank = 3;
    d.proxy_op = {pid, static_cast<std::uint8_t>(channel), peer, 4, 65536, send ? 1 : 0};
    return start(d);
  }
  void* step(void* proxy_op, int step) const {
    auto d = descriptor(abi::kProxyStep, proxy_op);
    d.rank = 3;
    d.proxy_step.step = step;
    return start(d);
  }
  void* kernel(void* operation, int channel, std::uint64_t stamp) const {
    auto d = descriptor(abi::kKernelCh, operation);
    d.kernel_ch = {static_cast<std::uint8_t>(channel), stamp};
    return start(d);
  }
  void kernel_stop(void* handle, std::uint64_t stamp) const {
    abi::StateArgs args{};
    args.kernel_ch.p_timer = stamp;
    record(handle, abi::kKernelChStop, &args);
    stop(handle);
  }
  /// A collective as far as it is enqueued: its operation, with its plan and call behind it.
  void* enqueue(int channels = 2) const {
    void* const group = group_api();
    void* const call = coll_api(group);
    stop(call);
    void* const planned = plan();
    void* const operation = coll(call, planned, channels);
    stop(operation);
    stop(planned);
    stop(group);
    return operation;
  }

  /// The mask as bits.
  [[nodiscard]] std::uint64_t asked() const {
    return static_cast<std::uint32_t>(__atomic_load_n(&mask, __ATOMIC_RELAXED));
  }

  void* context = nullptr;
  int mask = 0;
  bool captured = false;

 private:
  const PluginTable& table_;
};

/// Of this process so far, less what was before.
inline Counts since(const Counts& before) {
  const Counts now = Source::counts();
  Counts left;
  left.started = now.started - before.started;
  left.stopped = now.stopped - before.stopped;
  left.stale = now.stale - before.stale;
  left.aborted = now.aborted - before.aborted;
  left.published = now.published - before.published;
  left.refused = now.refused - before.refused;
  left.filtered = now.filtered - before.filtered;
  left.no_room = now.no_room - before.no_room;
  left.no_context = now.no_context - before.no_context;
  left.unknown_types = now.unknown_types - before.unknown_types;
  left.unknown_states = now.unknown_states - before.unknown_states;
  left.stale_stops = now.stale_stops - before.stale_stops;
  left.stale_states = now.stale_states - before.stale_states;
  left.detached = now.detached - before.detached;
  left.lost_starts = now.lost_starts - before.lost_starts;
  left.suspect = now.suspect - before.suspect;
  left.unfollowed = now.unfollowed - before.unfollowed;
  return left;
}

/// A bus that delivers when it is told to, and listeners to all that NCCL says.
class PluginFixture : public testing::Test {
 protected:
  Options options() {
    Options made;
    made.kernel_channels = KernelChannels::always;  // whatever room /dev/shm has here
    return made;
  }
  void attach() { attach(options()); }
  void attach(const Options& with) {
    auto made = Source::attach(bus, with);
    ASSERT_TRUE(made) << made.error().message;
    source = std::move(made).value();
  }
  [[nodiscard]] Counts counts() const { return since(before); }

  TestBus bus;
  Source source;
  const Counts before = Source::counts();
};

}  // namespace ringmain::nccl
