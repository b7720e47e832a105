// When does a run begin in a process, and when does it end? What libraries of sources ask of it is
// in adapters/run.hpp; here is what the preload tells it of the program.
#pragma once

namespace ringmain::run {

/// Call it when the program has just been loaded. A run that its plan does not begin at once begins
/// at the first join() or the first use of the process's bus.
void start_at_start() noexcept;
/// Call it before an exec, or with `to_finish` before the end of the process: brings what was
/// published to the sinks. A second caller waits for the first. Async-signal-safe where the run has
/// a thread.
void leave_by(bool to_finish) noexcept;

}  // namespace ringmain::run
