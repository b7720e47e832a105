// Does each function of the source's interface for C answer whatever it is given?
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include <gtest/gtest.h>

#include "tests/adapters/cuda/source_fixture.hpp"

extern "C" {
int ringmain_cuda_attach(void* bus, const char* options, void** made, char* why, std::size_t bytes);
void ringmain_cuda_release(void* source);
int ringmain_cuda_detach(void* source);
int ringmain_cuda_state_of(void* source);
void ringmain_cuda_counts(void* source, std::uint64_t* figures);
int ringmain_cuda_lend_source(void* source, const char* to, char* why, std::size_t bytes);
int ringmain_cuda_take_back_source(void* source, char* why, std::size_t bytes);
int ringmain_cuda_state(const void* bus);
int ringmain_cuda_lend(const char* to, char* why, std::size_t bytes);
int ringmain_cuda_take_back(char* why, std::size_t bytes);
}

namespace ringmain::cuda {
namespace {

enum AttachCode : int { kAttached, kWrongOptions, kRefused };
constexpr int kError = -1, kNo = 0, kYes = 1;

class SourceCTest : public SourceFixture {
 protected:
  /// What was said, and nothing of the call before.
  std::string said() {
    std::string sentence = why.data();
    why.fill('\0');
    return sentence;
  }
  Bus* where = &bus;
  void* source = nullptr;
  std::array<char, 256> why{};
};

TEST_F(SourceCTest, WhatIsNullHasItsAnswer) {
  EXPECT_EQ(ringmain_cuda_attach(nullptr, "", &source, why.data(), why.size()), kWrongOptions);
  EXPECT_NE(said().find("there is no bus"), std::string::npos);
  EXPECT_EQ(ringmain_cuda_attach(where, "", nullptr, why.data(), why.size()), kWrongOptions);
  EXPECT_NE(said().find("no place for the source"), std::string::npos);
  EXPECT_EQ(ringmain_cuda_attach(where, "drivr", &source, nullptr, 9), kWrongOptions);
  EXPECT_EQ(source, nullptr);
  EXPECT_EQ(Source::state_in_process(), std::nullopt);

  ringmain_cuda_release(nullptr);
  EXPECT_EQ(ringmain_cuda_detach(nullptr), static_cast<int>(Detached::was_not_attached));
  EXPECT_EQ(ringmain_cuda_state_of(nullptr), static_cast<int>(SourceState::detached));
  std::array<std::uint64_t, 4> figures{7, 7, 7, 7};
  ringmain_cuda_counts(nullptr, figures.data());
  EXPECT_EQ(figures, (std::array<std::uint64_t, 4>{}));
  EXPECT_EQ(ringmain_cuda_lend_source(nullptr, "a tool", why.data(), why.size()), kNo);
  EXPECT_EQ(ringmain_cuda_take_back_source(nullptr, why.data(), why.size()), kNo);
  EXPECT_EQ(ringmain_cuda_lend("a tool", why.data(), why.size()), kNo);
  EXPECT_EQ(ringmain_cuda_take_back(nullptr, 0), kNo);
  EXPECT_EQ(ringmain_cuda_state(nullptr), -1);
  EXPECT_EQ(said(), "");
}

TEST_F(SourceCTest, ASourceThatIsThereTakesWhatIsNullToo) {
  ASSERT_EQ(ringmain_cuda_attach(where, nullptr, &source, nullptr, 0), kAttached);
  EXPECT_EQ(ringmain_cuda_state(nullptr), static_cast<int>(SourceState::attached));
  ringmain_cuda_counts(source, nullptr);
  EXPECT_EQ(ringmain_cuda_lend_source(source, nullptr, why.data(), why.size()), kError);
  EXPECT_NE(said().find("nobody is named"), std::string::npos);
  EXPECT_EQ(ringmain_cuda_lend(nullptr, why.data(), why.size()), kError);
  EXPECT_NE(said().find("nobody is named"), std::string::npos);
  EXPECT_EQ(ringmain_cuda_state_of(source), static_cast<int>(SourceState::attached));
  EXPECT_EQ(ringmain_cuda_lend_source(source, "a tool", nullptr, 0), kYes);
  EXPECT_EQ(ringmain_cuda_take_back_source(source, nullptr, 7), kYes);
  void* second = nullptr;
  EXPECT_EQ(ringmain_cuda_attach(where, nullptr, &second, nullptr, 7), kRefused);
  EXPECT_EQ(second, nullptr);
  ringmain_cuda_release(source);
  EXPECT_EQ(fake_cupti_subscribers(), 0);
}

}  // namespace
}  // namespace ringmain::cuda
