#include "adapters/sources/cuda/cuda_control.hpp"

#include <memory>
#include <new>
#include <utility>

#include "bus/in_subscriber.hpp"

#include "adapters/launch/channel_of.hpp"
#include "adapters/sources/cuda/cuda_callback.hpp"
#include "adapters/sources/cuda/cuda_ending.hpp"
#include "adapters/sources/cuda/cuda_functions.hpp"

namespace ringmain::cuda {
namespace {

constexpr std::string_view kNotEnded =
    "CUPTI did not end the subscription, so that its place may stay taken";

// This thread holds `turn_` of its process's Control.
constinit thread_local bool has_turn __attribute__((tls_model("initial-exec"))) = false;

/// Or in what CUPTI calls while it is asked: the driver loads tools when it is started.
bool in_callback() noexcept {
  return has_turn || in_subscriber() || switchboard.presence.inside();
}

/// `by` is of one thread at a time. After the last words, which leave() says when who was inside
/// has left, there are no others.
void say(Attachment& from, Publisher<SourceNotice>& by, const SourceNotice& notice) noexcept {
  const bool inside = switchboard.presence.enter();
  if (from.epoch != Attachment::kLeft) (void)by.publish(notice);  // the bus counts what it refuses
  if (inside) switchboard.presence.leave();
}
/// Under `turn_`.
void say(Attachment& from, const SourceNotice& notice) noexcept {
  say(from, from.words, notice);
}

/// On a bus whose source could not be made.
Error unavailable(Bus& bus, Error error, SourceNotice notice) {
  notice.state = SourceState::unavailable;
  notice.reason = std::string_view(error.message);
  if (const auto channel = run::channel_of<SourceNotice>(bus))
    (void)channel.value()->publish(notice);
  return error;
}

/// CUPTI, or nothing of it where that is not asked.
Result<const Cupti*> cupti_of(const Options& options) {
  static const Cupti none;
  if (options.wrapped_only) return &none;
  return Cupti::open(options.cupti);
}

/// `bus` asks, and a source is attached. Buses without a name of their own share one.
Error there_already(const Attachment& there, const Bus& bus) {
  return {Error::Code::conflict,
          "this process's CUDA calls are published on " +
              (&there.bus == &bus ? "this bus" : "another bus, '" + there.bus_name + "',") +
              " already: subscribe there, or detach its source first"};
}

/// Why there is not the room that was asked for, or "": the table is the process's, made once.
std::string other_room(const Handles& handles, const Options& options) {
  if (handles.room() == options.handles) return "";
  return "generations are kept of " + std::to_string(handles.room()) + " handles and not of " +
         std::to_string(options.handles) + ", as the first source of this process asked for that";
}
}  // namespace

Control& Control::instance() {
  // Nothing guards it: a child that is forked while another thread makes it would wait for ever.
  static constinit std::atomic<Control*> made{nullptr};
  Control* found = made;
  if (found != nullptr && (!found->forked() || found->used_)) return *found;
  if (found != nullptr) engine::keep_from_before_fork(found);
  auto mine = std::make_unique<Control>();
  if (!made.compare_exchange_strong(found, mine.get())) return *found;  // another thread's
  return *mine.release();
}

std::optional<Error> Control::refusal() const {
  if (forked()) {
    return Error{Error::Code::refused,
                 "CUPTI does not survive a fork: a child of a process that had a source of CUDA's "
                 "calls cannot have one; start it by exec"};
  }
  if (in_callback()) {
    return Error{Error::Code::refused,
                 "the source of CUDA's calls is not attached, lent or taken back inside a "
                 "callback, or while this thread does so already; do it in a thread of the "
                 "program's"};
  }
  if (ending.begun()) return too_late();
  return std::nullopt;
}

Control::Turn::Turn(Control& control) : control_(control) {
  control.turn_.lock();
  has_turn = true;
  control.tend();
}
Control::Turn::~Turn() {
  has_turn = false;
  control_.turn_.unlock();
  control_.tend_if_nobody_does();
}

/// Under `turn_`.
void Control::tell_refusal() noexcept {
  Held to;
  Refusal told;
  {
    const std::lock_guard asking(asking_);
    if (!std::exchange(refusal_is_news_, false)) return;
    to = current_;
    told = told_refusal_;
  }
  if (!to || to->state != SourceState::attached) return;
  SourceNotice notice = notice_of(*to, SourceState::attached);
  notice.result = told.answer;
  try {
    notice.reason = std::string_view(told.text(to->cupti));
  } catch (const std::bad_alloc&) {  // the answer says it as well
  }
  say(*to, notice);
}

Result<Control::Held> Control::attach(Bus& bus, const Options& options) {
  SourceNotice notice;
  if (auto error = refusal()) return unavailable(bus, std::move(*error), notice);
  if (auto error = options.fault()) return unavailable(bus, std::move(*error), notice);
  used_ = true;
  const Turn turn(*this);
  if (current_) return unavailable(bus, there_already(*current_, bus), notice);
  const auto cupti = cupti_of(options);
  if (!cupti) return unavailable(bus, cupti.error(), notice);
  notice.cupti = cupti.value()->version;
  if (!handles_) handles_ = std::make_unique<Handles>(options.handles);
  auto made = Attachment::make(bus, options, *cupti.value(), *handles_);
  if (!made) return unavailable(bus, made.error(), notice);
  const Held held = made.value();
  held->number = ++attachments_ & 0xfffff;  // as the guard's tags have it
  if (held->warning.empty()) held->warning = other_room(*handles_, options);
  try {
    std::unique_lock asking(asking_);
    const auto done = options.wrapped_only ? Result<bool>(true) : subscribe(*held, notice);
    if (options.wrapped_only) held->state = SourceState::attached;
    if (done) become(held);
    if (done) hear_wrapped(*held);
    asking.unlock();
    if (!done) return unavailable(bus, done.error(), notice);
    follow_interest(held);
  } catch (...) {
    let_go(held);  // callbacks know of it already, and nobody else would end it
    throw;
  }
  if (held->state != SourceState::attached) return held;  // it is lost already, which was said
  SourceNotice attached = notice_of(*held, SourceState::attached);
  attached.result = notice.result;
  attached.reason =
      std::string_view(held->warning.empty() ? cupti.value()->warning : held->warning);
  say(*held, attached);
  return held;
}

/// What the bus tells of interest is looked up anew, under the lock: the last look is the newest.
void Control::follow_interest(const Held& which) {
  interest_ = which->bus.on_interest("cuda.*",
                                     [this, which](std::string_view, Interest) {
                                       look(which, true);
                                       tend_if_nobody_does();
                                     },
                                     {.name = "cuda source"});
  looks_ = which->on_interest_in_source([this, which](Interest) { look(which, false); }, true);
}

/// Is it lost? If not, and interest has changed, that is served.
void Control::look(const Held& which, bool changed) noexcept {
  SourceNotice notice;
  bool lost = false;
  {
    std::unique_lock asking(asking_, std::defer_lock);
    if (changed)
      asking.lock();
    else if (!asking.try_lock())
      return;  // somebody asks just now
    if (current_ != which) return;
    if (changed) attend_to_wrapped(*which);
    if (switchboard.to != which.get()) return;
    lost = is_lost(*which, notice);
    if (!lost && changed) serve_interest(*which);
  }
  if (lost) say(*which, which->last_words, notice);
}

/// Under `turn_`. Afterwards no callback knows of it.
void Control::let_go(const Held& which) noexcept {
  SourceNotice notice;
  bool lost = false;
  abi::Result answer = abi::kSuccess;
  {
    const std::lock_guard asking(asking_);
    lost = is_lost(*which, notice);
    answer = unsubscribe(*which);
    switchboard.wrapped = nullptr;
    attend_to(wrapped_ = 0);
    if (current_ == which) become(nullptr);
  }
  (void)interest_.reset();  // not under `asking_`, which what they call takes
  (void)looks_.reset();
  (void)switchboard.presence.wait_until_none(-1);
  if (lost) say(*which, notice);
  which->state = SourceState::detached;
  SourceNotice detached = notice_of(*which, SourceState::detached);
  detached.result = answer;
  if (answer != abi::kSuccess) detached.reason = kNotEnded;
  say(*which, detached);
}

Detached Control::detach(const Held& which) noexcept {
  if (!which || forked()) return Detached::was_not_attached;
  const bool first = !which->ended.exchange(true);
  if (in_callback()) {
    if (!first) return Detached::was_not_attached;
    Attachment* mine = which.get();
    switchboard.to.compare_exchange_strong(mine, nullptr);
    mine = which.get();
    switchboard.wrapped.compare_exchange_strong(mine, nullptr);
    finish_later(which);
    return Detached::deferred;
  }
  const Turn turn(*this);  // what was left of a detach() inside a callback is done here
  if (current_ == which) let_go(which);
  return first ? Detached::done : Detached::was_not_attached;
}

/// Waits for no lock, and `words` belongs to who has the turn: so this is said by the thread's own
/// lane.
Detached Control::leave(const Held& which, nanoseconds limit) noexcept {
  if (!which || forked() || which->ended.exchange(true)) return Detached::was_not_attached;
  which->epoch = Attachment::kLeft;  // a take_back() under way does not change that
  Attachment* mine = which.get();
  switchboard.to.compare_exchange_strong(mine, nullptr);  // and CUPTI is asked for nothing
  mine = which.get();
  switchboard.wrapped.compare_exchange_strong(mine, nullptr);
  const bool none =
      switchboard.presence.wait_until_none(limit.count()) == engine::Presence::Waited::none_inside;
  which->state = SourceState::detached;
  SourceNotice last = notice_of(*which, SourceState::detached);
  if (!none)
    last.reason = std::string_view("calls whose events were still being published are not counted");
  (void)which->channel<SourceNotice>().publish(last);
  return none ? Detached::done : Detached::timeout;
}

/// Its own thread cannot wait, so the bus's housekeeper is asked to: it tells each newcomer of the
/// interest as it is. Where there is none, the next call that takes its turn does it.
void Control::finish_later(const Held& which) noexcept {
  to_finish_ = true;
  try {
    Subscription waker =
        which->on_interest_in_source([this](Interest) noexcept { tend_if_nobody_does(); });
    const std::lock_guard lock(later_);
    wakers_.push_back(std::move(waker));
  } catch (const std::bad_alloc&) {
    // It is ended already; its place at CUPTI's is given up by the next call that takes its turn.
  }
}

/// Under `turn_`: finishes what was ended inside callbacks, tells what CUPTI refused, and once more
/// what comes meanwhile.
void Control::tend() noexcept {
  while (to_finish_.exchange(false)) {
    std::vector<Subscription> done;  // those who were to see to it need not any more
    {
      const std::lock_guard lock(later_);
      done.swap(wakers_);
    }
    if (const Held ended = current_; ended && ended->ended) let_go(ended);
    tell_refusal();
  }
}
void Control::tend_if_nobody_does() noexcept {
  while (to_finish_) {
    std::unique_lock turn(turn_, std::try_to_lock);
    if (!turn.owns_lock()) return;  // who has it looks again before it gives it up
    has_turn = true;
    tend();
    has_turn = false;
  }
}

Result<bool> Control::lend(const Held& which, std::string_view to) {
  if (auto error = refusal()) return std::move(*error);
  if (!which || which->options.wrapped_only) return false;
  if (which->options.hold) {
    return Error{Error::Code::refused,
                 "the source keeps CUPTI, as its option 'hold' says: leave that out to lend it"};
  }
  const Turn turn(*this);
  if (current_ != which || which->state != SourceState::attached) return false;
  SourceNotice notice;
  bool lost = false;
  bool is_lent = false;
  abi::Result answer = abi::kSuccess;
  {
    const std::lock_guard asking(asking_);
    lost = is_lost(*which, notice);
    if (!lost) answer = unsubscribe(*which);
    SourceState attached = SourceState::attached;
    if (answer != abi::kSuccess)
      lost = is_dead(*which, notice);
    else if (!lost)
      is_lent = which->state.compare_exchange_strong(attached, SourceState::lent);
  }
  (void)switchboard.presence.wait_until_none(-1);
  if (lost) say(*which, notice);
  if (which->state != (is_lent ? SourceState::lent : SourceState::attached)) return false;
  if (!is_lent) {
    SourceNotice kept = notice_of(*which, SourceState::attached);
    kept.result = answer;
    kept.reason = kNotEnded;
    say(*which, kept);
    return Error{Error::Code::refused,
                 "the source is not lent and goes on, as CUPTI does not let "
                 "go of it: it answers " +
                     which->cupti.text_of(answer) + "; try again"};
  }
  SourceNotice lent = notice_of(*which, SourceState::lent);
  lent.owner = Name(to);
  say(*which, lent);
  return true;
}

Result<bool> Control::take_back(const Held& which) {
  if (auto error = refusal()) return std::move(*error);
  if (!which) return false;
  const Turn turn(*this);
  if (current_ != which || which->state != SourceState::lent) return false;
  SourceNotice answer;
  {
    const std::lock_guard asking(asking_);
    which->warning.clear();
    const auto done = subscribe(*which, answer);
    if (!done && answer.result != abi::kMultipleSubscribers) return done.error();
    if (!done || !done.value()) return false;
  }
  if (which->state != SourceState::attached) return false;  // it is lost already, which was said
  SourceNotice attached = notice_of(*which, SourceState::attached);
  attached.result = answer.result;
  attached.reason = std::string_view(which->warning);
  say(*which, attached);
  return true;
}

SourceState Control::state(const Held& which) noexcept {
  if (!which) return SourceState::detached;
  if (forked() || in_callback()) return which->state;
  SourceNotice notice;
  std::unique_lock asking(asking_, std::try_to_lock);
  const bool lost = asking.owns_lock() && current_ == which &&
                    which->state == SourceState::attached && is_lost(*which, notice);
  if (asking.owns_lock()) asking.unlock();
  if (lost) say(*which, which->last_words, notice);
  return which->state;
}

Control::Held Control::current() noexcept {
  if (forked()) return nullptr;
  const std::lock_guard naming(naming_);
  return current_;
}

/// Under `turn_` and `asking_`, so that those who hold either need no other to read it.
void Control::become(Held now) noexcept {
  const std::lock_guard naming(naming_);
  current_.swap(now);
}

}  // namespace ringmain::cuda
