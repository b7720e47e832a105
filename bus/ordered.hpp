// How do several channels come to be heard in one order? Each publish takes a ticket while somebody
// wants that; a feeder on each channel copies events and tickets into a mailbox, a lane there for
// each lane here, and the mailbox hands them out by ticket (engine/deliver/merge.hpp).
#pragma once
#include <span>

#include "mailbox_hold.hpp"
#include "options.hpp"

namespace ringmain::detail {

/// A mailbox for what these channels say, in the order of their tickets. Throws std::bad_alloc;
/// std::invalid_argument if one of them delivers in parallel.
[[nodiscard]] engine::Ref<MailboxHold> make_ordered_mailbox(
    std::span<engine::ChannelCore* const> channels, const OrderOptions& options);
/// A subscriber for `source` that copies its events and their tickets to such a mailbox. Throws
/// std::bad_alloc.
[[nodiscard]] engine::Subscriber* make_ordered_feeder(const engine::Ref<MailboxHold>& mailbox,
                                                      engine::ChannelCore& source);

}  // namespace ringmain::detail
