// Who attaches, detaches, lends and asks? One object for the process, which is never destroyed, as
// calls and static objects may come while the process ends.
//
// Two locks. `turn_` is held through a whole attach(), detach(), lend() or take_back(), also while
// it waits for callbacks; none of these is called inside callbacks, or by what CUPTI itself calls
// in a turn (the driver may load tools then), so nobody waits for himself.
// `asking_` is held while CUPTI is asked for calls, which the bus's housekeeper does as well when
// interest changes. No callback takes either, and nothing is published under `asking_`.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/system/fork.hpp"

#include "bus/bus.hpp"

#include "adapters/sources/cuda/cuda_attachment.hpp"
#include "adapters/sources/cuda/cuda_interest.hpp"
#include "adapters/sources/cuda/cuda_options.hpp"

namespace ringmain::cuda {

class Control final : public engine::Born {
 public:
  using Held = std::shared_ptr<Attachment>;

  /// In a forked child a new one, unless its process had a source: then that one, which is inert.
  static Control& instance();

  // As the calls of Source.
  Result<Held> attach(Bus& bus, const Options& options);
  Detached detach(const Held& which) noexcept;
  Detached leave(const Held& which, nanoseconds limit) noexcept;
  Result<bool> lend(const Held& which, std::string_view to);
  Result<bool> take_back(const Held& which);
  SourceState state(const Held& which) noexcept;
  /// The gate of that row becomes what it is to be; not while another thread has the lock.
  void try_settle_gate(std::size_t place) noexcept;
  void settle_gate_now(std::size_t place);
  /// The attachment of the process, if there is one.
  [[nodiscard]] Held current() noexcept;

 private:
  /// Why a call is refused where it is made, or nothing.
  [[nodiscard]] std::optional<Error> refusal() const;
  Result<bool> subscribe(Attachment& to, SourceNotice& notice);
  bool end_what_was_left(const Cupti& cupti, std::string_view owner) noexcept;
  std::optional<Error> ask_for_calls(Attachment& to, SourceNotice& notice);
  abi::Result unsubscribe(Attachment& from, bool dead = false) noexcept;
  void hear(Attachment& to) noexcept;
  void hear_wrapped(Attachment& to) noexcept;
  void attend_to_wrapped(Attachment& to) noexcept;
  void serve_interest(Attachment& to) noexcept;
  void tell_refusal() noexcept;
  void let_go(const Held& which) noexcept;
  void follow_interest(const Held& which);
  void look(const Held& which, bool changed) noexcept;
  /// Holds `turn_`, and does before and afterwards what was left to be done.
  class Turn {
   public:
    explicit Turn(Control& control);
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    ~Turn();

   private:
    Control& control_;
  };
  void tend() noexcept;
  void tend_if_nobody_does() noexcept;
  void finish_later(const Held& which) noexcept;
  [[nodiscard]] bool is_lost(Attachment& at, SourceNotice& notice) noexcept;
  [[nodiscard]] bool is_dead(Attachment& at, SourceNotice& notice) noexcept;
  void become(Held now) noexcept;

  std::atomic<bool> used_{false};
  std::mutex turn_;
  std::mutex asking_;  // of what is below
  std::mutex naming_;  // of current_ once more, for those who only read it: held for a moment only
  Held current_;
  abi::Subscriber subscriber_ = nullptr;  // nullptr: none
  abi::Subscriber left_ = nullptr;        // of an earlier one, which CUPTI may have still
  bool answers_ = true;  // else CUPTI denied right away what it had been asked for: it says nothing
  Enabled enabled_;
  Kinds wrapped_ = 0;             // what the wrapper's calls are needed for
  Refusal told_refusal_;          // what was said of it last, or is to be said
  bool refusal_is_news_ = false;  // it is to be said, by who has the turn
  Subscription interest_;
  Subscription looks_;  // after it in the housekeeper's rounds
  std::uint32_t epochs_ = 0;
  std::uint32_t attachments_ = 0;     // so far; under `turn_`
  std::unique_ptr<Handles> handles_;  // made once; generations never come twice in a process

  std::atomic<bool> to_finish_{false};
  std::mutex later_;  // of wakers_; held for a moment only
  std::vector<Subscription> wakers_;
};

}  // namespace ringmain::cuda
