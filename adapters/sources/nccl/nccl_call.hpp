// How does a call go through the wrapper (nccl.hpp)? While nothing is attached: a load, a branch
// and the call. While something is, but nobody listens: its communicator is found in the thread's
// own memory, and the operation is counted. Else the library is told before and after, and may say
// that the call is not to be made.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "../collective/communicator.hpp"
#include "nccl_functions.hpp"
#include "nccl_types.hpp"

namespace ringmain::nccl::detail {

/// Threads: any reads it; the library writes it.
struct Gate {
  /// The function to be called at once; nullptr: the library is asked first, as it is attached, or
  /// the function was not looked for yet.
  std::atomic<AnyFunction*> plain{nullptr};
  /// The same while the library is attached; nullptr: not looked for yet, or NCCL has none.
  std::atomic<AnyFunction*> function{nullptr};
};
extern Gate gates[kFunctions];

/// A communicator of NCCL's that the library knows, as the callers' part of it.
struct KnownComm {
  std::atomic<const void*> handle{this};  // NCCL's; an address of ours: it has ended
  collective::Communicator comm{};
};
/// What the library knows of a thread.
struct ThreadState {
  KnownComm* known;        // that it used last, and holds; never nullptr
  void* calls;             // what it holds; the library's
  std::uint32_t waiting;   // operations and communicators of its group, for the end of it
  std::uint32_t depth;     // of its groups; NCCL's own may differ
  std::uint32_t in_nccl;   // it is inside such a call: what comes is NCCL's own
  const void* refused_on;  // its last call that was told was refused, on this; nullptr: it was not
};
extern constinit thread_local ThreadState thread_state __attribute__((tls_model("initial-exec")));

/// What an operation on a stream asks for, in NCCL's numbers.
struct StreamCall {
  const void* sent = nullptr;
  void* received = nullptr;
  std::size_t count = 0;
  int datatype = -1;
  int reduction = -1;
  int peer = -1;  // or the root
};
/// What a call about communicators asks for; those that it has not are as they are made.
struct LifeCall {
  const void* comm = nullptr;  // there before
  void* made = nullptr;        // where it writes the handle of a new one, or of several
  const void* ids = nullptr;   // 128 bytes
  const void* config = nullptr;
  int ranks = 0;
  int rank = -1;
  int word = 0;  // flags, or a colour
  void* error = nullptr;
};
/// Makes the call: `function` with the arguments that lie at `frame`, and with `config`, if there
/// is one, as the last.
using Make = int(AnyFunction* function, void* frame, const void* config);

/// The library's part of a call that somebody may need. `twin`: the same operation with a
/// configuration; kCount: there is none. `config`: the caller's; nullptr: the call has none.
int stream_call(Function which, Function twin, const StreamCall& call, const void* comm,
                const void* stream, const void* config, Make* make, void* frame) noexcept;
int life_call(Function which, const LifeCall& call, Make* make, void* frame) noexcept;
/// An outermost group has ended so, or was simulated only.
void end_group(int result, bool simulated) noexcept;
/// Looks for it, once; nullptr: there is no NCCL, or it is older than this.
AnyFunction* find(Function which) noexcept;

/// What a function answers that is not there.
inline constexpr int kNoFunction = 2;  // ncclSystemError
inline const char* no_function(const char*) noexcept {
  return "no libnccl.so.2 was found, or it is older than this function";
}
inline ncclResult_t no_function(ncclResult_t) noexcept {
  return static_cast<ncclResult_t>(kNoFunction);
}

[[gnu::always_inline]] inline AnyFunction* function_of(Function which) noexcept {
  AnyFunction* const known = gates[static_cast<unsigned>(which)].function.load();
  if (known != nullptr) [[likely]]
    return known;
  return find(which);
}

constexpr bool is_collective(Function which) noexcept {
  return which < Function::Bcast;
}

/// Empty where there is none.
collective::Communicator communicator_of(const void* comm) noexcept;
/// Who refused the thread's last call that somebody was told of, and why, where that was on `comm`,
/// or `comm` is nullptr. nullptr: NCCL was called.
const char* refusal(const void* comm) noexcept;

/// A call that nobody is told of.
template <Function which, class R, class... A>
[[gnu::always_inline]] inline R plain_call(A... arguments) {
  if constexpr (which == Function::GetLastError) {
    if (thread_state.refused_on != nullptr) [[unlikely]] {
      if (const char* const ours = refusal(arguments...)) return ours;
    }
  }
  AnyFunction* const function = function_of(which);
  if constexpr (std::is_void_v<R>) {
    if (function != nullptr) reinterpret_cast<R (*)(A...)>(function)(arguments...);
  } else {
    if (function == nullptr) [[unlikely]]
      return no_function(R{});
    return reinterpret_cast<R (*)(A...)>(function)(arguments...);
  }
}

template <class... A>
[[gnu::always_inline]] inline int call(AnyFunction* function, A... arguments) {
  if (function == nullptr) [[unlikely]]
    return kNoFunction;
  return static_cast<int>(reinterpret_cast<ncclResult_t (*)(A...)>(function)(arguments...));
}

/// An operation: `arguments` are its own, without the configuration. What moves comes by value, so
/// that nothing of it is put into memory where nobody is told.
template <Function which, Function twin>
struct Operation {
  template <class... A>
  [[gnu::always_inline]] static ncclResult_t run(const void* sent, void* received,
                                                 std::size_t count, int datatype, int reduction,
                                                 int peer, ncclComm_t comm, cudaStream_t stream,
                                                 A... arguments) {
    const Gate& gate = gates[static_cast<unsigned>(which)];
    if (AnyFunction* const plain = gate.plain) [[likely]]
      return reinterpret_cast<ncclResult_t (*)(A...)>(plain)(arguments...);
    // Bcast calls Broadcast, which passes a preload: it is seen to that this is not another one.
    if constexpr (which != Function::Bcast) {
      if (is_passed_over(comm)) [[likely]]
        return reinterpret_cast<ncclResult_t (*)(A...)>(gate.function.load())(arguments...);
    }
    return attended(sent, received, count, datatype, reduction, peer, comm, stream, nullptr,
                    arguments...);
  }
  /// The twin.
  template <class... A>
  [[gnu::always_inline]] static ncclResult_t run_configured(
      const void* sent, void* received, std::size_t count, int datatype, int reduction, int peer,
      ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t* config, A... arguments) {
    const Gate& gate = gates[static_cast<unsigned>(which)];
    using Configured = ncclResult_t(A..., const ncclCollConfig_t*);
    if (AnyFunction* const plain = gate.plain) [[likely]]
      return reinterpret_cast<Configured*>(plain)(arguments..., config);
    if (is_passed_over(comm)) [[likely]]
      return reinterpret_cast<Configured*>(gate.function.load())(arguments..., config);
    return attended(sent, received, count, datatype, reduction, peer, comm, stream, config,
                    arguments...);
  }

