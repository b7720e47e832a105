// What do the opaque pointers of collective.h point to, and how do its arguments become C++'s?
#pragma once
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "bindings/c/handles.hpp"
#include "bindings/c/user.hpp"

#include "adapters/collective.h"
#include "adapters/sources/collective/communicator.hpp"

struct ringmain_communicator {
  ringmain::collective::Communicator held;
};

/// Freed by the second of two words: that the backend's call is over, and that nobody has the
/// handle any longer.
struct ringmain_operation {
  ringmain::collective::Operation operation;
  std::optional<ringmain::collective::Issuing> issuing;  // none: the backend's call is over
  ringmain_operation* outer = nullptr;                   // of the same thread
  std::atomic<int> words_to_come{2};
};

struct ringmain_hook {
  ringmain::collective::RemovableHandle held;
};

namespace ringmain::collective::c {

using ringmain::c::fail;
using ringmain::c::guarded;
using ringmain::c::read_struct;
using ringmain::c::User;
using ringmain::c::write_struct;

/// A list that is short but for a few: of those its memory may run out.
template <class T>
class ShortList {
 public:
  ShortList() = default;
  ShortList(const ShortList&) = delete;
  ShortList& operator=(const ShortList&) = delete;
  /// Throws std::bad_alloc.
  T* make(std::size_t count) {
    if (count <= few_.size()) return few_.data();
    many_ = std::make_unique<T[]>(count);
    return many_.get();
  }

 private:
  std::array<T, 4> few_{};
  std::unique_ptr<T[]> many_;
};

/// The caller's arguments as C++'s. What `arguments` points to is here, or the caller's.
class ArgumentsOf {
 public:
  /// RINGMAIN_OK, or what is wrong with them. Throws std::bad_alloc.
  ringmain_code read(const ringmain_arguments* given);
  Arguments arguments = Barrier{};

 private:
  ShortList<Tensor> in_, out_;
};

/// And back: as a hook sees them. It points to what `of` points to.
class ArgumentsShown {
 public:
  /// Throws std::bad_alloc.
  explicit ArgumentsShown(const Arguments& of);
  ringmain_arguments shown{};

 private:
  ShortList<ringmain_tensor> in_, out_;
  std::string new_group_;  // with a zero at its end
};

/// RINGMAIN_OP_… of an operation.
[[nodiscard]] constexpr std::uint32_t number_of(OpName op) noexcept {
  return op == OpName::other ? std::uint32_t{RINGMAIN_OP_OTHER}
                             : static_cast<std::uint32_t>(op) + 1;
}
[[nodiscard]] constexpr Name name_of(std::uint32_t number) noexcept {
  return std::bit_cast<Name>(number);
}

inline ringmain_code no_communicator() noexcept {
  return fail(RINGMAIN_REFUSED, "communicator is NULL; make or find one");
}

}  // namespace ringmain::collective::c
