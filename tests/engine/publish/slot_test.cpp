// Which class of slot does an event get, and where does its payload lie in it?
#include "engine/publish/slot.hpp"

#include <cstddef>

#include <gtest/gtest.h>

namespace ringmain::engine {
namespace {

TEST(SlotTest, EveryPayloadGetsTheSmallestClassThatHoldsIt) {
  for (std::size_t payload = 0; payload <= 1024 + sizeof(Envelope); ++payload) {
    const unsigned c = slot_class(payload);
    EXPECT_GE(slot_bytes(c), payload + sizeof(SlotHeader)) << payload;
    if (c != 0) {
      EXPECT_LT(slot_bytes(c - 1), payload + sizeof(SlotHeader)) << payload;
    }
  }
}

TEST(SlotTest, EverySlotKeepsItsPayloadAlignedToSixteen) {
  for (unsigned c = 0; c < slot_sizes().size(); ++c) EXPECT_EQ(slot_bytes(c) % 16, 0u);
}

}  // namespace
}  // namespace ringmain::engine