 private:
  [[gnu::always_inline]] static bool is_passed_over(ncclComm_t comm) {
    const KnownComm& known = *thread_state.known;
    return known.handle == comm && known.comm.passed_over(is_collective(which));
  }
  template <class... A>
  [[gnu::noinline]] static ncclResult_t attended(const void* sent, void* received,
                                                 std::size_t count, int datatype, int reduction,
                                                 int peer, ncclComm_t comm, cudaStream_t stream,
                                                 const ncclCollConfig_t* config, A... arguments) {
    auto make = [&](AnyFunction* function, const void* with) {
      if constexpr (twin != Function::kCount) {
        if (with != nullptr)
          return call(function, arguments..., static_cast<const ncclCollConfig_t*>(with));
      }
      if constexpr (is_twin) {
        return call(function, arguments..., config);
      } else {
        return call(function, arguments...);
      }
    };
    using Frame = decltype(make);
    return static_cast<ncclResult_t>(stream_call(
        which, twin, {sent, received, count, datatype, reduction, peer}, comm, stream, config,
        [](AnyFunction* function, void* frame, const void* with) {
          return (*static_cast<Frame*>(frame))(function, with);
        },
        &make));
  }
  static constexpr bool is_twin = twin == which;
};

/// A call about communicators.
template <Function which, class... A>
[[gnu::always_inline]] inline ncclResult_t life(const LifeCall& asked, A... arguments) {
  if (AnyFunction* const plain = gates[static_cast<unsigned>(which)].plain)
    return reinterpret_cast<ncclResult_t (*)(A...)>(plain)(arguments...);
  auto make = [&](AnyFunction* function) { return call(function, arguments...); };
  using Frame = decltype(make);
  return static_cast<ncclResult_t>(life_call(
      which, asked,
      [](AnyFunction* function, void* frame, const void*) {
        return (*static_cast<Frame*>(frame))(function);
      },
      &make));
}

// Depths are counted whether something is attached or not: it may be in the middle of a group.

inline ncclResult_t start_group() {
  const int result = call(function_of(Function::GroupStart));
  if (result == 0 && thread_state.in_nccl == 0) ++thread_state.depth;
  return static_cast<ncclResult_t>(result);
}
template <class... A>
ncclResult_t leave_group(Function which, A... arguments) {
  const int result = call(function_of(which), arguments...);
  ThreadState& mine = thread_state;
  if (mine.in_nccl != 0) return static_cast<ncclResult_t>(result);
  if (mine.depth != 0) --mine.depth;
  // NCCL's depth may be larger than this one, where a communicator could not be made.
  if (mine.depth == 0 && mine.waiting != 0) [[unlikely]]
    end_group(result, which == Function::GroupSimulateEnd);
  return static_cast<ncclResult_t>(result);
}

}  // namespace ringmain::nccl::detail
