// What happens when CUPTI tells of a call? The one function that it calls, at each call's entry and
// exit, in the program's thread and inside the call.
//
// No lock, no allocation after a thread's first event of a kind, no exception, no call of the
// vendor's but cuptiGetDeviceId until it has answered for a context. errno stays what it was. What
// callbacks look at first is never freed, so that one which comes late, also while the process
// ends, is harmless.
#pragma once
#include <atomic>
#include <cstdint>

#include "engine/system/presence.hpp"

#include "adapters/sources/cuda/cuda_attachment.hpp"
#include "adapters/sources/cuda/cupti_abi.hpp"

namespace ringmain::cuda {

/// The one of the process: CUPTI has one place for a subscriber. Written by the thread that holds
/// the source's lock.
struct Switchboard {
  engine::Presence presence;                  // threads that are in a callback
  std::atomic<Attachment*> to{nullptr};       // nullptr: calls are not published
  std::atomic<std::uint32_t> kinds{0};        // Kinds that are to be told; 0: look no further
  std::atomic<Attachment*> wrapped{nullptr};  // nullptr: nor are those through the wrapper
};
extern constinit Switchboard switchboard;
/// This thread's. In the library's own part of its memory: a callback may be a thread's first use
/// of it, and must not allocate.
[[gnu::visibility("hidden"),
  gnu::tls_model("initial-exec")]] extern constinit thread_local Guard threads_guard;

/// What CUPTI calls. `user_data` is the epoch of the subscription, as a number.
void on_callback(void* user_data, abi::Domain domain, std::uint32_t cbid,
                 const void* data) noexcept;

/// The counts of `from`, in its state.
[[nodiscard]] SourceNotice notice_of(const Attachment& from, SourceState state) noexcept;

}  // namespace ringmain::cuda
