// How does a call go through the wrapper (traced.hpp)? While nobody needs it: a load, a branch and
// the call. Else the library of the source is told before and after, and may say that the call is
// not to be made.
//
// Each row of the call table has a gate, which the library opens and closes as interest in the
// row's kind changes. The arguments are laid out as CUPTI lays them out, so that one reader
// (cuda_arguments.hpp) serves both.
#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "../../../events/terms/cuda_call_table.hpp"

#include "traced_types.hpp"

namespace ringmain::cuda::detail {

using AnyFunction = void();

/// Threads: any reads it; the library writes it.
struct Gate {
  /// The function to be called at once; nullptr: the library is asked first, as somebody needs the
  /// call, or the function was not looked for yet.
  std::atomic<AnyFunction*> plain{nullptr};
  /// For callers that are linked with the function: the library is asked first.
  std::atomic<bool> attended{false};
};
/// By the places of call_rows().
extern std::array<Gate, call_rows().size()> gates;

/// One call that somebody needs; it lies on its caller's stack. Threads: its own.
/// For callers in CUDA's calls: no lock and no allocation after the thread's first event of a kind
/// and the function's first call; errno stays what it was.
class WrappedCall {
 public:
  /// `params`: the arguments one after the other as a struct; nullptr: there are none. `linked`,
  /// `get_device`: the functions that the caller is linked with, or nullptr.
  WrappedCall(std::size_t place, const void* params, AnyFunction* linked,
              AnyFunction* get_device) noexcept
      : place_(place), params_(params), linked_(linked), get_device_(get_device) {}
  WrappedCall(const WrappedCall&) = delete;
  WrappedCall& operator=(const WrappedCall&) = delete;
  ~WrappedCall() {
    if (entered_) abandon();  // the thread is cancelled in the call
  }
  /// The function that makes the call, or nullptr: it is not made, and result() is its answer.
  [[nodiscard]] AnyFunction* begin() noexcept;
  void end(std::int32_t result) noexcept;
  [[nodiscard]] std::int32_t result() const noexcept { return result_; }

 private:
  struct Telling;
  void abandon() noexcept;

  const std::size_t place_;
  const void* const params_;
  AnyFunction* const linked_;
  AnyFunction* const get_device_;
  std::uint64_t slot_ = 0;    // what the thread's guard left at the entry
  std::uint32_t number_ = 0;  // of the attachment that was told of the begin
  std::int32_t result_ = 0;
  bool entered_ = false;
};

/// From now on wrapped calls of this name go to `function`; nullptr: as before. False: no call has
/// that name.
bool replace_function(std::string_view name, AnyFunction* function);

}  // namespace ringmain::cuda::detail

namespace ringmain::cuda::traced::detail {

/// Arguments one after the other, as CUPTI's structs have them.
template <class... A>
struct Params {};
template <class A>
struct Params<A> {
  A a;
};
template <class A, class B>
struct Params<A, B> {
  A a;
  B b;
};
template <class A, class B, class C>
struct Params<A, B, C> {
  A a;
  B b;
  C c;
};
template <class A, class B, class C, class D>
struct Params<A, B, C, D> {
  A a;
  B b;
  C c;
  D d;
};
template <class A, class B, class C, class D, class E>
struct Params<A, B, C, D, E> {
  A a;
  B b;
  C c;
  D d;
  E e;
};

inline cuda::detail::AnyFunction* linked_get_device() noexcept {
#if defined(CUDART_VERSION)
  return reinterpret_cast<cuda::detail::AnyFunction*>(
      static_cast<cudaError_t (*)(int*)>(&::cudaGetDevice));
#else
  return nullptr;
#endif
}

/// The runtime's call of that number of CUPTI's.
template <std::uint16_t cbid, class... A>
struct Wrapped {
  using Function = cudaError_t(A...);
  static constexpr std::size_t kPlace =
      cuda::detail::kPlaces[static_cast<std::size_t>(CallDomain::runtime)][cbid] - 1u;
  static_assert(call_rows()[kPlace].cbid == cbid);

  /// `linked`: the function that this program is linked with; nullptr: the library looks for it.
  [[gnu::always_inline]] static cudaError_t call(Function* linked, A... arguments) {
    cuda::detail::Gate& gate = cuda::detail::gates[kPlace];
    if (linked != nullptr) {
      if (!gate.attended) [[likely]]
        return linked(arguments...);
    } else if (cuda::detail::AnyFunction* const plain = gate.plain) [[likely]] {
      return reinterpret_cast<Function*>(plain)(arguments...);
    }
    return attended(linked, arguments...);
  }

 private:
  [[gnu::noinline]] static cudaError_t attended(Function* linked, A... arguments) {
    const Params<A...> params{arguments...};
    cuda::detail::WrappedCall wrapped(kPlace, sizeof...(A) == 0 ? nullptr : &params,
                                      reinterpret_cast<cuda::detail::AnyFunction*>(linked),
                                      linked_get_device());
    cuda::detail::AnyFunction* const function = wrapped.begin();
    if (function == nullptr) return static_cast<cudaError_t>(wrapped.result());
    const cudaError_t result = reinterpret_cast<Function*>(function)(arguments...);
    wrapped.end(static_cast<std::int32_t>(result));
    return result;
  }
};

}  // namespace ringmain::cuda::traced::detail
