// Is a thread named as the system names it?
#include "adapters/launch/tid.hpp"

#include <thread>
#include <unistd.h>

#include <gtest/gtest.h>

namespace ringmain::run {
namespace {

TEST(TidTest, EachThreadHasItsOwn) {
  EXPECT_EQ(this_tid(), static_cast<std::uint32_t>(::gettid()));
  std::thread([] {
    EXPECT_EQ(this_tid(), static_cast<std::uint32_t>(::gettid()));
    EXPECT_EQ(this_tid(), static_cast<std::uint32_t>(::gettid())) << "and keeps it";
  }).join();
}

}  // namespace
}  // namespace ringmain::run
