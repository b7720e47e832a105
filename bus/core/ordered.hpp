// How are several channels heard in one order? While a subscriber wants that, each publish takes a
// ticket. A feeder on each channel copies events and tickets into a mailbox, which has a lane for
// each lane of the channel, and the mailbox hands them out by ticket (engine/deliver/merge.hpp).
#pragma once
#include <span>

#include "../options.hpp"
#include "mailbox_hold.hpp"

namespace ringmain::detail {

/// A mailbox for the events of these channels, in the order of their tickets. Throws
/// std::bad_alloc; std::invalid_argument if one of them delivers in parallel.
[[nodiscard]] engine::Ref<MailboxHold> make_ordered_mailbox(
    std::span<engine::ChannelCore* const> channels, const OrderOptions& options);
/// A subscriber for `source` that copies its events and their tickets to such a mailbox. Throws
/// std::bad_alloc.
[[nodiscard]] engine::Subscriber* make_ordered_feeder(const engine::Ref<MailboxHold>& mailbox,
                                                      engine::ChannelCore& source);

}  // namespace ringmain::detail
