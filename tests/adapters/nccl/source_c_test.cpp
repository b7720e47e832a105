// Does each function of the source's interface for C answer whatever it is given?
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "tests/adapters/nccl/plugin_driver.hpp"

extern "C" {
int ringmain_nccl_attach(void* bus, const char* options, void** made, char* why, std::size_t bytes);
void ringmain_nccl_release(void* source);
int ringmain_nccl_detach(void* source);
std::uint32_t ringmain_nccl_tell_stalled(void* source);
void ringmain_nccl_counts(std::uint64_t* figures, std::size_t how_many);
}

namespace ringmain::nccl {
namespace {

enum AttachCode : int { kAttached, kWrongOptions, kRefused };

class NcclSourceCTest : public testing::Test {
 protected:
  /// What was said, and nothing of the call before.
  std::string said() {
    std::string sentence = why.data();
    why.fill('\0');
    return sentence;
  }
  Bus bus;
  void* source = nullptr;
  std::array<char, 256> why{};
};

TEST_F(NcclSourceCTest, WhatIsNullHasItsAnswer) {
  EXPECT_EQ(ringmain_nccl_attach(nullptr, "", &source, why.data(), why.size()), kWrongOptions);
  EXPECT_NE(said().find("there is no bus"), std::string::npos);
  EXPECT_EQ(ringmain_nccl_attach(&bus, "", nullptr, why.data(), why.size()), kWrongOptions);
  EXPECT_NE(said().find("no place for the source"), std::string::npos);
  EXPECT_EQ(ringmain_nccl_attach(&bus, "kernl=never", &source, nullptr, 9), kWrongOptions);
  EXPECT_EQ(source, nullptr);
  ringmain_nccl_release(nullptr);
  EXPECT_EQ(ringmain_nccl_detach(nullptr), static_cast<int>(Detached::was_not_attached));
  EXPECT_EQ(ringmain_nccl_tell_stalled(nullptr), 0);
  ringmain_nccl_counts(nullptr, 17);
}

TEST_F(NcclSourceCTest, ASourceIsAttachedOnceAndSaysWhyNot) {
  ASSERT_EQ(ringmain_nccl_attach(&bus, nullptr, &source, why.data(), why.size()), kAttached);
  void* second = nullptr;
  EXPECT_EQ(ringmain_nccl_attach(&bus, "", &second, why.data(), 8), kRefused);
  EXPECT_EQ(said().size(), 7);  // cut, with its zero
  EXPECT_EQ(second, nullptr);
  EXPECT_EQ(ringmain_nccl_tell_stalled(source), 0);
  EXPECT_EQ(ringmain_nccl_detach(source), static_cast<int>(Detached::done));
  EXPECT_EQ(ringmain_nccl_detach(source), static_cast<int>(Detached::was_not_attached));
  ringmain_nccl_release(source);
}

TEST_F(NcclSourceCTest, CountsAreThoseOfCppAndNoMoreThanAsked) {
  std::array<std::uint64_t, 18> figures;
  figures.fill(~std::uint64_t{0});
  ringmain_nccl_counts(figures.data(), figures.size());
  const Counts now = Source::counts();
  EXPECT_EQ(figures[0], now.started);
  EXPECT_EQ(figures[16], now.unfollowed);
  EXPECT_EQ(figures[17], ~std::uint64_t{0});
  figures.fill(7);
  ringmain_nccl_counts(figures.data(), 1);
  EXPECT_EQ(figures[1], 7);
}

}  // namespace
}  // namespace ringmain::nccl
