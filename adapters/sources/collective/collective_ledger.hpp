// Which collective operations are under way, and how does each end? Once, whoever says it first.
//
// One all-reduce may pass several sources: PyTorch's process group, a wrapper of NCCL, NCCL's own
// plugin. The outermost issues it, which gives it its op_id, and marks its thread; an inner one
// finds the mark, issues nothing, and says what only it can see under that id. Whoever first says
// that it completed or failed is believed; later words are counted.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "../../../bus/bus.hpp"
#include "../../../bus/result.hpp"

#include "../../../events/collective.hpp"
#include "../../../events/collective_life.hpp"
#include "../../../events/collective_shapes.hpp"

namespace ringmain::collective {

class Communicator;
namespace detail {
class CommunicatorCore;
std::uint64_t marked_operation() noexcept;
}  // namespace detail

/// As `bytes` of what is said at the end: nothing came. 0 is filled with what issue() was told.
constexpr std::uint64_t kNoBytes = ~std::uint64_t{0};

struct LedgerFigures {
  std::uint64_t issued = 0;   // that were heard
  std::uint64_t unknown = 0;  // of those, that failed as `unknown`: no room was left
  std::uint64_t late = 0;     // words on operations that had ended, had begun, or were never open
  std::uint32_t open = 0;     // now; while others issue, about
};

/// An operation that is open for longer than it was given.
struct Overdue {
  std::uint64_t op_id = 0;
  std::int64_t waits_ns = 0;  // since it was issued; where it has begun, since it began
  bool has_begun = false;     // false: nobody has said that it did
  std::int32_t rank = kNoRank;
  Name op;
  Name group;
  std::int64_t timeout_ns = 0;  // the operation's own; 0: that of its communicator
};

/// A bus's ledger of operations. Its events are published on that bus.
///
/// Threads: any. Progress: as Channel::post(); nothing waits, or allocates, beyond that.
class Ledger {
 public:
  enum : std::uint32_t { kOpenMax = 4096 };

  /// The bus's: the first that asks makes it, and it lives as long as one who asked holds it, also
  /// after its bus, when nobody listens. conflict: the program has a channel of that name for
  /// another event. Throws std::bad_alloc. Progress: blocking.
  [[nodiscard]] static Result<std::shared_ptr<Ledger>> of(Bus& bus);
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;
  ~Ledger();

  /// Does somebody listen to operations, or wait for their ends? Progress: wait-free.
  [[nodiscard]] bool heard() const noexcept;

  /// As heard(), or was a hook ever registered on a communicator of this bus? If not, a source need
  /// not find out which communicator an operation is of. Progress: wait-free.
  [[nodiscard]] bool hooked_or_heard() const noexcept;

  /// Issues it: it has an id from here on, which is returned and which its other words need. 0:
  /// nobody listens; each word on 0 is harmless. `op_id` of `what` is not read, and `thread` 0 is
  /// the caller's. If kOpenMax are open already, it fails as `unknown` at once.
  std::uint64_t issue(const Issued& what) noexcept;
  /// Its first kernel runs. Fields of `what` that are as they are made come from what issue() was
  /// told: op, group, sequence, bytes … False: it has begun or ended, which is counted as late.
  bool started(std::uint64_t op_id, Started what = {}) noexcept;
  /// As started(). False: it has ended.
  bool completed(std::uint64_t op_id) noexcept;
  bool completed(std::uint64_t op_id, Completed what) noexcept;
  bool failed(std::uint64_t op_id, Failed what) noexcept;
  /// A group has ended: what is open in it failed as cancelled. How many. One that is issued
  /// meanwhile may stay open.
  std::uint32_t end_group(Name group, Name reason) noexcept;

  /// What happens around operations. Published if somebody listens.
  void say(const Group& what) noexcept;
  void say(const Wait& what) noexcept;
  void say(const Abort& what) noexcept;
  void say(const Shapes& what) noexcept;
  /// Is it worth making such an event? Progress: wait-free.
  [[nodiscard]] bool waits_heard() const noexcept;
  [[nodiscard]] bool shapes_heard() const noexcept;

  /// What is open for longer than `from_issue` and has not begun, and what began longer ago than
  /// `from_start`: an operation that hangs before its work begins waits for something else than one
  /// that hangs in it. Nothing is failed by that. Throws std::bad_alloc. Progress: wait-free
  /// otherwise; it looks at all kOpenMax places.
  [[nodiscard]] std::vector<Overdue> overdue(nanoseconds from_issue, nanoseconds from_start) const;

  [[nodiscard]] LedgerFigures figures() const noexcept;

  /// The id of the operation that this thread issues; 0: none that was issued on this bus.
  [[nodiscard]] std::uint64_t mark() const noexcept;
  /// That operation, if it is open and is called `op`; else 0. For an inner source: the outer
  /// operation may be made of several of its own, whose ends are not that one's.
  [[nodiscard]] std::uint64_t marked_as(Name op) const noexcept;
  struct Mark {
    const Ledger* ledger = nullptr;
    std::uint64_t op_id = 0;
  };
  /// While it lives, its thread is inside the issuing of that operation. Where it is inside one of
  /// this bus already, that one stays. Lives in one thread.
  class Inside {
   public:
    Inside(const Ledger& ledger, std::uint64_t op_id) noexcept;
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;
    ~Inside();

   private:
    Mark before_;
  };
  /// While it lives, its thread is inside no operation: what it calls for is its own.
  class Outside {
   public:
    Outside() noexcept;
    Outside(const Outside&) = delete;
    Outside& operator=(const Outside&) = delete;
    ~Outside();

   private:
    Mark before_;
    std::uint64_t current_before_;
  };

  struct Core;  // for this library's own files

 private:
  friend class Communicator;
  friend class detail::CommunicatorCore;
  friend std::uint64_t detail::marked_operation() noexcept;
  explicit Ledger(std::unique_ptr<Core> core) noexcept;
  std::unique_ptr<Core> core_;
};

}  // namespace ringmain::collective
