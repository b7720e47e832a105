// A profiler plugin of HOSTILE_VERSION that does to others what hostile_plugin.hpp says, and looks
// at whether they are kept from it.
#include "tests/adapters/nccl/hostile_plugin.hpp"

#include <cstring>
#include <dlfcn.h>
#include <memory>
#include <string_view>
#include <thread>

#include "adapters/sources/nccl/nccl_profiler_abi.hpp"

namespace {

namespace abi = ringmain::nccl::abi;
using ringmain::nccl::HostilePlugin;

#define HOSTILE_PASTE(a, b) a##b
#define HOSTILE_NAMED(prefix, version) HOSTILE_PASTE(prefix, version)
using Descriptor = HOSTILE_NAMED(abi::DescriptorV, HOSTILE_VERSION);
using Table = HOSTILE_NAMED(abi::TableV, HOSTILE_VERSION);

HostilePlugin& me() {
  static auto* const made = new HostilePlugin;
  return *made;
}

/// Numbers that it gave, each once: as handles and as contexts.
class Given {
 public:
  void* give() noexcept {
    const std::uint64_t number = next_.fetch_add(1, std::memory_order_relaxed) % kMost;
    open_[number].store(true, std::memory_order_relaxed);
    return reinterpret_cast<void*>((number + 1) << 4);
  }
  [[nodiscard]] bool is_one(const void* what) const noexcept {
    const std::uint64_t number = number_of(what);
    return reinterpret_cast<std::uintptr_t>(what) % 16 == 0 && number < kMost &&
           number < next_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] bool is_open(const void* what) const noexcept {
    return is_one(what) && open_[number_of(what)].load(std::memory_order_relaxed);
  }
  /// False: it was taken before.
  bool take(const void* what) noexcept {
    return open_[number_of(what)].exchange(false, std::memory_order_relaxed);
  }

