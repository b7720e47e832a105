// What every count of a subscriber must add up to.
#pragma once
#include <gtest/gtest.h>

#include "bus/bus.hpp"

namespace ringmain::tests {

/// I3: each event that was offered is accounted for once; none was coalesced.
inline void expect_i3(const SubscriberStats& s) {
  EXPECT_EQ(s.offered, s.delivered + s.threw + s.filtered + s.skipped + s.dropped + s.pending);
}

/// I3, where events of a key may be coalesced.
inline void expect_i3_coalesced(const SubscriberStats& s) {
  EXPECT_EQ(s.offered,
            s.delivered + s.threw + s.filtered + s.skipped + s.dropped + s.coalesced + s.pending);
}

}  // namespace ringmain::tests
