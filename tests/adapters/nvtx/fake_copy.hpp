// A copy of NVTX's headers without the headers: a table, and calls through it.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

#include "adapters/sources/nvtx/nvtx_abi.hpp"

namespace ringmain::nvtx {

/// What stands in a fresh copy's table: the function that would load us. It must never be called.
inline void loads_us() {
  __builtin_trap();
}

/// Each `Number` is a copy of its own, as each library with the headers in it has one.
template <int Number>
class FakeCopy {
 public:
  static const void* get(std::uint32_t id) {
    static constexpr abi::Callbacks kTable{sizeof kTable, table_of};
    return id == abi::kCallbacks ? &kTable : nullptr;
  }
  static void fill() {
    core_.fill(loads_us);
    core2_.fill(loads_us);
    sync_.fill(loads_us);
  }
  /// What NVTX does after the injection: what was left alone does nothing from now on.
  static void settle() {
    for (auto* module : {core_.data(), core2_.data()}) {
      for (unsigned i = 0; i < abi::kCoreSize; ++i) {
        if (module[i] == loads_us) module[i] = nullptr;
      }
    }
    for (abi::Function& one : sync_) one = one == loads_us ? nullptr : one;
  }
  template <class F, class... A>
  static auto call(abi::Core id, A... arguments) {
    return reinterpret_cast<F*>(core_[id])(arguments...);
  }
  template <class F, class... A>
  static auto call(abi::Core2 id, A... arguments) {
    return reinterpret_cast<F*>(core2_[id])(arguments...);
  }
  static abi::Function& at(abi::Core id) { return core_[id]; }
  static abi::Function& at(abi::Core2 id) { return core2_[id]; }
  static abi::Function& at(abi::Sync id) { return sync_[id]; }

 private:
  static int table_of(std::int32_t module, abi::Function*** table, unsigned* count) {
    static auto core = entries(core_);
    static auto core2 = entries(core2_);
    static auto sync = entries(sync_);
    *table = nullptr;
    if (module == abi::kCore) *table = core.data();
    if (module == abi::kCore2) *table = core2.data();
    if (module == abi::kSync) *table = sync.data();
    *count = static_cast<unsigned>(module == abi::kSync ? sync.size() : core.size());
    return *table == nullptr ? 0 : 1;
  }
  template <std::size_t N>
  static std::array<abi::Function*, N> entries(std::array<abi::Function, N>& functions) {
    std::array<abi::Function*, N> pointers{};
    for (std::size_t i = 1; i < N; ++i) pointers[i] = &functions[i];
    return pointers;
  }

  static inline std::array<abi::Function, abi::kCoreSize> core_{};
  static inline std::array<abi::Function, abi::kCore2Size> core2_{};
  static inline std::array<abi::Function, abi::kSyncSize> sync_{};
};

}  // namespace ringmain::nvtx
