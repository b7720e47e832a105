// Through what does a backend report its operations, and where do hooks hang?
//
// A communicator is one rank's end of a group. The backend asks it before each operation and says
// what becomes of it; the communicator calls the hooks, and publishes on the bus by the ledger
// (collective_ledger.hpp). Nothing here moves data.
//
//   auto issuing = comm.issue(collective::AllReduce{tensor, ReduceOp::sum});
//   if (!issuing) return refused(issuing.reason());
//   Operation operation = issuing.operation();   // for the thread that will see the end
//   auto work = backend.all_reduce(…);           // may throw: then it failed
//   issuing.returned(&work);                     // post hooks
//   …
//   operation.completed();                       // any thread, any time
#pragma once
#include <chrono>
#include <concepts>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../../../bus/bus.hpp"
#include "../../../bus/result.hpp"

#include "../../../events/collective.hpp"
#include "../../../events/collective_life.hpp"

#include "collective_arguments.hpp"
#include "collective_hook.hpp"
#include "collective_ledger.hpp"
#include "communicator_gate.hpp"
#include "communicator_mark.hpp"

namespace ringmain::collective {

namespace detail {
class CommunicatorCore;
}  // namespace detail

/// What a communicator is called and of whom it consists.
struct CommunicatorOptions {
  std::string_view name{};         // of the group: events' field `group`; not empty
  std::string_view description{};  // what its maker calls it
  std::string_view backend{};      // gloo, mpi …
  std::string_view source{};       // whose word its events are: torch, loopback …
  std::int32_t rank = 0;           // below `size`
  std::int32_t size = 1;
  std::int32_t device = kNoDevice;
  std::span<const int> ranks{};  // of its members, in the world; empty: not known
  /// False: the backend calls for the operation also where a hook refuses it. It is not failed as
  /// vetoed then, and Issuing::reason() says why the hook refused.
  bool follows_vetoes = true;
  /// False: the backend numbers its operations, and issue(arguments, said) takes `said.sequence`.
  bool counts = true;
  /// After how long the backend gives an operation up; 0: not known. See set_timeout().
  nanoseconds timeout{};
  /// How the backend gives the group up; empty: abort() is not supported. Called in the thread that
  /// aborts, after the abort hooks.
  std::function<void(Name reason)> abort{};
};

/// What a backend says of an operation beyond its arguments.
struct IssueOptions {
  /// False: nobody here will say its end. It can fail until the backend's call has returned, and is
  /// then forgotten, without an end unless a source inside has promised it (promise_end()).
  bool ends = true;
  /// False: the arguments are not filled in, because shows_arguments() was false. Hooks that were
  /// registered since are called for the next operation.
  bool shown = true;
  nanoseconds timeout{};  // of its own; 0: none. Watchdogs go by it
};

/// How a communicator ends.
struct EndOptions {
  std::string_view reason{};     // why what is open is cancelled; empty: because it has ended
  std::uint64_t operations = 0;  // that there were, where CommunicatorOptions::counts is false
  bool cancels = true;           // false: what is open goes on, and somebody will say its end
};

/// What becomes of an operation; each word by any thread, in any order. The first of completed()
/// and failed() is believed, from whichever source; false: it is over already. A copy is the same
/// operation. It may outlive the communicator. Progress: as Ledger's.
class Operation {
 public:
  constexpr Operation() noexcept = default;  // one of which nobody hears
  Operation(const Operation& other) noexcept
      : core_(other.core_),
        id_(other.id_),
        op_(other.op_),
        reported_(other.reported_),
        holds_(core_ != nullptr) {
    if (holds_) hold(core_);
  }
  Operation(Operation&& other) noexcept : Operation() { swap(other); }
  Operation& operator=(Operation other) noexcept {
    swap(other);
    return *this;
  }
  constexpr ~Operation() {
    if (holds_) let_go(core_);
  }

  /// 0: when it was issued nobody listened and there was no hook.
  [[nodiscard]] std::uint64_t id() const noexcept { return id_; }
  bool started(Started what = {}) const noexcept;
  bool completed() const noexcept { return reported_ && completed_in(core_, id_); }
  bool completed(Completed what) const noexcept;
  bool failed(Failed what) const noexcept;
  /// As failed(), with How::error.
  bool failed(std::string_view reason) const noexcept;
  /// Nobody will say its end: none is published. Not where an outer source has issued it.
  void forget() const noexcept;

