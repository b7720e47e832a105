// When has the last thread of the program left a process that only threads of ours keep alive?
#pragma once

namespace ringmain::run {

/// A descriptor of the folder that lists the process's threads; -1: there is no /proc.
[[nodiscard]] int open_threads() noexcept;
/// Waits until no thread is left but those with names of ours. `threads`: from open_threads().
/// Returns the status that the process has then.
[[nodiscard]] int await_solitude_in(int threads) noexcept;

}  // namespace ringmain::run
