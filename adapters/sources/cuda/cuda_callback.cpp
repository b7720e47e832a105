#include "adapters/sources/cuda/cuda_callback.hpp"

#include <cerrno>
#include <cstddef>
#include <string_view>

#include "adapters/sources/cuda/cuda_own_call.hpp"
#include "adapters/sources/cuda/cuda_sites.hpp"

namespace ringmain::cuda {

constinit Switchboard switchboard;
constinit thread_local Guard threads_guard;
constinit thread_local std::uint32_t own_calls = 0;

namespace {

/// A sentence of CUPTI's, as far as it goes.
std::string_view text_of(const char* message) noexcept {
  return message == nullptr ? std::string_view("CUPTI has met a fatal error") : message;
}

/// The wrapper does not know in which context its call is: those that it makes tell it.
void tell_context(CallUnderWay& call, const abi::CallData& data) noexcept {
  if (data.context == nullptr) return;
  call.context = data.context;
  call.context_uid = data.context_uid;
}

void on_call(Attachment& to, abi::Domain domain, std::uint32_t cbid,
             const abi::CallData& data) noexcept {
  if (data.correlation_data == nullptr) return;  // its exit could not be told from others
  if (data.site == abi::kExit) {
    if (CallUnderWay* const made_by = threads_guard.wrapped(to.hearer()))
      tell_context(*made_by, data);
    if (auto ended = threads_guard.leave(*data.correlation_data, to.hearer()))
      on_exit(to, threads_guard, *ended, data);
    return;
  }
  if (data.site != abi::kEnter) return;
  const auto in = static_cast<CallDomain>(domain);
  const CallRow* const row = call_of(in, cbid, to.cupti.version);
  if (row == nullptr) return;
  const auto place = static_cast<std::size_t>(row - call_rows().data());
  const std::uint32_t turns = to.switches[place].look();
  if (!Switch::on(turns)) return;  // nobody needs it
  threads_guard.enter(*row, turns, to.hearer(), *data.correlation_data);
  if (threads_guard.outermost()) on_entry(to, threads_guard, data);
  if (CallUnderWay* const made_by = threads_guard.wrapped(to.hearer()))
    tell_context(*made_by, data);
}

/// CUPTI has ended itself: it tells of nothing more, and nobody else would say so.
void on_state(Attachment& to, std::uint32_t cbid, const abi::StateData& data) noexcept {
  if (cbid != abi::kFatalError) return;
  SourceState attached = SourceState::attached;
  if (!to.state.compare_exchange_strong(attached, SourceState::lost)) return;
  switchboard.to = nullptr;
  SourceNotice notice = notice_of(to, SourceState::lost);
  notice.result = data.result;
  notice.reason = text_of(data.message);
  (void)to.last_words.publish(notice);  // refused where the bus has stopped: nobody hears it there
}

void tell(Attachment& to, abi::Domain domain, std::uint32_t cbid, const void* data) noexcept {
  switch (domain) {
    case abi::kDriver:
    case abi::kRuntime:
      return on_call(to, domain, cbid, *static_cast<const abi::CallData*>(data));
    case abi::kResource:
      if (cbid == abi::kContextCreated || cbid == abi::kContextDestroyStarting)
        on_context(to, threads_guard, cbid, *static_cast<const abi::ResourceData*>(data));
      return;
    case abi::kState:
      return on_state(to, cbid, *static_cast<const abi::StateData*>(data));
    default:
      return;
  }
}

}  // namespace

void on_callback(void* user_data, abi::Domain domain, std::uint32_t cbid,
                 const void* data) noexcept {
  if (data == nullptr || (switchboard.kinds == 0 && domain != abi::kState)) return;
  if (own_calls != 0 && domain != abi::kState) return;
  const int kept = errno;
  if (switchboard.presence.enter()) {
    Attachment* const to = switchboard.to;
    if (to != nullptr && !to->forked() &&
        to->epoch == static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(user_data))) {
      tell(*to, domain, cbid, data);
    }
    switchboard.presence.leave();
  }
  errno = kept;
}

SourceNotice notice_of(const Attachment& from, SourceState state) noexcept {
  SourceNotice notice;
  notice.published = from.tally.sum(Tally::published);
  notice.refused = from.tally.sum(Tally::refused);
  notice.suppressed = from.tally.sum(Tally::suppressed);
  notice.unkept = from.handles.unkept() - from.unkept_before;
  notice.cupti = from.cupti.version;
  notice.state = state;
  return notice;
}

}  // namespace ringmain::cuda
