// How does a call of the fake runtime go? The first one begins the driver before it is told of;
// each sees to a context, then asks the driver, inside itself.
#pragma once
#include "tests/adapters/cuda/fakes/served.hpp"

namespace ringmain::fake {

/// What cuInit() said, which is called once.
int begin_driver();
/// The first call of a process makes the primary context, and each thread's first takes it.
/// Returns the driver's refusal.
int ensure_context();
/// Keeps what cudaGetLastError() is to say. Returns it.
cudaError_t remember(int result);

template <class Served, class Body>
cudaError_t runtime_call(typename Served::Params params, Body body) {
  const int begun = begin_driver();
  return remember(serve<Served>(params, [&](Deed& deed) -> int {
    const int why_not = begun != 0 ? begun : ensure_context();
    return why_not != 0 ? why_not : static_cast<int>(body(deed));
  }));
}

template <class To, class From>
To as(From from) {
  return reinterpret_cast<To>(from);
}

}  // namespace ringmain::fake
