// How do sources below a backend's call find its operation, and say its end where it does not?
#pragma once
#include <cstdint>
#include <optional>

#include "collective_current.hpp"
#include "collective_ledger.hpp"

namespace ringmain::collective::detail {

/// The thread of a backend's call, marked with its operation. Lives in one thread.
class CallMark {
 public:
  /// `asks`: those inside may promise to say its end, which this one will not see.
  void set(const Ledger& ledger, std::uint64_t op_id, bool asks) noexcept {
    inside_.emplace(ledger, op_id);
    if (asks) asking_.emplace(op_id);
  }
  void take_away() noexcept {
    promised_ = promised_ || (asking_ && asking_->end_is_promised());
    asking_.reset();
    inside_.reset();
  }
  /// Has one of them, until it was taken away?
  [[nodiscard]] bool is_promised() const noexcept { return promised_; }

 private:
  std::optional<Ledger::Inside> inside_;
  std::optional<CurrentOperation> asking_;  // destroyed first
  bool promised_ = false;
};

}  // namespace ringmain::collective::detail
