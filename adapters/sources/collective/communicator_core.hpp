// What is a communicator made of? Who it is, its hooks, and the ledger that it reports to.
#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "engine/system/ref.hpp"

#include "bus/hooks.hpp"

#include "adapters/sources/collective/collective_ledger_core.hpp"
#include "adapters/sources/collective/communicator.hpp"

namespace ringmain::collective::detail {

class CommunicatorCore;

// Made when the library is loaded: a fork while a thread makes them would leave their guard locked.
[[gnu::visibility("hidden")]] inline const Name has_ended("its communicator has ended");
[[gnu::visibility("hidden")]] inline const Name was_aborted("its communicator was aborted");

/// An abort hook has a row of its own, as each is called in a thread of its own.
struct AbortRow {
  Name name;
  Hooks<AbortHookArgs> row;
};

/// One hook. A subclass knows its function and on which row it goes.
///
/// Captures are the user's: their destructors may do anything, so none runs under a lock.
class OneHook : public Registration, engine::Born {
 public:
  explicit OneHook(HookOptions options) : options_(std::move(options)) {}

  /// False: it was removed before.
  [[nodiscard]] Result<bool> add_to(CommunicatorCore& comm);
  Detached remove(nanoseconds limit) noexcept override;
  [[nodiscard]] bool attached() noexcept override;
  /// Nobody will call it for that communicator any more. Waits for nobody.
  void leave(const CommunicatorCore& comm) noexcept;
  [[nodiscard]] bool removed() noexcept;
  /// It was removed, and is not being called: it holds nothing of the user's.
  [[nodiscard]] bool over() noexcept;

 protected:
  /// Where it hangs.
  struct On {
    const CommunicatorCore* comm = nullptr;
    std::shared_ptr<AbortRow> row{};  // of an abort hook; ends after `hook`
    Subscription hook{};
  };
  [[nodiscard]] virtual Result<On> hook_in(CommunicatorCore& comm) = 0;
  /// Gives its function up; calls that run hold it still.
  [[nodiscard]] virtual std::shared_ptr<const void> take_function() noexcept = 0;
  [[nodiscard]] SubscribeOptions subscribe_options() const;

 private:
  [[nodiscard]] bool wait_for_who_removes(std::unique_lock<std::mutex>& lock,
                                          const engine::Deadline& deadline) noexcept;

  const HookOptions options_;
  std::mutex mutex_;
  bool removed_ = false;
  bool being_removed_ = false;  // a thread waits for its calls, and has what is else in on_
  std::condition_variable was_removed_;
  std::vector<On> on_;
};

/// Abort hooks that are being called. The threads that call them hold it.
struct Incident {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<bool> ended;  // of each hook
  std::size_t running = 0;
  bool over = false;  // nobody waits for them any longer
  bool gives_up = false;
};

class CommunicatorCore : public engine::Counted, public CommunicatorGate {
 public:
  CommunicatorCore(std::shared_ptr<Ledger> ledger, const CommunicatorOptions& options, Name parent);
  ~CommunicatorCore() override;

  /// The hooks of `parent`, as many as it has now, in their order. How many.
  [[nodiscard]] Result<std::uint32_t> inherit(CommunicatorCore& parent);
  [[nodiscard]] Result<std::shared_ptr<OneHook>> add(std::shared_ptr<OneHook> made);
  /// `operations`: of a group that ended, how many there were.
  void say_group(GroupChange change, std::uint32_t inherited,
                 std::uint64_t operations = 0) noexcept;
  /// A split of this one; an empty `part`: this rank is in none.
  void say_split() noexcept;
  void end(const EndOptions& how) noexcept;

  /// False: nothing is to be told of it.
  bool issue(Issuing& issuing, const std::shared_ptr<CommunicatorGate>& self,
             const Arguments& arguments, const Issued* said, IssueOptions how) noexcept;
  [[nodiscard]] bool shows_arguments() const noexcept {
    return pre.any() || post.any() || shapes_heard();
  }
  /// As Ledger::heard().
  [[nodiscard]] bool heard() const noexcept { return issued_line_->heard() || ledger().heard(); }
  [[nodiscard]] bool shapes_heard() const noexcept { return shapes_line_->heard(); }
  /// An operation whose end nobody will say is open no longer.
  void forget(std::uint64_t op_id) const noexcept { (void)ledger().open.end(op_id); }
  void call_post(const Call& call, Outcome outcome, const void* work, const Communicator* part,
                 Name reason) noexcept;
  Aborted abort(std::string_view reason, std::string_view asked_by, nanoseconds within,
                bool gives_up);

