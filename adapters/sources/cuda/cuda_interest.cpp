#include "adapters/sources/cuda/cuda_interest.hpp"

#include "adapters/sources/cuda/cuda_callback.hpp"

namespace ringmain::cuda {
namespace {

constexpr Kinds kWithContexts = kOfEvents | kOfStreams | kOfMemory;

}  // namespace

void forget_what_was_missed(Kinds before, Kinds now, Handles& handles) noexcept {
  const auto begins = [&](CallKind made) {
    return (before & bit_of(made)) == 0 && (now & bit_of(made)) != 0;
  };
  if (begins(CallKind::event_creation)) handles.forget(HandleClass::event);
  if (begins(CallKind::stream_creation)) handles.forget(HandleClass::stream);
  if (!begins(CallKind::memory_allocation)) return;
  handles.forget(HandleClass::memory);
  handles.forget(HandleClass::host_memory);
  handles.forget(HandleClass::array);
}

std::string Refusal::text(const Cupti& cupti) const {
  if (calls == 0 && answer == abi::kSuccess) return "CUPTI tells of all calls that are listened to";
  const std::string what =
      calls == 0 ? "all calls are told of, but contexts and CUPTI's own end perhaps not"
                 : std::to_string(calls) + (calls == 1 ? " call" : " calls") + " cannot be told of";
  return what + ": CUPTI answers " + cupti.text_of(answer);
}

abi::Result Enabled::switch_calls(Kinds needed, Attachment& to, abi::Subscriber subscriber) {
  abi::Result result = abi::kSuccess;
  refused_ = accepted_ = 0;
  for (std::size_t i = 0; i < call_rows().size(); ++i) {
    const CallRow& row = call_rows()[i];
    Switch& here = to.switches[i];
    const bool asked = !to.options.driver_only || row.domain == CallDomain::driver;
    const bool wanted = asked && (needed & bit_of(row.call.kind)) != 0 &&
                        row.since <= to.cupti.version && to.cupti.version < row.until;
    if (wanted == here.on()) continue;
    here.turn();
    if (!wanted || told_[i]) continue;
    const abi::Result answer =
        to.cupti.enable_callback(1, subscriber, static_cast<abi::Domain>(row.domain), row.cbid);
    told_[i] = answer == abi::kSuccess;
    if (told_[i]) {
      ++accepted_;
      continue;
    }
    result = answer;
    here.turn();
    ++refused_;
  }
  return result;
}

abi::Result Enabled::tell_contexts(Attachment& to, abi::Subscriber subscriber) {
  abi::Result result = abi::kSuccess;
  for (const std::uint32_t cbid : {abi::kContextCreated, abi::kContextDestroyStarting}) {
    const abi::Result answer = to.cupti.enable_callback(1, subscriber, abi::kResource, cbid);
    if (answer != abi::kSuccess) result = answer;
  }
  contexts_ = result == abi::kSuccess;
  return result;
}

abi::Result Enabled::serve(Kinds heard, Attachment& to, abi::Subscriber subscriber) {
  const Kinds needed = needed_for(heard);
  abi::Result result = abi::kSuccess;
  if (!states_) {
    result = to.cupti.enable_callback(1, subscriber, abi::kState, abi::kFatalError);
    states_ = result == abi::kSuccess;
  }
  const bool contexts = !contexts_ && (needed & (kWithContexts | bit_of(CallKind::context))) != 0;
  if (needed == needed_ && !contexts && refused_ == 0)
    return result;  // what was refused is asked for again
  forget_what_was_missed(needed_, needed, to.handles);
  if (const abi::Result answer =
          contexts ? tell_contexts(to, subscriber) : abi::Result{abi::kSuccess};
      answer != abi::kSuccess)
    result = answer;
  if (const abi::Result answer = switch_calls(needed, to, subscriber); answer != abi::kSuccess)
    result = answer;
  needed_ = needed;
  switchboard.kinds = needed;
  return result;
}

void Enabled::ended(Attachment& to) {
  for (Switch& each : to.switches) {
    if (each.on()) each.turn();
  }
  switchboard.kinds = 0;
  *this = {};
}

bool Enabled::forgotten(const Attachment& to, abi::Subscriber subscriber, abi::Result& why) const {
  unsigned asked = 0;
  const auto tells_still = [&](abi::Domain domain, std::uint32_t cbid) {
    std::uint32_t on = 0;
    const abi::Result answer = to.cupti.callback_state(&on, subscriber, domain, cbid);
    if (++asked == 1) why = answer;
    return answer == abi::kSuccess && on != 0;
  };
  for (std::size_t i = 0; i < call_rows().size(); ++i) {
    if (!to.switches[i].on()) continue;
    const CallRow& row = call_rows()[i];
    if (tells_still(static_cast<abi::Domain>(row.domain), row.cbid)) return false;
  }
  // Twice, where it is all that there is to ask for.
  for (int i = asked == 0 ? 2 : 1; states_ && i > 0; --i) {
    if (tells_still(abi::kState, abi::kFatalError)) return false;
  }
  return asked > 1;
}

}  // namespace ringmain::cuda
