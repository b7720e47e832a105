// Linked into one program with the library's own objects, which come after this one: here a static
// object speaks before any of the library's was made. Is it heard as from anywhere else?
#include <vector>

#include <gtest/gtest.h>

#include "bus/bus.hpp"

#include "tests/bus/events.hpp"

namespace ringmain::tests {
namespace {

struct Early {
  Bus bus{with_workers(1)};
  std::vector<Stamp> stamps;
  Subscription sub = bus.channel<Tick>().subscribe(
      [this](const Tick&, const Stamp& stamp) { stamps.push_back(stamp); });
  bool heard = false;
  Early() {
    for (std::uint64_t n = 1; n <= 100; ++n) bus.channel<Tick>().post({n});
    heard = bus.flush(kLong);
  }
};
Early early;

TEST(StaticConstructorTest, WhatItPublishesComesFromOnePublisherInOrder) {
  ASSERT_TRUE(early.heard);
  ASSERT_EQ(early.stamps.size(), 100u);
  for (std::size_t i = 0; i < early.stamps.size(); ++i) {
    EXPECT_EQ(early.stamps[i].publisher, early.stamps[0].publisher);
    EXPECT_EQ(early.stamps[i].sequence, i + 1);
  }
  early.bus.channel<Tick>().post({101});  // in main() the same thread is the same publisher
  ASSERT_TRUE(early.bus.flush(kLong));
  EXPECT_EQ(early.stamps.back().publisher, early.stamps[0].publisher);
  EXPECT_EQ(early.stamps.back().sequence, 101u);
}

}  // namespace
}  // namespace ringmain::tests