 private:
  static constexpr std::uint64_t kMost = 1 << 20;
  static std::uint64_t number_of(const void* what) noexcept {
    return (reinterpret_cast<std::uintptr_t>(what) >> 4) - 1;
  }
  std::atomic<std::uint64_t> next_{0};
  const std::unique_ptr<std::atomic<bool>[]> open_ = std::make_unique<std::atomic<bool>[]>(kMost);
};
Given& handles() {
  static auto* const made = new Given;
  return *made;
}
Given& contexts() {
  static auto* const made = new Given;
  return *made;
}

std::uint64_t next_call() noexcept {
  static std::atomic<std::uint64_t> calls{0};
  return calls.fetch_add(1, std::memory_order_relaxed);
}
void add(std::atomic<std::uint64_t>& to) noexcept {
  to.fetch_add(1, std::memory_order_relaxed);
}
abi::Result answer() noexcept {
  return me().fails && next_call() % 3 == 0 ? abi::kInternalError : abi::kSuccess;
}
void note(std::uint64_t what) noexcept {
  if (me().notes) me().noted = (me().noted ^ what) * 0x100000001b3;
}
void note(const void* what) noexcept {
  note(reinterpret_cast<std::uintptr_t>(what));
}
void note(const char* text) noexcept {
  for (; me().notes && text != nullptr && *text != '\0'; ++text) {
    note(static_cast<std::uint64_t>(static_cast<unsigned char>(*text)));
  }
}

std::atomic<int*> mask{nullptr};

abi::Result init_any(void** context, int* its_mask, const char* name) {
  add(me().inits);
  note(name);
  mask.store(its_mask);
  __atomic_store_n(its_mask, static_cast<int>(me().wanted), __ATOMIC_RELAXED);
  *context = contexts().give();
  return answer();
}
#if HOSTILE_VERSION == 4
abi::Result init(void** context, int* its_mask, const char* name, std::uint64_t, int, int, int,
                 abi::Logger) {
  return init_any(context, its_mask, name);
}
#else
abi::Result init(void** context, std::uint64_t, int* its_mask, const char* name, int, int, int,
                 abi::Logger) {
  return init_any(context, its_mask, name);
}
#endif

bool is(const char* text, std::string_view what) noexcept {
  return text != nullptr && text == what;
}
/// Is it what the driver tells?
bool is_whole(const Descriptor& what) noexcept {
  switch (what.type) {
    case abi::kColl:
      return is(what.coll.func, "AllReduce") && what.coll.count == 1024 &&
             is(what.coll.algo, "RING") && what.coll.n_warps == 16;
    case abi::kProxyOp:
      return what.proxy_op.chunk_size == 65536 && what.proxy_op.n_steps == 4;
    case abi::kGroup:
    case abi::kProxyStep:
    case abi::kKernelCh:
      return true;
    default:
      return HOSTILE_VERSION > 4 && (what.type & (what.type - 1)) == 0;
  }
}
void look_at(const void* context, const Descriptor& what) noexcept {
  const auto bit = static_cast<unsigned>(__builtin_ctzll(what.type | 1 << 15));
  add(me().starts[bit]);
  if (!is_whole(what)) add(me().torn);
  // Of another process's proxy operations nobody is told a context.
  if (context != nullptr && !contexts().is_open(context)) add(me().strange_contexts);
  const bool is_given = what.parent == nullptr || handles().is_one(what.parent);
  if (!is_given) add(me().strange_parents);
  if (what.parent == nullptr && what.type == abi::kColl) add(me().orphans);
  note(what.type);
  note(what.parent);
  note(context);
  if (what.type == abi::kColl) {
    note(what.coll.func);
    note(what.coll.seq_number);
#if HOSTILE_VERSION > 4
    note(what.coll.parent_group);
#endif
  }
}

abi::Result start(void* context, void** handle, Descriptor* what) {
  void* const parent = what->parent;
  if (!me().gives_parents) look_at(context, *what);
  if (me().takes_its_time && next_call() % 7 == 0) std::this_thread::yield();
  if (me().changes_mask) {
    __atomic_store_n(mask.load(), static_cast<int>(next_call() * 0x9e37), __ATOMIC_RELAXED);
  }
  const bool none = me().gives_null && next_call() % 2 == 0;
  *handle = none ? nullptr : me().gives_parents ? parent : handles().give();
  note(*handle);
  if (me().scribbles) std::memset(static_cast<void*>(what), 0xa5, sizeof *what);
  return answer();
}
abi::Result stop(void* handle) {
  add(me().stops);
  note(handle);
  if (me().gives_parents) return answer();
  if (!handles().is_one(handle)) {
    add(me().strange_handles);
  } else if (!handles().take(handle)) {
    add(me().stopped_twice);
  }
  return answer();
}
abi::Result record(void* handle, abi::State state, abi::StateArgs*) {
  add(me().records);
  note(handle);
  note(static_cast<std::uint64_t>(state));
  if (!me().gives_parents && !handles().is_one(handle)) add(me().strange_handles);
  return answer();
}
abi::Result finalize(void* context) {
  add(me().finalizes);
  if (!contexts().is_one(context) || !contexts().take(context)) add(me().strange_contexts);
  note(context);
  Dl_info here{};
  if (me().closes_itself && ::dladdr(reinterpret_cast<void*>(&mask), &here) != 0) {
    void* const self = ::dlopen(here.dli_fname, RTLD_NOW | RTLD_LOCAL);
    for (int i = 0; i < 4; ++i) (void)::dlclose(self);
  }
  return answer();
}

}  // namespace

extern "C" {
[[gnu::visibility("default")]] extern Table HOSTILE_NAMED(ncclProfiler_v, HOSTILE_VERSION);
Table HOSTILE_NAMED(ncclProfiler_v, HOSTILE_VERSION){"hostile", &init,   &start,
                                                     &stop,     &record, &finalize};
[[gnu::visibility("default")]] HostilePlugin* hostile_plugin() {
  return &me();
}
}
