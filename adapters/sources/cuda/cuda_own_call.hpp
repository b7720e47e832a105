// A call of CUDA's that ringmain makes itself: the source does not tell it, as it is not the
// program's.
#pragma once
#include <cstdint>

namespace ringmain::cuda {

// In the library's own part of a thread's memory, as callbacks look at it.
extern constinit thread_local std::uint32_t own_calls __attribute__((tls_model("initial-exec")));

/// While it lives, what this thread calls is our own. They nest.
class OwnCall {
 public:
  OwnCall() noexcept { ++own_calls; }
  OwnCall(const OwnCall&) = delete;
  OwnCall& operator=(const OwnCall&) = delete;
  ~OwnCall() { --own_calls; }
};

}  // namespace ringmain::cuda
