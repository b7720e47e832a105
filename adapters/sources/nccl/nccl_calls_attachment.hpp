// What does the library know while it is attached? Communicators by NCCL's handles, those that are
// still being made, and what each thread's group waits for.
//
// Locks are held for looking things up only: never over a call of NCCL's or CUDA's, nor over what a
// subscriber does. After a fork nothing of it is used: heard_here() is asked before any lock.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/system/fork.hpp"

#include "bus/bus.hpp"

#include "adapters/sources/collective/collective_ledger.hpp"
#include "adapters/sources/collective/communicator.hpp"
#include "adapters/sources/nccl/nccl_call.hpp"
#include "adapters/sources/nccl/nccl_calls.hpp"
#include "adapters/sources/nccl/nccl_ends.hpp"

namespace ringmain::nccl::detail {

/// NCCL's codes that decide something here.
enum : int { kSuccess = 0, kInvalidUsage = 5, kInProgress = 7, kTimeout = 8 };

class Known;

/// An operation that NCCL has accepted.
struct Told {
  collective::Operation operation{};
  std::shared_ptr<Known> on{};
  void* stream = nullptr;
  bool ours = false;      // its end is not another's to say: no outer source has issued it, or this
                          // one has promised it the end
  bool promised = false;  // another source will say its end
};

/// A communicator, or several, that a call is to make.
struct Making {
  Function which = Function::CommInitRank;
  void** out = nullptr;
  int count = 1;
  int rank = 0, ranks = 0;  // of the first, where the call says it
  std::string name{};
  std::shared_ptr<Known> parent{};
};

class Known : public KnownComm {
 public:
  Known(std::shared_ptr<Attachment> to_, int device_) noexcept
      : to(std::move(to_)), device(device_) {}
  /// No operation finds it any longer.
  void retire() noexcept { handle = this; }
  [[nodiscard]] bool retired() const noexcept { return handle == this; }
  /// It was refused because the wrapper was detached while the call was under way: NCCL answers.
  [[nodiscard]] bool let_go(const collective::Issuing& refused) const noexcept {
    return !refused.vetoed() && retired() && !given_up;
  }
  /// True for the one that may have NCCL free the handle: a destroy, an abort of the program's, or
  /// one of a subscriber's.
  [[nodiscard]] bool claim_end() noexcept { return !freed_.exchange(true); }
  /// NCCL has refused to.
  void unclaim_end() noexcept { freed_ = false; }

  const std::shared_ptr<Attachment> to;
  const int device;
  std::atomic<unsigned> parts{0};     // that were made of it, by a name that counts them
  std::atomic<bool> given_up{false};  // a subscriber has aborted it: NCCL's handle is no more
  std::atomic<int> async_error{0};    // that was told
  std::mutex mutex;                   // of what follows
  std::vector<Told> in_progress;      // NCCL says later what becomes of them

 private:
  std::atomic<bool> freed_{false};
};

class Attachment : public engine::Born {
 public:
  enum : std::size_t { kGroupMax = 4096 };  // as many as the ledger remembers

  Attachment(Bus& on, const CallsOptions& with, std::shared_ptr<collective::Ledger> by);

  /// The communicator of that handle; nullptr: there is none, and it cannot be asked what it is.
  [[nodiscard]] std::shared_ptr<Known> find(const void* handle);
  /// The same without asking NCCL about one that was not made here.
  [[nodiscard]] std::shared_ptr<Known> find_made(const void* handle);
  /// Communicators were made, or will have been when NCCL says so (`result` in progress).
  void made(const Making& making, int result);
  /// NCCL could not make them: said as a failed operation `init`.
  void not_made(const Making& making, int result) noexcept;
  /// NCCL is not in progress with it any more.
  void settled(const void* handle, int result);
  void forget(const std::shared_ptr<Known>& known, bool cancels);
  /// The program gives up one that NCCL is still making: NCCL gives its handle again.
  void unmake(const void* handle) noexcept;
  void end() noexcept;

  Bus& bus;  // only to be used while in `bus_use`
  BusUse bus_use;
  const CallsOptions options;
  const std::shared_ptr<collective::Ledger> ledger;
  Ends ends;
  std::atomic<std::uint64_t> untold{0}, refused{0}, failed_inits{0};
  [[nodiscard]] std::uint64_t communicators() noexcept;

 private:
  std::shared_ptr<Known> make_known(const void* handle, const Making& making, int rank);
  std::shared_ptr<Known> adopt(const void* handle);

  std::mutex mutex_;
  std::unordered_map<const void*, std::shared_ptr<Known>> known_;
  std::unordered_map<const void*, Making> being_made_;
  unsigned adopted_ = 0;
  bool over_ = false;  // detached: a call that was under way leaves nothing here
  std::weak_ptr<Attachment> self_;
  friend std::shared_ptr<Attachment> attach_to(Bus& bus, const CallsOptions& options,
                                               std::shared_ptr<collective::Ledger> ledger);
};

/// Is something attached, in this process and not in one that it was forked from?
[[nodiscard]] bool heard_here() noexcept;
/// nullptr: nothing is. Only where heard_here().
[[nodiscard]] std::shared_ptr<Attachment> attached() noexcept;

/// What a thread holds.
struct ThreadCalls {
  std::shared_ptr<Known> known{};
  std::vector<Told> operations{};
  std::vector<Making> makings{};
};
/// Throws std::bad_alloc. nullptr: the thread is ending.
[[nodiscard]] ThreadCalls* thread_calls();
/// For GetLastError(): cut where it is too long.
void remember_refusal(const void* comm, Function which, std::string_view group,
                      const collective::Issuing& refused) noexcept;
/// As Attachment::find(), by the thread's own memory first. nullptr also where there is no memory.
/// What the thread held is taken out of it until it is given back, so that nothing is counted.
[[nodiscard]] std::shared_ptr<Known> take_known(const void* handle) noexcept;
void give_back(std::shared_ptr<Known> known) noexcept;

/// While it lives, what its thread calls of NCCL's is NCCL's own.
class InNccl {
 public:
  InNccl() noexcept { ++thread_state.in_nccl; }
  InNccl(const InNccl&) = delete;
  InNccl& operator=(const InNccl&) = delete;
  ~InNccl() { --thread_state.in_nccl; }
};

/// NCCL has put it on its stream, or has not.
void settle(Told& told, int result, collective::How how = collective::How::error) noexcept;
[[nodiscard]] collective::Failed failure(int result) noexcept;
/// A communicator of ours gives itself up: NCCL's abort, by whoever's call.
void give_up(Known& known, const void* handle) noexcept;

/// NCCL's function, called as its own.
template <class... A>
int ask(Function which, A... arguments) noexcept {
  AnyFunction* const function = function_of(which);
  if (function == nullptr) return kNoFunction;
  const InNccl quiet;
  return reinterpret_cast<int (*)(A...)>(function)(arguments...);
}

}  // namespace ringmain::nccl::detail
