// What does the control ask of CUPTI? All of it under its lock `asking_`, and nothing is published
// here.
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "adapters/sources/cuda/cuda_callback.hpp"
#include "adapters/sources/cuda/cuda_control.hpp"
#include "adapters/sources/cuda/cuda_ending.hpp"
#include "adapters/sources/cuda/cuda_functions.hpp"

namespace ringmain::cuda {
namespace {

/// What CUPTI answers when it is asked about this subscription.
abi::Result answer_about(abi::Subscriber subscriber, const Cupti& cupti) noexcept {
  std::uint32_t on = 0;
  return cupti.callback_state(&on, subscriber, abi::kState, abi::kFatalError);
}

SourceNotice loss_of(const Attachment& at, abi::Result why) noexcept {
  SourceNotice notice = notice_of(at, SourceState::lost);
  notice.result = why;
  notice.reason =
      std::string_view("CUPTI no longer tells of calls: another tool has ended it (cuptiFinalize)");
  return notice;
}

}  // namespace

/// From here on calls are published, those that are heard at this moment. False: it was ended
/// meanwhile, by leave() or in a callback, which wait for no lock.
Result<bool> Control::subscribe(Attachment& to, SourceNotice& notice) {
  const Ending::Asking may(ending);
  if (!may) return too_late();
  const std::uint32_t epoch = ++epochs_;
  std::uint32_t last = to.epoch;
  SourceState before = to.state;
  if (last == Attachment::kLeft || !to.epoch.compare_exchange_strong(last, epoch)) return false;
  std::string owner;
  auto* const user_data = reinterpret_cast<void*>(static_cast<std::uintptr_t>(epoch));
  auto place = to.cupti.subscribe(&on_callback, user_data, &owner, &notice.result);
  if (notice.result == abi::kMultipleSubscribers && end_what_was_left(to.cupti, owner))
    place = to.cupti.subscribe(&on_callback, user_data, &owner, &notice.result);
  notice.owner = Name(owner);
  if (!place) return place.error();
  subscriber_ = place.value();
  ending.watch_for();
  to.state.compare_exchange_strong(before, SourceState::attached);
  if (auto error = ask_for_calls(to, notice)) {
    SourceState attached = SourceState::attached;
    to.state.compare_exchange_strong(attached, before);
    return std::move(*error);
  }
  return to.epoch == epoch && !to.ended;
}

/// An Error: its place is given up again.
std::optional<Error> Control::ask_for_calls(Attachment& to, SourceNotice& notice) {
  const bool answered = answer_about(subscriber_, to.cupti) == abi::kSuccess;
  hear(to);
  const abi::Result answer = enabled_.serve(to.heard(), to, subscriber_);
  abi::Result denial = abi::kSuccess;
  answers_ = !enabled_.forgotten(to, subscriber_, denial);
  const bool dead = answered && !answers_ && denial != abi::kSuccess;
  if (dead || enabled_.refused_all()) {
    notice.result = dead ? denial : answer;
    (void)unsubscribe(to, dead);
    if (dead) {
      return Error{Error::Code::conflict,
                   "CUDA is not heard, as another tool ended CUPTI (cuptiFinalize) while calls "
                   "were asked of it: try again"};
    }
    return Error{Error::Code::refused, "CUPTI tells of no call: it answers " +
                                           to.cupti.text_of(answer) +
                                           "; look whether this user may trace"};
  }
  if (answer == abi::kSuccess) return std::nullopt;
  notice.result = answer;
  told_refusal_ = {enabled_.refused(), answer};
  to.warning = told_refusal_.text(to.cupti);
  return std::nullopt;
}

/// Calls are published from now on, unless a callback has ended it, which says so before it looks
/// whether they are: one of the two sees the other.
void Control::hear(Attachment& to) noexcept {
  switchboard.to = &to;
  if (to.ended) switchboard.to = nullptr;
}

/// The same of calls through the wrapper, which go on being published while CUPTI is lent or lost.
void Control::hear_wrapped(Attachment& to) noexcept {
  switchboard.wrapped = &to;
  if (to.ended) switchboard.wrapped = nullptr;
  attend_to_wrapped(to);
}

void Control::attend_to_wrapped(Attachment& to) noexcept {
  const Kinds needed = needed_for(to.heard()) | (to.asked() ? kWrapped : Kinds{0});
  if (subscriber_ == nullptr)  // else that is done where CUPTI is asked for more
    forget_what_was_missed(wrapped_, needed, to.handles);
  wrapped_ = needed;
  attend_to(needed & kWrapped);
}

void Control::try_settle_gate(std::size_t place) noexcept {
  const std::unique_lock asking(asking_, std::try_to_lock);
  if (asking.owns_lock()) settle_gate(place);
}
void Control::settle_gate_now(std::size_t place) {
  const std::lock_guard asking(asking_);
  settle_gate(place);
}

/// What CUPTI is asked for becomes what is listened to.
void Control::serve_interest(Attachment& to) noexcept {
  const Ending::Asking may(ending);
  if (!may) return;
  const abi::Result answer = enabled_.serve(to.heard(), to, subscriber_);
  const Refusal now{enabled_.refused(), answer};
  if (now.calls == told_refusal_.calls &&
      (answer == abi::kSuccess || answer == told_refusal_.answer))
    return;
  told_refusal_ = now;
  refusal_is_news_ = true;
  to_finish_ = true;
}

/// Is it a subscription of ours that has the place, taken for lost by mistake? Another tool's may
/// have the same handle: it would name itself, or ask for other things.
bool Control::end_what_was_left(const Cupti& cupti, std::string_view owner) noexcept {
  if (left_ == nullptr || (!owner.empty() && owner != kOwnName)) return false;
  std::uint32_t on = 0;
  if (cupti.callback_state(&on, left_, abi::kState, abi::kFatalError) != abi::kSuccess || on == 0)
    return false;
  if (cupti.unsubscribe(left_) != abi::kSuccess) return false;
  left_ = nullptr;
  return true;
}

/// What is lost has no subscription any more: its handle is dead, or may be another tool's that
/// came since, and a call with it would start CUPTI anew.
///
/// Returns CUPTI's answer: refused, the place may stay taken, and nothing is published all the
/// same.
abi::Result Control::unsubscribe(Attachment& from, bool dead) noexcept {
  switchboard.to = nullptr;
  if (subscriber_ == nullptr) return abi::kSuccess;
  abi::Result answer = abi::kSuccess;
  const Ending::Asking may(ending);
  dead = dead || from.state == SourceState::lost;
  if (!dead && may) answer = from.cupti.unsubscribe(subscriber_);  // and what was enabled with it
  if (dead || answer != abi::kSuccess) left_ = subscriber_;
  enabled_.ended(from);
  told_refusal_ = {};
  subscriber_ = nullptr;
  return answer;
}

/// CUPTI refused to end the subscription, which goes on. As is_lost(): true if CUPTI answers
/// nothing more about it.
bool Control::is_dead(Attachment& at, SourceNotice& notice) noexcept {
  const Ending::Asking may(ending);
  const abi::Result answer =
      may && answers_ ? answer_about(left_, at.cupti) : abi::Result{abi::kSuccess};
  if (answer != abi::kSuccess) {
    SourceState attached = SourceState::attached;
    if (!at.state.compare_exchange_strong(attached, SourceState::lost)) return false;
    notice = loss_of(at, answer);
    return true;
  }
  subscriber_ = std::exchange(left_, nullptr);
  hear(at);
  serve_interest(at);
  return false;
}

/// CUPTI says nothing when another tool ends it; whoever finds it out publishes `notice` after he
/// has given up the lock, as hearers may ask for the source.
bool Control::is_lost(Attachment& at, SourceNotice& notice) noexcept {
  abi::Result why = abi::kSuccess;
  const Ending::Asking may(ending);
  if (!may || !answers_ || subscriber_ == nullptr || !enabled_.forgotten(at, subscriber_, why))
    return false;
  SourceState attached = SourceState::attached;
  if (!at.state.compare_exchange_strong(attached, SourceState::lost)) return false;
  switchboard.to = nullptr;
  notice = loss_of(at, why);
  return true;
}

}  // namespace ringmain::cuda