  /// A thread begins to wait for the operation, and ends: collective.wait. What the first returns
  /// is for the second; 0: nobody listens, and nothing is said. Waiting does both.
  [[nodiscard]] std::int64_t begin_wait() const noexcept;
  void end_wait(std::int64_t begun) const noexcept;
  /// While it lives, its thread waits for the operation: collective.wait.
  class Waiting {
   public:
    explicit Waiting(const Operation& of) noexcept : of_(of), begun_(of.begin_wait()) {}
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;
    ~Waiting() { of_.end_wait(begun_); }

   private:
    const Operation& of_;
    const std::int64_t begun_;
  };

 private:
  friend class detail::CommunicatorCore;
  /// In a Call, which holds the communicator while it lives: only copies hold it themselves.
  Operation(const detail::CommunicatorCore* core, std::uint64_t id, bool reported, Name op) noexcept
      : core_(core), id_(id), op_(op), reported_(reported) {}
  void swap(Operation& other) noexcept {
    std::swap(core_, other.core_);
    std::swap(id_, other.id_);
    std::swap(op_, other.op_);
    std::swap(reported_, other.reported_);
    std::swap(holds_, other.holds_);
  }
  // Told by values: an operation whose address nobody gets stays in registers.
  static void hold(const detail::CommunicatorCore* core) noexcept;
  static void let_go(const detail::CommunicatorCore* core) noexcept;
  static bool completed_in(const detail::CommunicatorCore* core, std::uint64_t id) noexcept;
  void say_wait(Edge edge, std::int64_t waited_ns) const noexcept;

  const detail::CommunicatorCore* core_ = nullptr;
  std::uint64_t id_ = 0;
  Name op_;
  bool reported_ = false;  // the ledger knows it
  bool holds_ = false;     // it is one holder of core_
};

namespace detail {
[[gnu::visibility("hidden")]] inline constexpr Operation nothing_told{};

/// What is known of a backend's call about which something is to be told.
struct Call {
  std::shared_ptr<CommunicatorGate> comm;  // from its issue on
  Operation operation;                     // of `comm`
  CallMark mark;
  Name reason;
  int exceptions = 0;
  OpName name = OpName::other;
  IssueOptions how;
  bool under_way = false;  // something is to be told when it is over
  bool vetoed = false;
  bool lifecycle = false;  // it is over when the backend's call is
  bool go_on = true;
};
}  // namespace detail

/// The call of the backend, from issue() to returned(). Lives in one thread, which is marked with
/// the operation meanwhile, so that a source below adds to it (Ledger::Inside).
class [[nodiscard]] Issuing {
 public:
  Issuing(const Issuing&) = delete;
  Issuing& operator=(const Issuing&) = delete;
  /// Without a word before: as threw(), if an exception is leaving, else as returned(nullptr).
  ~Issuing() {
    if (told_) [[unlikely]]
      leave();
  }

  /// May the backend be called? False: a hook refused, or the communicator has ended.
  explicit operator bool() const noexcept { return !told_ || call_.go_on; }
  /// Why not.
  [[nodiscard]] Name reason() const noexcept { return told_ ? call_.reason : Name(); }
  /// Did a hook refuse, or was there one that could not be asked? False: the communicator has
  /// ended.
  [[nodiscard]] bool vetoed() const noexcept { return told_ && call_.vetoed; }
  [[nodiscard]] const Operation& operation() const noexcept {
    return told_ ? call_.operation : detail::nothing_told;
  }
  /// Takes the thread's mark away before the call is over: what it calls for from here on is no
  /// part of this operation.
  void unmark() noexcept {
    if (told_) call_.mark.take_away();
  }
  /// The backend's call has returned: post hooks are called. `work` is the backend's, for them.
  void returned(const void* work = nullptr) noexcept {
    if (told_) [[unlikely]]
      over(Outcome::issued, work, nullptr, {});
  }
  /// A split: the part that this rank is in; nullptr: it is in none.
  void returned_part(const Communicator* part) noexcept {
    if (told_) over(Outcome::issued, nullptr, part, {});
  }
  /// The backend did not take it: it failed, and post hooks are called.
  void threw(std::string_view what) noexcept;
  /// The same with the vendor's code, or another How.
  void threw(Failed what) noexcept;

