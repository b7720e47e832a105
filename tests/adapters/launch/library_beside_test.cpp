// Does a library find the one beside it, however it was loaded?
#include "adapters/launch/library_beside.hpp"

#include <dlfcn.h>
#include <string>

#include <gtest/gtest.h>

namespace ringmain::run {
namespace {

TEST(LibraryBesideTest, LiesInTheFolderOfTheLibraryThatAsks) {
  void* const asker = ::dlopen(RINGMAIN_ASKER, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(asker, nullptr) << ::dlerror();
  auto* const ask = found_in<int(const char*)>(asker, "launch_ask_beside");
  ASSERT_NE(ask, nullptr);
  EXPECT_EQ(ask("launch_tool.so"), 42);
  EXPECT_EQ(ask("../libraries/launch_tool.so"), 42);
  EXPECT_EQ(ask("launch_nothing.so"), 0);
}

TEST(LibraryBesideTest, SaysWhyItIsNotThere) {
  const LibraryBeside missing("launch_tool.so", RTLD_NOW | RTLD_LOCAL);  // not beside this program
  EXPECT_FALSE(missing);
  EXPECT_NE(std::string(missing.why()).find("launch_tool.so"), std::string::npos) << missing.why();
  EXPECT_EQ(missing.function<int()>("launch_answer"), nullptr);
}

TEST(LibraryBesideTest, APathThatHasNoRoomIsRefused) {
  const std::string name(PATH_MAX, 'x');
  const LibraryBeside missing(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  EXPECT_FALSE(missing);
  EXPECT_STREQ(missing.why(), "the folder of ringmain's libraries cannot be told");
}

}  // namespace
}  // namespace ringmain::run
