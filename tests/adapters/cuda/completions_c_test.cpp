// Does each function of the completions' interface for C answer whatever it is given?
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include <gtest/gtest.h>

#include "tests/adapters/cuda/completions_fixture.hpp"

extern "C" {
int ringmain_cuda_completions_make(void* bus, const std::uint64_t* numbers, void** made, char* why,
                                   std::size_t bytes);
void ringmain_cuda_completions_release(void* completions);
int ringmain_cuda_completions_arm(void* completions, void* stream, std::uint64_t tag,
                                  std::uint64_t* ticket, std::int32_t* result);
int ringmain_cuda_completions_arm_after_launch(void* completions, void* graph_exec, void* stream,
                                               std::uint64_t tag, std::uint64_t* ticket,
                                               std::int32_t* result, int* launched);
int ringmain_cuda_completions_add_host_node(void* completions, void* graph,
                                            void* const* dependencies, std::size_t many,
                                            std::uint64_t tag, void** node, std::uint32_t* lane,
                                            char* why, std::size_t bytes);
int ringmain_cuda_completions_end(void* completions, std::int64_t limit_ns);
void ringmain_cuda_completions_figures(void* completions, std::int64_t* figures, std::size_t many);
}

namespace ringmain::cuda {
namespace {

enum MakeCode : int { kMade, kWrongOptions, kRefused };
constexpr int kEnded = static_cast<int>(ArmCode::ended);
constexpr int kNotAttached = static_cast<int>(Detached::was_not_attached);

class CompletionsCTest : public CompletionsFixture {
 protected:
  std::string said() {
    std::string sentence = why.data();
    why.fill('\0');
    return sentence;
  }
  Bus* where = &bus;
  void* completions = nullptr;
  std::array<char, 256> why{};
};

TEST_F(CompletionsCTest, WhatIsNullHasItsAnswer) {
  EXPECT_EQ(ringmain_cuda_completions_make(nullptr, nullptr, &completions, why.data(), why.size()),
            kWrongOptions);
  EXPECT_NE(said().find("there is no bus"), std::string::npos);
  EXPECT_EQ(ringmain_cuda_completions_make(where, nullptr, nullptr, why.data(), why.size()),
            kWrongOptions);
  EXPECT_NE(said().find("no place for the completions"), std::string::npos);
  EXPECT_EQ(ringmain_cuda_completions_make(nullptr, nullptr, nullptr, nullptr, 9), kWrongOptions);

  ringmain_cuda_completions_release(nullptr);
  EXPECT_EQ(ringmain_cuda_completions_arm(nullptr, stream, 1, nullptr, nullptr), kEnded);
  EXPECT_EQ(ringmain_cuda_completions_arm_after_launch(nullptr, nullptr, stream, 1, nullptr,
                                                       nullptr, nullptr),
            kEnded);
  EXPECT_EQ(ringmain_cuda_completions_add_host_node(nullptr, nullptr, nullptr, 3, 1, nullptr,
                                                    nullptr, why.data(), why.size()),
            kRefused);
  EXPECT_NE(said(), "");
  EXPECT_EQ(ringmain_cuda_completions_end(nullptr, 0), kNotAttached);
  std::array<std::int64_t, 4> figures{7, 7, 7, 7};
  ringmain_cuda_completions_figures(nullptr, figures.data(), 3);
  EXPECT_EQ(figures, (std::array<std::int64_t, 4>{0, 0, 0, 7}));
  ringmain_cuda_completions_figures(nullptr, nullptr, 3);
}

TEST_F(CompletionsCTest, ATicketIsArmedAndCountedAndReleaseEndsIt) {
  const Heard heard(bus);
  ASSERT_EQ(ringmain_cuda_completions_make(where, nullptr, &completions, nullptr, 0), kMade);
  std::uint64_t ticket = 0;
  std::int32_t result = 7;
  EXPECT_EQ(ringmain_cuda_completions_arm(completions, stream, 5, &ticket, &result), 0);
  EXPECT_GT(ticket, 0U);
  EXPECT_EQ(result, 0);
  ASSERT_TRUE(heard.await(1));
  EXPECT_EQ(heard.all()[0].ticket, ticket);
  std::array<std::int64_t, 20> figures{};
  ringmain_cuda_completions_figures(completions, figures.data(), figures.size());
  EXPECT_EQ(figures[0], 1);
  EXPECT_EQ(figures[1], 1);
  EXPECT_EQ(figures[4], 0);
  EXPECT_EQ(figures[7], 1);
  EXPECT_EQ(figures[8], static_cast<int>(Strategy::memory_writes));
  (void)fake_cuda_hold(stream);
  EXPECT_EQ(ringmain_cuda_completions_arm(completions, stream, 6, nullptr, nullptr), 0);
  ringmain_cuda_completions_release(completions);
  ASSERT_TRUE(heard.await(2));
  EXPECT_EQ(heard.all()[1].outcome, Outcome::abandoned);
}

TEST_F(CompletionsCTest, NumbersThatCannotBeAreRefusedInOneSentence) {
  constexpr std::uint64_t kHuge = ~std::uint64_t{0};
  const std::array<std::uint64_t, 8> good{0, 8, 8, 8, 20, 500, 1000, 0};
  for (const auto& [at, value] : {std::pair<std::size_t, std::uint64_t>{1, 0},
                                  {1, kHuge},
                                  {2, 1},
                                  {2, kHuge},
                                  {3, 0},
                                  {5, 0},
                                  {6, 0}}) {
    auto numbers = good;
    numbers[at] = value;
    EXPECT_EQ(
        ringmain_cuda_completions_make(where, numbers.data(), &completions, why.data(), why.size()),
        kRefused)
        << at;
    EXPECT_NE(said(), "");
  }
  EXPECT_EQ(completions, nullptr);
  auto numbers = good;
  numbers[4] = numbers[5] = numbers[6] = kHuge;  // as long as a duration can be
  ASSERT_EQ(ringmain_cuda_completions_make(where, numbers.data(), &completions, nullptr, 0), kMade);
  EXPECT_EQ(ringmain_cuda_completions_end(completions, -1), static_cast<int>(Detached::done));
  ringmain_cuda_completions_release(completions);
}

}  // namespace
}  // namespace ringmain::cuda