 private:
  friend class Communicator;
  friend class detail::CommunicatorCore;
  [[gnu::always_inline]] Issuing(const std::shared_ptr<detail::CommunicatorGate>& comm,
                                 const Arguments& arguments, const Issued* said,
                                 IssueOptions how) noexcept
      : told_(must_be_told(comm, arguments) && begin(comm, arguments, said, how)) {}
  [[gnu::always_inline]] static bool must_be_told(
      const std::shared_ptr<detail::CommunicatorGate>& comm, const Arguments& arguments) noexcept {
    if (comm != nullptr) [[likely]]
      return !passed(*comm, arguments);
    return false;
  }
  /// Nothing is to be done but to count it, and that is done.
  [[gnu::always_inline]] static bool passed(detail::CommunicatorGate& comm,
                                            const Arguments& arguments) noexcept {
    if (!comm.quiet()) [[unlikely]]
      return false;
    if (is_collective(arguments)) [[likely]]
      comm.collectives.add();
    else
      (void)comm.number_of_transfer(arguments);
    return true;
  }
  /// Makes `call_`. False: nothing is to be told, and there is none.
  bool begin(const std::shared_ptr<detail::CommunicatorGate>& comm, const Arguments& arguments,
             const Issued* said, IssueOptions how) noexcept;
  void leave() noexcept;
  void over(Outcome outcome, const void* work, const Communicator* part, Name reason) noexcept;

  bool told_;
  union {
    detail::Call call_;
  };
};

/// One rank's end of a group. Copies are the same communicator, which ends with end(), or with its
/// last copy. An empty one reports nothing and takes no hook.
///
/// Threads: any, all of it, at any time, also inside hooks.
class Communicator {
 public:
  Communicator() noexcept = default;
  /// refused: a name or ranks that cannot be; a bus that has stopped or is another process's.
  /// conflict: as Ledger::of(). Publishes collective.group `made`. Progress: blocking.
  [[nodiscard]] static Result<Communicator> make(Bus& bus, const CommunicatorOptions& options);
  /// One of this bus that was made, by any source, and has not ended; of several with that name the
  /// first of that rank (kNoRank: of any), and one that was given up only if there is no other.
  /// Empty: there is none. When collective.group `made` is published it can be found. Progress:
  /// blocking.
  [[nodiscard]] static Communicator find(Bus& bus, std::string_view group,
                                         std::int32_t rank = kNoRank);

  [[nodiscard]] Name name() const noexcept;
  [[nodiscard]] Name backend() const noexcept;
  [[nodiscard]] std::int32_t rank() const noexcept;
  [[nodiscard]] std::int32_t size() const noexcept;
  /// What the backend says of its own time-out: who records or watches operations asks for it.
  /// Nothing is failed by it here. 0: not known.
  [[nodiscard]] nanoseconds timeout() const noexcept;
  void set_timeout(nanoseconds limit) const noexcept;
  [[nodiscard]] bool ended() const noexcept;
  [[nodiscard]] bool aborted() const noexcept;
  [[nodiscard]] bool supports_abort() const noexcept;
  explicit operator bool() const noexcept { return gate_ != nullptr; }
  friend bool operator==(const Communicator&, const Communicator&) noexcept = default;

  /// Asks the pre hooks; then the backend may be called. Who refuses leaves a record: issued, and
  /// failed as vetoed. Collectives are counted: the field `sequence`.
  /// A pre hook that throws refuses; so does one that cannot be asked (8 calls of hooks and inline
  /// subscribers are nested in this thread, or there is no memory): it may be a guard. In a forked
  /// child, and once the bus has stopped, no hook is asked.
  /// Where another source has marked this thread, the operation is a part of that one's, and
  /// nothing is issued; hooks are called with the id of the outer one.
  /// Progress: as Channel::post(), but for the hooks.
  [[nodiscard]] Issuing issue(const Arguments& arguments) const noexcept {
    return Issuing(gate_, arguments, nullptr, {});
  }
  /// The same, of an operation with a time-out of its own.
  [[nodiscard]] Issuing issue_within(const Arguments& arguments, nanoseconds limit) const noexcept {
    return Issuing(gate_, arguments, nullptr, {.timeout = limit});
  }
  /// The same, and `said` is what is published of it, for a backend that knows it better than
  /// arguments say: op, bytes, elements, dtype, peer … Its group, rank, whose word it is, its
  /// backend where `said` has none, and its sequence where CommunicatorOptions::counts is true, are
  /// the communicator's.
  [[nodiscard]] Issuing issue(const Arguments& arguments, const Issued& said,
                              IssueOptions how = {}) const noexcept {
    return Issuing(gate_, arguments, &said, how);
  }
  /// Would anybody be told of an operation: a subscriber, or a hook? Would anybody be shown its
  /// arguments: a hook, or a subscriber of collective.shapes? If not, who issues need not find out
  /// what they are (IssueOptions::shown). Progress: wait-free.
  [[nodiscard]] bool heard() const noexcept;
  [[nodiscard]] bool shows_arguments() const noexcept;
  /// Nobody would be told, and it was counted. False: issue() it. Not of an empty communicator.
  [[nodiscard]] [[gnu::always_inline]] bool passed_over(bool is_a_collective) const noexcept {
    if (!gate_->quiet()) [[unlikely]]
      return false;
    if (is_a_collective) gate_->collectives.add();
    return true;
  }
  /// The backend's call, from issue() to returned(): `call(operation)`. False: refused, and it was
  /// not called. What it throws passes on.
  template <std::invocable<const Operation&> F>
  bool run(const Arguments& arguments, F&& call) const {
    Issuing issuing = issue(arguments);
    if (!issuing) return false;
    try {
      std::forward<F>(call)(issuing.operation());
    } catch (const std::exception& thrown) {
      issuing.threw(thrown.what());
      throw;
    }
    issuing.returned();
    return true;
  }

