// Does a program live on that has another event by the name of ours?
#include "adapters/launch/channel_of.hpp"

#include <gtest/gtest.h>

namespace ringmain::run {
namespace {

struct Beat {
  int number = 0;
};
constexpr auto describe(EventOf<Beat>) {
  return event("tests.launch.beat", field<&Beat::number>("number"));
}
struct Other {
  double number = 0;
};

TEST(ChannelOfTest, IsTheOneThatTheBusHas) {
  Bus bus;
  const auto made = channel_of<Beat>(bus);
  ASSERT_TRUE(made);
  EXPECT_EQ(made.value(), &bus.channel<Beat>());
  const auto found = channel_of<Beat>(bus);
  ASSERT_TRUE(found);
  EXPECT_EQ(found.value(), made.value());
}

TEST(ChannelOfTest, AnotherEventOfThatNameIsAnError) {
  Bus bus;
  (void)bus.channel<Other>("tests.launch.beat");
  const auto found = channel_of<Beat>(bus);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, Error::Code::conflict);
  EXPECT_NE(found.error().message.find("tests.launch.beat"), std::string::npos);
}

}  // namespace
}  // namespace ringmain::run
