// Does a Completions that finds no memory while it is made leave nothing with the driver, and does
// one that finds none while it arms give no ticket without an end? Each allocation fails once.
#include <new>
#include <thread>
#include <utility>

#include "tests/adapters/cuda/completions_fixture.hpp"
#include "tests/process/allocation_faults.hpp"

namespace ringmain::cuda {
namespace {

using std::chrono::minutes;
using tests::fail_allocations;
using tests::fail_own_allocations;
using tests::heal_allocations;

class CompletionsMemoryTest : public CompletionsFixture {};

TEST_F(CompletionsMemoryTest, EachAllocationOfOneThatIsMadeMayFail) {
  { const Completions once = made(); }  // what is made once is there
  const std::uint64_t before = fake_cuda_living();
  long k = 1;
  for (bool reached = true; reached && !HasFailure(); ++k) {
    fail_allocations(k, 1);
    try {
      const auto made = Completions::make(bus);
      reached = heal_allocations();
      EXPECT_TRUE(made || reached);
    } catch (const std::bad_alloc&) {  // as it says
      reached = heal_allocations();
    }
    EXPECT_EQ(fake_cuda_living(), before) << "allocation " << k;
  }
  EXPECT_GT(k, 5) << "make() allocates next to nothing: the test sees too little";
}

TEST_F(CompletionsMemoryTest, EachAllocationOfAThreadThatArmsMayFail) {
  const Heard heard(bus);
  Completions completions = made({.lanes_max = 4096});
  std::uint64_t given = 0;
  long k = 1;
  for (bool reached = true; reached && !HasFailure(); ++k) {
    std::thread([&] {
      (void)cudaSetDevice(0);
      fail_own_allocations(k, 1);
      const Armed armed = completions.arm(stream, 1);
      reached = heal_allocations();
      const bool of_driver = armed.code == ArmCode::driver && armed.result == 2;
      EXPECT_TRUE(armed || of_driver || armed.code == ArmCode::no_memory) << to_string(armed.code);
      given += armed ? 1 : 0;
      const Armed again = completions.arm(stream, 2);
      EXPECT_TRUE(again) << to_string(again.code);
      given += again ? 1 : 0;
    }).join();
  }
  EXPECT_GT(k, 3) << "arm() allocates next to nothing: the test sees too little";
  EXPECT_EQ(completions.end(minutes(10)), Detached::done);
  EXPECT_EQ(completions.figures().completed, given);
  expect_balanced(completions, heard);
}

}  // namespace
}  // namespace ringmain::cuda
