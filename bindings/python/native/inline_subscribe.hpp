// A Python callback in the publishing thread, which may veto. That thread takes the GIL for it.
#pragma once
#include <atomic>
#include <memory>
#include <string>

#include "bus/options.hpp"
#include "bus/subscription.hpp"

#include "bindings/python/native/channel.hpp"
#include "bindings/python/native/gil.hpp"

namespace ringmain::python {

/// Belongs to one bus; its captures in the bus hold the callback.
struct InlineSubscriber {
  Subscription held;
  std::string name;
  std::atomic<std::uint64_t> raised{0};
  std::atomic<std::uint64_t> gil_taken{0};
};

/// Throws std::bad_alloc. With the GIL. `callback(record)` answers None or True: let it go on;
/// False or a reason: veto.
std::shared_ptr<InlineSubscriber> subscribe_inline_callback(engine::ChannelCore& channel,
                                                            nb::object callback,
                                                            SubscribeOptions options);
/// With the GIL, which is given up while a running call is waited for.
Detached remove(InlineSubscriber& subscriber, Seconds limit);

/// Says on the logger "ringmain" what a callback of that name raised. The Python error is set, and
/// cleared.
void log_raised(const std::string& name) noexcept;

}  // namespace ringmain::python
