// How does a descriptor of one ABI version become one of another? Parts only grow at their ends, so
// a part is copied as far as both have it; what the older does not have is 0.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "adapters/sources/nccl/nccl_profiler_abi.hpp"

namespace ringmain::nccl {

/// The bytes of a type's part in D; 0: D does not have it.
template <class D>
[[nodiscard]] constexpr std::size_t part_bytes(std::uint64_t type) noexcept {
  switch (type) {
    case abi::kColl:
      return sizeof(D::coll);
    case abi::kP2p:
      return sizeof(D::p2p);
    case abi::kProxyOp:
      return sizeof(D::proxy_op);
    case abi::kProxyStep:
      return sizeof(D::proxy_step);
    case abi::kKernelCh:
      return sizeof(D::kernel_ch);
    case abi::kNetPlugin:
      return sizeof(D::net_plugin);
    default:
      break;
  }
  if constexpr (requires(D d) { d.coll_api; }) {
    switch (type) {
      case abi::kGroupApi:
        return sizeof(D::group_api);
      case abi::kCollApi:
        return sizeof(D::coll_api);
      case abi::kP2pApi:
        return sizeof(D::p2p_api);
      case abi::kKernelLaunch:
        return sizeof(D::kernel_launch);
      default:
        break;
    }
  }
  if constexpr (requires(D d) { d.ce_coll; }) {
    switch (type) {
      case abi::kCeColl:
        return sizeof(D::ce_coll);
      case abi::kCeSync:
        return sizeof(D::ce_sync);
      case abi::kCeBatch:
        return sizeof(D::ce_batch);
      default:
        break;
    }
  }
  if constexpr (requires(D d) { d.kernel_phase; }) {
    if (type == abi::kKernelPhase) return sizeof(D::kernel_phase);
  }
  return 0;
}

constexpr bool has_plan(std::uint64_t type) noexcept {
  return type == abi::kColl || type == abi::kP2p;
}
/// Where an operation names its plan, which is its parent up to version 4.
template <class D>
void*& plan_of(D& what) noexcept {
  if constexpr (std::is_same_v<D, abi::DescriptorV4>)
    return what.parent;
  else
    return what.type == abi::kColl ? what.coll.parent_group : what.p2p.parent_group;
}

/// A descriptor of NCCL's, with the parents that a plugin knows until it is put right again, also
/// where the plugin has written another type into it.
template <class D>
class WithParents {
 public:
  WithParents(D& what, void* parent, void* plan) noexcept
      : WithParents(what, parent, has_plan(what.type) ? &plan_of(what) : nullptr, plan) {}
  /// `plan_at`: where it names its plan; nullptr: nowhere.
  WithParents(D& what, void* parent, void** plan_at, void* plan) noexcept
      : what_(what),
        parent_(std::exchange(what.parent, parent)),
        plan_at_(plan_at),
        plan_(plan_at_ != nullptr ? std::exchange(*plan_at_, plan) : nullptr) {}
  WithParents(const WithParents&) = delete;
  WithParents& operator=(const WithParents&) = delete;
  ~WithParents() {
    if (plan_at_ != nullptr) *plan_at_ = plan_;
    what_.parent = parent_;
  }

 private:
  D& what_;
  void* const parent_;
  void** const plan_at_;
  void* const plan_;
};

/// `to` becomes what `from` says, with that parent.
template <class To, class From>
void convert(To& to, const From& from, void* parent) noexcept {
  std::memset(static_cast<void*>(&to), 0, sizeof to);
  to.type = static_cast<decltype(to.type)>(from.type);
  to.parent = parent;
  to.rank = from.rank;
  const std::size_t bytes = std::min(part_bytes<To>(from.type), part_bytes<From>(from.type));
  std::memcpy(static_cast<void*>(&to.coll), &from.coll, bytes);
  // NCCL from 2.28 on converts to v4 without it: what lies there is its stack's.
  if constexpr (std::is_same_v<From, abi::DescriptorV4>) {
    if (from.type == abi::kP2p) to.p2p.n_channels = 0;
  }
}

}  // namespace ringmain::nccl
