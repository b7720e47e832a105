// When does a run begin in a process, and when does it end? What libraries of sources ask of it is
// in adapters/run.hpp; here is what the preload tells it of the program.
#pragma once

namespace ringmain::run {

/// The program has just been loaded. What the plan does not want at once waits for the first join()
/// or the first use of the process's bus.
void start_at_start() noexcept;
/// On the way to an exec or, to finish, to the end, from wherever that is: brings what was
/// published to the sinks. Whoever comes second waits for the first. Async-signal-safe where the
/// run has a thread.
void leave_by(bool to_finish) noexcept;

}  // namespace ringmain::run