  /// Hooks. refused: the communicator is empty or has ended, or its bus has; no_memory. A hook that
  /// is registered while an operation is issued is called for the next one. Progress: blocking.
  [[nodiscard]] Result<Hook> pre_hook(PreHook see, HookOptions options = {}) const;
  [[nodiscard]] Result<Hook> post_hook(PostHook see, HookOptions options = {}) const;
  /// Called once for each end, in the thread that says it, also if another source does.
  [[nodiscard]] Result<Hook> completion_hook(CompletionHook see, HookOptions options = {}) const;
  /// Each is called in a thread of its own.
  [[nodiscard]] Result<Hook> abort_hook(AbortHook see, HookOptions options = {}) const;
  /// The same with torchcomms' handles.
  template <class F>
  [[nodiscard]] Result<RemovableHandle> register_pre_hook(F see, HookOptions options = {}) const {
    return parity(pre_hook(PreHook(std::move(see)), std::move(options)));
  }
  template <class F>
  [[nodiscard]] Result<RemovableHandle> register_post_hook(F see, HookOptions options = {}) const {
    return parity(post_hook(PostHook(std::move(see)), std::move(options)));
  }
  template <class F>
  [[nodiscard]] Result<RemovableHandle> register_completion_hook(F see,
                                                                 HookOptions options = {}) const {
    return parity(completion_hook(CompletionHook(std::move(see)), std::move(options)));
  }
  template <class F>
  [[nodiscard]] Result<RemovableHandle> register_abort_hook(F see, HookOptions options = {}) const {
    return parity(abort_hook(AbortHook(std::move(see)), std::move(options)));
  }

  /// This rank's part of a split, with the hooks that this communicator has now: one removal takes
  /// a hook away from both. Publishes collective.group `split`, with how many. Refusals as make().
  [[nodiscard]] Result<Communicator> part(const CommunicatorOptions& options) const;
  /// A split gave this rank nothing: collective.group `split` with an empty name.
  void no_part() const noexcept;

  /// Gives the group up: all abort hooks are called at once, together within `hooks_within`; one
  /// that is stuck is left, and named. Then what is open fails as aborted, and the backend's own
  /// abort is called. A second caller waits for the first one's hooks. Progress: blocking.
  Aborted abort(std::string_view reason, std::string_view asked_by = "application",
                nanoseconds hooks_within = std::chrono::seconds(5)) const;
  /// Only the hooks, for a backend that gives up by itself. Each call is an incident.
  Aborted run_abort_hooks(std::string_view reason, std::string_view asked_by = "backend",
                          nanoseconds hooks_within = std::chrono::seconds(5)) const;

  /// All that is open failed, though the communicator goes on. How many.
  std::uint32_t fail_open(std::string_view reason, How how = How::error) const noexcept;

  /// What is open failed as cancelled; operations and hooks are refused from here on. May be called
  /// again. Publishes collective.group `ended`. Makes all threads pass a barrier (membarrier).
  void end(const EndOptions& how = {}) const noexcept;

 private:
  friend class Issuing;
  friend class FlightRecorderHook;
  friend class detail::CommunicatorCore;
  explicit Communicator(std::shared_ptr<detail::CommunicatorGate> gate) noexcept
      : gate_(std::move(gate)) {}
  [[nodiscard]] static Result<RemovableHandle> parity(Result<Hook> made);
  [[nodiscard]] detail::CommunicatorCore* core() const noexcept;

  std::shared_ptr<detail::CommunicatorGate> gate_;  // of its core
};

}  // namespace ringmain::collective
