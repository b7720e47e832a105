// How does a call of the fake runtime go? It sees to a context, then asks the driver, inside
// itself.
#pragma once
#include "tests/adapters/cuda/fakes/served.hpp"

namespace ringmain::fake {

/// The first call of a process makes the primary context, and each thread's first takes it.
/// Returns the driver's refusal.
int ensure_context();
/// Keeps what cudaGetLastError() is to say. Returns it.
cudaError_t remember(int result);

template <class Served, class Body>
cudaError_t runtime_call(typename Served::Params params, Body body) {
  return remember(serve<Served>(params, [&](Deed& deed) -> int {
    const int why_not = ensure_context();
    return why_not != 0 ? why_not : static_cast<int>(body(deed));
  }));
}

template <class To, class From>
To as(From from) {
  return reinterpret_cast<To>(from);
}

}  // namespace ringmain::fake
