// Hooks that come and go while operations run.
#pragma once
#include <atomic>
#include <memory>
#include <random>
#include <thread>
#include <utility>

#include <gtest/gtest.h>

#include "adapters/sources/collective/communicator.hpp"

namespace ringmain::tests {

/// A hook that comes, and goes; it is never called afterwards, when its count is freed.
inline void come_and_go(const collective::Communicator& comm, std::minstd_rand& random) {
  auto count = std::make_unique<std::atomic<int>>(0);
  const auto one = [at = count.get()](const auto&) { ++*at; };
  collective::Hook hook;
  switch (random() % 3) {
    case 0:
      hook = std::move(comm.pre_hook([one](const collective::PreHookArgs& args) {
                             one(args);
                             return Verdict::allow();
                           })
                           .value());
      break;
    case 1:
      hook = std::move(comm.post_hook(one).value());
      break;
    default:
      hook = std::move(comm.completion_hook(one).value());
  }
  if (random() % 2 == 0) std::this_thread::yield();
  EXPECT_EQ(hook.reset(), Detached::done);
}

}  // namespace ringmain::tests
