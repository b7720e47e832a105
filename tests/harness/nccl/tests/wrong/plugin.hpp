// A small plugin that keeps every rule, from which each of the wrong ones differs in one thing.
//
// A handle is a number of a slot and how often that was used, so that one that ended is known. The
// plugin remembers nothing else.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <unistd.h>

#include "adapters/sources/nccl/nccl_profiler_abi.hpp"

namespace ringmain::nccl_conformance::wrong {

namespace abi = ringmain::nccl::abi;

/// What the wrong plugins look at in a descriptor.
struct Begun {
  std::uint64_t type;
  void* parent;
  bool foreign;  // a proxy operation that another process asked for
  const void* descriptor;
};

class Plugin {
 public:
  virtual ~Plugin() = default;
  virtual abi::Result init(void** context, int* mask, const char* name, int version) {
    (void)name;
    __atomic_store_n(mask, static_cast<int>(abi::all_types(version)), __ATOMIC_RELAXED);
    // A number that no other communicator of the process had.
    *context = reinterpret_cast<void*>(communicators_.fetch_add(1) * 2 + 1);
    return abi::kSuccess;
  }
  virtual abi::Result start(void* context, void** handle, const Begun& begun) {
    (void)context;
    *handle = claim(begun.type);
    return abi::kSuccess;
  }
  virtual abi::Result stop(void* handle) {
    (void)release(handle);
    return abi::kSuccess;
  }
  virtual abi::Result record(void* handle, int state, const abi::StateArgs* args) {
    (void)handle, (void)state, (void)args;
    return abi::kSuccess;
  }
  virtual abi::Result finalize(void* context) {
    (void)context;
    for (auto& slot : slots_) {
      if (slot.load() % 2 != 0) (void)slot.fetch_add(1);
    }
    return abi::kSuccess;
  }

 protected:
  static constexpr std::size_t kSlots = 4096;

  /// A handle, or null if all slots are taken.
  void* claim(std::uint64_t type) noexcept {
    if (type == 0 || type > abi::all_types(7)) return nullptr;
    for (std::size_t tried = 0; tried < kSlots; ++tried) {
      const std::size_t place = next_.fetch_add(1) % kSlots;
      std::uint64_t word = slots_[place].load();
      if (word % 2 != 0 || !slots_[place].compare_exchange_strong(word, word + 1)) continue;
      return reinterpret_cast<void*>(((word + 1) * kSlots + place) * 2 + 1);
    }
    return nullptr;
  }
  /// False if the handle's event is over.
  bool release(void* handle) noexcept {
    const std::uint64_t token = reinterpret_cast<std::uintptr_t>(handle) / 2;
    std::uint64_t word = token / kSlots;
    return slots_[token % kSlots].compare_exchange_strong(word, word + 1);
  }
  [[nodiscard]] bool live(void* handle) const noexcept {
    const std::uint64_t token = reinterpret_cast<std::uintptr_t>(handle) / 2;
    return handle != nullptr && slots_[token % kSlots].load() == token / kSlots;
  }

 private:
  std::array<std::atomic<std::uint64_t>, kSlots> slots_{};  // odd: taken
  std::atomic<std::size_t> next_{0};
  std::atomic<std::uintptr_t> communicators_{1};
};

/// Defined by RINGMAIN_NCCL_TEST_PLUGIN.
Plugin& plugin();

inline std::int32_t this_process() noexcept {
  return static_cast<std::int32_t>(::getpid());
}

template <class Descriptor>
abi::Result start(void* context, void** handle, Descriptor* descriptor) {
  const bool foreign =
      descriptor->type == abi::kProxyOp && descriptor->proxy_op.pid != this_process();
  return plugin().start(context, handle,
                        {descriptor->type, descriptor->parent, foreign, descriptor});
}
template <int version>
abi::Result init(void** context, std::uint64_t, int* mask, const char* name, int, int, int,
                 abi::Logger) {
  return plugin().init(context, mask, name, version);
}
inline abi::Result init_v4(void** context, int* mask, const char* name, std::uint64_t, int, int,
                           int, abi::Logger) {
  return plugin().init(context, mask, name, 4);
}
inline abi::Result stop(void* handle) {
  return plugin().stop(handle);
}
inline abi::Result record(void* handle, abi::State state, abi::StateArgs* args) {
  return plugin().record(handle, state, args);
}
inline abi::Result finalize(void* context) {
  return plugin().finalize(context);
}

}  // namespace ringmain::nccl_conformance::wrong

#define RINGMAIN_NCCL_TEST_TABLE(version, table, descriptor, begin)                             \
  __attribute__((visibility("default"))) ringmain::nccl::abi::table ncclProfiler_v##version = { \
      "test",                                                                                   \
      &begin,                                                                                   \
      &ringmain::nccl_conformance::wrong::start<ringmain::nccl::abi::descriptor>,               \
      &ringmain::nccl_conformance::wrong::stop,                                                 \
      &ringmain::nccl_conformance::wrong::record,                                               \
      &ringmain::nccl_conformance::wrong::finalize};

/// Exports the tables of a plugin of this class.
#define RINGMAIN_NCCL_TEST_PLUGIN(Class)                                                         \
  ringmain::nccl_conformance::wrong::Plugin& ringmain::nccl_conformance::wrong::plugin() {       \
    static Class only;                                                                           \
    return only;                                                                                 \
  }                                                                                              \
  extern "C" {                                                                                   \
  RINGMAIN_NCCL_TEST_TABLE(4, TableV4, DescriptorV4, ringmain::nccl_conformance::wrong::init_v4) \
  RINGMAIN_NCCL_TEST_TABLE(5, TableV5, DescriptorV5, ringmain::nccl_conformance::wrong::init<5>) \
  RINGMAIN_NCCL_TEST_TABLE(6, TableV6, DescriptorV6, ringmain::nccl_conformance::wrong::init<6>) \
  RINGMAIN_NCCL_TEST_TABLE(7, TableV7, DescriptorV7, ringmain::nccl_conformance::wrong::init<7>) \
  }