  [[nodiscard]] bool is_over() const noexcept { return over() != 0; }
  [[nodiscard]] Ledger::Core& ledger() const noexcept { return *ledger_->core_; }
  [[nodiscard]] const Ledger& marks() const noexcept { return *ledger_; }
  [[nodiscard]] Ledger& reports() const noexcept { return *ledger_; }
  [[nodiscard]] ringmain::detail::BusCore& bus() const noexcept { return *ledger().bus_core; }
  [[nodiscard]] std::string row_name(std::string_view kind) const;

  const std::shared_ptr<Ledger> ledger_;
  const std::uint32_t number;
  const Name name, description, backend, source, parent;
  const std::int32_t rank, size, device;
  const std::vector<int> ranks;
  const bool follows_vetoes, counts;
  const std::function<void(Name)> give_up;
  std::atomic<std::int64_t> timeout_ns;  // a figure: nothing follows from it

  RowWhenAsked<PreHookArgs> pre;
  RowWhenAsked<PostHookArgs> post;
  std::mutex hooks_mutex;
  std::vector<std::shared_ptr<OneHook>> hooks;      // in order of registration
  std::vector<std::weak_ptr<AbortRow>> abort_rows;  // held by their hooks

 private:
  // What each operation asks, at once: by the ledger and its channels each would be five loads, of
  // which each waits for the one before.
  const engine::ChannelLine* const issued_line_;
  const engine::ChannelLine* const shapes_line_;

  [[nodiscard]] bool refuse_if_over(Call& call) const noexcept;
  /// Its sequence: the count of collectives, or what the backend says.
  [[nodiscard]] std::uint64_t numbered(const Arguments& arguments, const Issued* said) noexcept;
  /// Asks the pre hooks; false: it does not go on.
  [[nodiscard]] bool ask_hooks(Call& call, const Arguments& arguments, bool async, Name op,
                               std::uint64_t sequence) noexcept;
  [[nodiscard]] bool end_if_over(std::uint64_t op_id) noexcept;
  /// Has it said, and remembered. Its id.
  [[nodiscard]] std::uint64_t issued(const ArgumentsView& view, Name op, std::uint64_t sequence,
                                     std::uint64_t transfer, std::int64_t own_ns) noexcept;
  /// The same as the backend says it, but for whose word it is.
  [[nodiscard]] std::uint64_t issued(const Issued& said, std::uint64_t sequence,
                                     std::uint64_t transfer, std::int64_t own_ns) noexcept;
  /// As events have it.
  [[nodiscard]] std::uint16_t timeout_s(std::int64_t own_ns) const noexcept;
  void say_shapes(std::uint64_t op_id, const ArgumentsView& view, Name op) noexcept;
  [[nodiscard]] PublishResult ask(const Call& call, const Arguments& arguments, bool async, Name op,
                                  std::uint64_t sequence) noexcept;
  /// Lets go of hooks that were removed, but not of one that is being called. Throws
  /// std::bad_alloc.
  void forget_removed();
  [[nodiscard]] std::vector<std::shared_ptr<AbortRow>> rows_to_abort();
  /// Calls them; `stuck` gets the names of those that have not returned in time.
  void call_abort_hooks(const std::vector<std::shared_ptr<AbortRow>>& rows,
                        const AbortHookArgs& args, const std::shared_ptr<Incident>& incident,
                        nanoseconds within, std::vector<Name>& stuck) noexcept;

  std::mutex abort_mutex_;
  std::condition_variable abort_changed_;
  std::shared_ptr<Incident> aborting_;
};

/// The last of a communicator's copies ends it. They share this, and point to its gate.
class CommunicatorHold {
 public:
  explicit CommunicatorHold(engine::Ref<CommunicatorCore> of) noexcept : core(std::move(of)) {}
  CommunicatorHold(const CommunicatorHold&) = delete;
  CommunicatorHold& operator=(const CommunicatorHold&) = delete;
  ~CommunicatorHold() { core->end({}); }
  [[nodiscard]] static std::shared_ptr<CommunicatorGate> enter(engine::Ref<CommunicatorCore> core);
  [[nodiscard]] static std::shared_ptr<CommunicatorGate> find(Ledger::Core& ledger, Name group,
                                                              std::int32_t rank);
  const engine::Ref<CommunicatorCore> core;
};
[[nodiscard]] inline CommunicatorCore* core_of(
    const std::shared_ptr<CommunicatorGate>& gate) noexcept {
  return static_cast<CommunicatorCore*>(gate.get());
}

}  // namespace ringmain::collective::detail
