// Is a tool found that was set before the run?
#include "adapters/launch/chained.hpp"

#include <cstdlib>
#include <dlfcn.h>
#include <string>

#include <gtest/gtest.h>

namespace ringmain::run {
namespace {

constexpr const char* kVariable = "RINGMAIN_TESTS_CHAIN";

int none_of_its() {
  return 0;
}
int (*find(const char* path))() {
  path == nullptr ? ::unsetenv(kVariable) : ::setenv(kVariable, path, 1);
  return chained<int()>(kVariable, "launch_answer", "test tool", "TESTS_PATH", &none_of_its);
}

TEST(ChainedTest, TheEarlierToolIsFound) {
  auto* const found = find(RINGMAIN_TOOL);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found(), 42);
}

TEST(ChainedTest, NobodyIsCalledWhereNothingWasKept) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(find(nullptr), nullptr);
  EXPECT_EQ(find(""), nullptr);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(ChainedTest, ALibraryIsNotChainedToItself) {
  auto* const itself = find(RINGMAIN_TOOL);
  ASSERT_NE(itself, nullptr);
  EXPECT_EQ(chained<int()>(kVariable, "launch_answer", "test tool", "TESTS_PATH", itself), nullptr);
}

TEST(ChainedTest, AToolThatCannotBeUsedIsSaid) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(find("/nowhere/tool.so"), nullptr);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(said.starts_with(
      "ringmain: the test tool that TESTS_PATH named before the run cannot be used, "
      "and ringmain goes on without it: /nowhere/tool.so"))
      << said;
  testing::internal::CaptureStderr();
  EXPECT_EQ(find(RINGMAIN_ASKER), nullptr) << "it has another function";
  EXPECT_NE(testing::internal::GetCapturedStderr().find("launch_answer"), std::string::npos);
}

}  // namespace
}  // namespace ringmain::run
