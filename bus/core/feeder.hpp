// Which subscriber carries a channel's events into a mailbox? Not for users of the library.
#pragma once
#include "../coalesce.hpp"
#include "mailbox_hold.hpp"

namespace ringmain::detail {

/// A subscriber for `source` that copies its events, with their stamps, into a lane of `mailbox`.
/// It takes that lane, and gives it back when its captures are destroyed. With `key` an event takes
/// the place of the queued one of its key. Throws std::bad_alloc.
[[nodiscard]] engine::Subscriber* make_feeder(const engine::Ref<MailboxHold>& mailbox,
                                              engine::ChannelCore& source, int priority,
                                              KeyWriter key);

}  // namespace ringmain::detail
