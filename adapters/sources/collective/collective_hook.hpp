// What is a hook of a communicator told, and how is it taken away again?
//
// A hook is an inline subscriber (bus/hooks.hpp): it is called in the thread that issues, or that
// says the end, by priority, then in order of registration.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "../../../bus/options.hpp"
#include "../../../bus/result.hpp"

#include "../../../events/collective.hpp"

#include "collective_arguments.hpp"

namespace ringmain::collective {

class Communicator;
class RemovableHandle;

/// Before the backend is called. Which operation it is, OpName says; `op` is the word of events.
struct PreHookArgs {
  std::uint64_t op_id = 0;
  const Arguments* arguments = nullptr;        // during the call only
  const Communicator* communicator = nullptr;  // during the call only
  Name op;
  OpName name = OpName::other;
  bool async_op = false;
  std::uint64_t sequence = 0;  // of a collective, in its group; else 0
};

enum class Outcome : std::uint8_t {
  issued,   // the backend took it: it is not done
  refused,  // by a pre hook: the backend was not called
  threw     // the backend did not take it
};
/// After the backend's call: exactly once for each call of the pre hooks, and in their thread.
struct PostHookArgs {
  std::uint64_t op_id = 0;
  const void* work = nullptr;                  // what the backend gave returned()
  const Communicator* communicator = nullptr;  // during the call only
  const Communicator* new_comm = nullptr;      // split: the part that this rank is in
  Name op;
  Name reason;  // why it was refused, or what was thrown
  OpName name = OpName::other;
  Outcome outcome = Outcome::issued;
};

/// The end of an operation: one of the two is said.
struct CompletionHookArgs {
  std::uint64_t op_id = 0;
  const Completed* completed = nullptr;  // during the call only
  const Failed* failed = nullptr;
};

struct AbortHookArgs {
  std::uint64_t incident = 0;
  Name reason;
  Name asked_by;
};

/// What an abort came to.
struct Aborted {
  enum class How : std::uint8_t {
    done,         // the hooks were called, and the backend gave the group up
    joined,       // somebody else's abort: its hooks have been called, or it is inside one of them
    unsupported,  // the backend has no abort: no hook was called
    ended         // the communicator has ended, or was aborted before
  };
  How how = How::done;
  std::uint64_t incident = 0;
  std::uint32_t hooks = 0;       // that were called
  std::uint32_t operations = 0;  // that failed with it
  std::vector<Name> stuck{};     // names of the hooks that had not returned in time
};

using PreHook = std::function<Verdict(const PreHookArgs&)>;
using PostHook = std::function<void(const PostHookArgs&)>;
using CompletionHook = std::function<void(const CompletionHookArgs&)>;
using AbortHook = std::function<void(const AbortHookArgs&)>;

struct HookOptions {
  int priority = 0;    // higher first; equal ones in order of registration
  std::string name{};  // shown in figures and reasons
};

namespace detail {
/// A hook, on all communicators that have it. Threads: any.
class Registration {
 public:
  Registration() = default;
  Registration(const Registration&) = delete;
  Registration& operator=(const Registration&) = delete;
  virtual ~Registration() = default;
  virtual Detached remove(nanoseconds limit) noexcept = 0;
  [[nodiscard]] virtual bool attached() noexcept = 0;
};
}  // namespace detail

/// Keeps one hook. Move-only, empty by default; its end takes the hook away, from the
/// communicator's parts, too. It may outlive the communicator and the bus.
/// Threads: one at a time per handle. Progress: blocking.
class [[nodiscard]] Hook {
 public:
  Hook() noexcept = default;
  explicit Hook(std::shared_ptr<detail::Registration> held) noexcept : held_(std::move(held)) {}
  Hook(Hook&& other) noexcept : held_(std::move(other.held_)) {}
  Hook& operator=(Hook&& other) noexcept {
    Hook(std::move(other)).swap(*this);
    return *this;
  }
  ~Hook() { (void)reset(); }
  void swap(Hook& other) noexcept { held_.swap(other.held_); }

  /// As Subscription::reset(): done means that it is not being called and will not be. Inside a
  /// callback or a hook: deferred.
  Detached reset() noexcept { return reset_for(nanoseconds(-1)); }
  /// Gives up waiting for calls that run; negative: never. After `timeout`, or `deferred`, the
  /// handle can wait for them again; if nobody does, what the hook holds goes with the last call.
  Detached reset_for(nanoseconds limit) noexcept {
    if (held_ == nullptr) return Detached::was_not_attached;
    auto kept = std::move(held_);  // the captures may hold this very handle, and end with it
    const Detached ended = kept->remove(limit);
    if (ended == Detached::timeout || ended == Detached::deferred) held_ = std::move(kept);
    return ended;
  }
  /// Leaves it registered for the communicator's life.
  void release() noexcept { held_.reset(); }
  /// As release(), with a handle that can take it away later.
  [[nodiscard]] RemovableHandle keep() noexcept;
  [[nodiscard]] bool attached() const noexcept { return held_ != nullptr && held_->attached(); }

 private:
  std::shared_ptr<detail::Registration> held_;
};

/// As torchcomms' handle: dropping it leaves the hook registered, remove() takes it away for good.
/// Copies are the same. Threads: any.
class RemovableHandle {
 public:
  RemovableHandle() noexcept = default;
  explicit RemovableHandle(std::shared_ptr<detail::Registration> held) noexcept
      : held_(std::move(held)) {}
  /// May be called again, and after the communicator's end: then was_not_attached. One that comes
  /// while another thread removes it waits, too.
  Detached remove() const noexcept { return remove_for(nanoseconds(-1)); }
  Detached remove_for(nanoseconds limit) const noexcept {
    const auto kept = held_;  // the captures may hold this very handle
    return kept == nullptr ? Detached::was_not_attached : kept->remove(limit);
  }
  [[nodiscard]] bool attached() const noexcept { return held_ != nullptr && held_->attached(); }

 private:
  std::shared_ptr<detail::Registration> held_;
};

inline RemovableHandle Hook::keep() noexcept {
  return RemovableHandle(std::move(held_));
}

}  // namespace ringmain::collective
