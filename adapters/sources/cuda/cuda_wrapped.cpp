// What happens when a call goes through the wrapper? Its thread enters it in the guard as its
// outermost call, so that what CUPTI tells of the calls within is not told again; asks on
// `cuda.call_begin`; and publishes at its edges what the source publishes of a call that CUPTI
// tells of.
//
// The thread is not in the Presence while CUDA has the call, so that nobody waits for it: the
// attachment may be gone when it returns, which the number of it tells.
#include <cerrno>
#include <optional>

#include "bus/in_subscriber.hpp"

#include "adapters/sources/cuda/cuda_arguments.hpp"
#include "adapters/sources/cuda/cuda_callback.hpp"
#include "adapters/sources/cuda/cuda_edge.hpp"
#include "adapters/sources/cuda/cuda_functions.hpp"
#include "adapters/sources/cuda/cuda_sites.hpp"

namespace ringmain::cuda::detail {
namespace {

constexpr std::int32_t kMemoryAllocation = 2, kNotPermitted = 800;  // cudaError_t

/// What a program gets for a call that is refused. Programs know what to do without memory.
std::int32_t refusal_of(CallKind kind) noexcept {
  return kind == CallKind::memory_allocation ? kMemoryAllocation : kNotPermitted;
}
bool releases_nothing(CallKind kind, const Arguments& given) noexcept {
  return kind == CallKind::memory_deallocation && given.handle == 0;
}

/// Leaves the source's part of a call alone, and errno as it is.
template <class F>
void inside(F what) noexcept {
  const int kept = errno;
  if (switchboard.presence.enter()) {
    Attachment* const to = switchboard.wrapped;
    if (to != nullptr && !to->forked()) what(*to);
    switchboard.presence.leave();
  }
  errno = kept;
}

}  // namespace

/// What is told of a call while its attachment is there.
struct WrappedCall::Telling {
  WrappedCall& wrapped;
  Attachment& to;
  const CallRow& row = call_rows()[wrapped.place_];

  [[nodiscard]] abi::CallData at(abi::Site site, const CallUnderWay& call) const noexcept {
    return {.site = site,
            .function = nullptr,
            .params = wrapped.params_,
            .result = site == abi::kExit ? &wrapped.result_ : nullptr,
            .symbol = nullptr,
            .context = call.context,
            .context_uid = call.context_uid,
            .correlation_data = &wrapped.slot_,
            .correlation_id = 0};
  }

  /// False: it is refused, and that was told.
  bool begin() noexcept {
    threads_guard.enter_wrapped(row, to.number, wrapped.slot_);
    wrapped.number_ = to.number;
    wrapped.entered_ = true;
    CallUnderWay& call = threads_guard.call();
    const bool muted = !to.options.own && in_subscriber();
    if (!muted) call.device = current_device(wrapped.get_device_);
    const abi::CallData data = at(abi::kEnter, call);
    if (!muted && to.channel<CallBegin>().wanted()) {
      const Arguments given = read_arguments(row, data.params, false);
      const PublishResult answer = ask(call, given);
      if (answer.code == PublishCode::vetoed) {
        refuse(given, answer.why);
        return false;
      }
    }
    on_entry(to, threads_guard, data);
    return true;
  }

  PublishResult ask(CallUnderWay& call, const Arguments& given) noexcept {
    if (releases_nothing(row.call.kind, given)) return {};
    CallBegin event;
    event.handle = given.handle;
    event.bytes = given.bytes;
    event.stream = given.stream;
    event.correlation = correlation_of(call, 0);
    event.flags = given.flags;
    event.priority = given.priority;
    event.device = call.device;
    event.thread = static_cast<std::int32_t>(run::this_tid());
    event.api = to.names[wrapped.place_];
    event.cbid = row.cbid;
    event.kind = row.call.kind;
    event.memory = row.call.memory;
    const Aside aside(threads_guard);
    return to.channel<CallBegin>().publish(event);
  }

  void refuse(const Arguments& given, Name why) noexcept {
    wrapped.result_ = refusal_of(row.call.kind);
    wrapped.entered_ = false;
    std::optional<CallUnderWay> call = threads_guard.leave(wrapped.slot_, wrapped.number_);
    if (!call) return;
    call->refused = call->told = true;
    on_exit(to, threads_guard, *call, at(abi::kExit, *call));
    if (!to.channel<CallRefused>().wanted()) return;
    CallRefused event;
    event.handle = given.handle;
    event.bytes = given.bytes;
    event.correlation = call->correlation;
    event.result = wrapped.result_;
    event.device = call->device;
    event.thread = static_cast<std::int32_t>(run::this_tid());
    event.api = to.names[wrapped.place_];
    event.reason = why;
    event.cbid = row.cbid;
    event.kind = row.call.kind;
    event.memory = row.call.memory;
    publish_made_by<CallRefused>(to, threads_guard, [&event]() noexcept { return event; });
  }
};

AnyFunction* WrappedCall::begin() noexcept {
  bool is_made = true;
  if ((attended_kinds & bit_of(call_rows()[place_].call.kind)) != 0)
    inside([&](Attachment& to) noexcept { is_made = Telling{*this, to}.begin(); });
  if (!is_made) return nullptr;
  const int kept = errno;
  AnyFunction* const function = function_of(place_, linked_);
  if (function == nullptr) end(result_ = why_no_function());
  errno = kept;
  return function;
}

void WrappedCall::end(std::int32_t result) noexcept {
  if (!entered_) return;
  entered_ = false;
  result_ = result;
  std::optional<CallUnderWay> call = threads_guard.leave(slot_, number_);
  if (!call) return;  // another source was attached meanwhile, and heard what CUPTI tells
  inside([&](Attachment& to) noexcept {
    if (to.number == number_)
      on_exit(to, threads_guard, *call, Telling{*this, to}.at(abi::kExit, *call));
  });
}

void WrappedCall::abandon() noexcept {
  entered_ = false;
  (void)threads_guard.leave(slot_, number_);
}

}  // namespace ringmain::cuda::detail
