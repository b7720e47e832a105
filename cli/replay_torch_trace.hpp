// What becomes of a log that PyTorch wrote under TORCH_TRACE, when it is replayed?
//
// Line by line, in the order of the log, from one thread: a log is already in the order of its
// times, and of one process. Nothing is kept of it, so its length does not matter.
#pragma once
#include "cli/replay_run.hpp"

namespace ringmain::cli {

/// Reads, plays, drains, prints the summary. The exit status.
[[nodiscard]] int replay_torch_trace(const ReplayCall& call);

}  // namespace ringmain::cli
