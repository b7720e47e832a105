// What does a library find that is loaded before another one with the same function?
#include "adapters/launch/original.hpp"

#include <gtest/gtest.h>

/// This program's, before that of the library that it is linked with.
extern "C" __attribute__((visibility("default"))) int launch_named() {
  return 2;
}
extern "C" int launch_is_linked();

namespace ringmain::run {
namespace {

TEST(OriginalTest, IsWhatTheProgramWouldCallWithoutUs) {
  ASSERT_EQ(launch_is_linked(), 1);
  auto* const found = original<int()>("launch_named");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found(), 1);
  EXPECT_EQ(original<int()>("launch_named_by_nobody"), nullptr);
}

TEST(OriginalTest, WhatAllSeeMayBeOurs) {
  auto* const found = seen_by_all<int()>("launch_named");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found(), 2);
}

TEST(OriginalTest, NothingIsFoundInALibraryThatIsNotThere) {
  EXPECT_EQ(found_in<int()>(nullptr, "launch_named"), nullptr);
}

}  // namespace
}  // namespace ringmain::run
