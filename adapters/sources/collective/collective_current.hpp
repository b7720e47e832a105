// Which operation is this thread calling for? So that what a library says from inside the call can
// carry the operation's id.
//
// A wrapper of NCCL sets it around its call, NCCL's plugin reads it in its callbacks, which come in
// the same thread. A source that has marked the thread by the ledger (Ledger::Inside) need not set
// it: the mark is read as well. Where neither has an id, nobody listens, and there is none.
// Who reads it may promise to say the operation's end, and then whoever issued it leaves it open.
#pragma once
#include <cstdint>

namespace ringmain::collective {

/// Its id; 0: none that anybody was told of. In a forked child 0, until the child calls for one.
/// Threads: any. Progress: wait-free; two loads of the thread's own memory, no call of the system.
[[nodiscard]] std::uint64_t current_operation() noexcept;

/// For a source inside of the call: it will say the end of current_operation(), once, by
/// Ledger::completed() or failed(). Without a promise, and if nobody else sees the end, whoever
/// issued it forgets it when the call returns, and later words on it are late. False: nobody asks
/// for one here. Threads and progress: as current_operation().
bool promise_end() noexcept;

/// While it lives, its thread calls for that operation; the innermost is read. With 0 it changes
/// nothing. Lives in one thread.
class CurrentOperation {
 public:
  explicit CurrentOperation(std::uint64_t op_id) noexcept;
  CurrentOperation(const CurrentOperation&) = delete;
  CurrentOperation& operator=(const CurrentOperation&) = delete;
  ~CurrentOperation();
  /// Has a source promised to say its end?
  [[nodiscard]] bool end_is_promised() const noexcept;

 private:
  std::uint64_t before_ = 0;
  std::uint32_t born_before_ = 0;
  bool set_ = false, promised_before_ = false;
};

namespace detail {
/// What the thread calls for, set and taken away; for Ledger::Outside. What it was before.
std::uint64_t exchange_current(std::uint64_t op_id) noexcept;
/// The operation that a ledger, whichever, has marked this thread with; 0: none.
[[nodiscard]] std::uint64_t marked_operation() noexcept;
}  // namespace detail

}  // namespace ringmain::collective
