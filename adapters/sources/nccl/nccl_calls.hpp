// What does a program ask for when it has its calls of NCCL heard? A bus to publish them on, and
// what may be added to them.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>

#include "../../../bus/bus.hpp"
#include "../../../bus/result.hpp"

#include "nccl_functions.hpp"

namespace ringmain::nccl {

namespace detail {
class Attachment;
}  // namespace detail

struct CallsOptions {
  /// Who says the end of an operation that the stream has reached? True: completions of CUDA
  /// (completions.hpp), armed behind each operation that is heard, which needs the driver, and has
  /// one thread for each context. False, or where they cannot be armed: whoever promises to, such
  /// as NCCL's plugin (collective_current.hpp), or nobody, and then no end is published.
  bool completions = false;
  /// The operation's id goes with it to profiler plugins, as `userProfilerTag`: in other threads,
  /// and in replays of a graph. Needs NCCL 2.31. A program's own tag is kept.
  bool tags = false;
  /// How long the hooks of an abort may take, of all hooks together, before NCCL's abort is called.
  nanoseconds abort_hooks_within{std::chrono::seconds(2)};
  /// Called before an abort of NCCL's, when it has been published: to write out what was heard.
  std::function<void()> before_abort{};
};

struct CallsFigures {
  std::uint64_t communicators = 0;  // known now
  std::uint64_t untold = 0;         // operations on communicators that could not be followed
  std::uint64_t refused = 0;        // operations that a hook refused
  std::uint64_t armed = 0;          // completions
  std::uint64_t unarmed = 0;        // operations whose completion could not be armed
  std::uint64_t unmade = 0;         // calls that made no communicator, as NCCL failed
};

/// While it lives, this process's calls through the wrapper and the preload are heard. Move-only;
/// an empty one does nothing. Threads: any, but for moving it.
///
/// A communicator that was made before is asked by NCCL's own functions for its rank and size at
/// its first operation, and is called "nccl-", a number, as its name is not known.
class [[nodiscard]] Calls {
 public:
  Calls() noexcept = default;
  Calls(Calls&& other) noexcept;
  Calls& operator=(Calls&& other) noexcept;
  /// detach().
  ~Calls();

  /// Errors: `conflict`, another is attached in this process, or the bus has a channel of that name
  /// for another event; `refused`, the bus has stopped. Whether there is an NCCL is found out by
  /// the first call. Throws std::bad_alloc. Progress: blocking.
  [[nodiscard]] static Result<Calls> attach(Bus& bus, const CallsOptions& options = {});
  /// No call that begins later is heard. One that is under way ends as if it were, and does not use
  /// the bus any more; who is about to use it is waited for, but not in a subscriber. Groups are
  /// over.
  void detach() noexcept;
  [[nodiscard]] CallsFigures figures() const noexcept;
  explicit operator bool() const noexcept { return attached_ != nullptr; }

 private:
  std::shared_ptr<detail::Attachment> attached_;
};

/// The functions of a library; `refused`: the loader's words. nullptr: as the first call looks for
/// them, libnccl.so.2. The library stays loaded.
[[nodiscard]] Result<Functions> load_functions(const char* file);
/// From now on calls go to these, in all threads; a place that is nullptr is a function that is not
/// there. For a program that has NCCL to itself, and for what stands in for it. Not while calls are
/// under way.
void use_functions(const Functions& functions) noexcept;

}  // namespace ringmain::nccl
