// Is anything to be done about an operation? One look at one word, which the backend's own code
// makes.
#pragma once
#include <atomic>
#include <cstdint>

#include "../../../engine/system/arrivals.hpp"
#include "../../../engine/system/numbering.hpp"

#include "collective_arguments.hpp"

namespace ringmain::collective::detail {

/// The part of a communicator that each operation reads.
class CommunicatorGate {
 public:
  explicit CommunicatorGate(const engine::Arrivals& arrivals) noexcept : arrivals_(&arrivals) {}
  CommunicatorGate(const CommunicatorGate&) = delete;
  CommunicatorGate& operator=(const CommunicatorGate&) = delete;

  /// Nobody listens, no hook is there, and the communicator is in use: the last operation that
  /// looked has found it so, and no subscriber of the bus has come since. In a forked child, where
  /// nothing is to be done, it may be either.
  [[nodiscard]] [[gnu::always_inline]] bool quiet() const noexcept {
    return quiet_since_.still(*arrivals_);
  }

  enum : std::uint32_t { kEnded = 1, kAborted = 2 };
  [[nodiscard]] std::uint32_t over() const noexcept { return over_; }
  /// The next of its sends, receives and batches, from 1 on; 0: it is none.
  std::uint64_t number_of_transfer(const Arguments& arguments) noexcept {
    return is_point_to_point(arguments) ? ++transfers_ : 0;
  }

 protected:
  ~CommunicatorGate() = default;

  /// An operation that has to look begins to.
  struct Look {
    std::uint64_t before, arrivals;
  };
  [[nodiscard]] Look look() const noexcept { return {quiet_since_.before(), arrivals_->so_far()}; }
  void found_nobody(Look since) noexcept {
    quiet_since_.found_nobody(since.before, since.arrivals);
  }
  /// From here on it is over, for that reason too: an operation that was opened before is found
  /// open, or will see this. The reasons before.
  std::uint32_t is_over_by(std::uint32_t why) noexcept {
    quiet_since_.no_more();  // first: who sees that it is over is not passed over any more
    const std::uint32_t before = over_.fetch_or(why);
    if ((before & why) == 0) engine::asymmetric_fence_heavy();
    return before;
  }

  std::atomic<std::uint32_t> over_{0};  // of these

 private:
  std::atomic<std::uint64_t> transfers_{0};
  engine::QuietSince quiet_since_;
  const engine::Arrivals* const arrivals_;

 public:
  engine::Numbering collectives;
};

}  // namespace ringmain::collective::detail
