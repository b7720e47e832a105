// What comes before what, by brute force: a graph of all that a program did, and who is reached
// from whom. It knows nothing of clocks, and has no line in common with what it judges.
#pragma once
#include <cstddef>
#include <vector>

#include "tests/adapters/cuda/hazards/account.hpp"

namespace ringmain::cuda::hazards {

struct Pair {
  std::size_t earlier = 0, later = 0;  // the how many-th accesses of the account, from 0 on
  bool race = false;
};

/// All pairs that share a byte of one buffer on two streams, of which one writes. With
/// `before_is_blocking` streams that were made before the attachment are taken for such as wait for
/// the legacy one: what a checker must assume that came later.
[[nodiscard]] std::vector<Pair> judge(const Account& account, bool before_is_blocking);

}  // namespace ringmain::cuda::hazards
