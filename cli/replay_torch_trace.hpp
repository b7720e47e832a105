// How is a log that PyTorch wrote under TORCH_TRACE replayed?
//
// Line by line, in the order of the log, from one thread: a log is already in the order of its
// times, and of one process. No part of the log is kept, so its length does not matter.
#pragma once
#include "cli/replay_run.hpp"

namespace ringmain::cli {

/// Reads, plays, drains, prints the summary. The exit status.
[[nodiscard]] int replay_torch_trace(const ReplayCall& call);

}  // namespace ringmain::cli
