// Which processes of a run take no part in it, though a library of ringmain is in them? Those that
// are left out by name, and those built with a sanitizer that would report what ringmain does.
#pragma once

namespace ringmain::run {

/// The names of those that are left out, one a line.
constexpr const char* kExceptVariable = "RINGMAIN_RUN_EXCEPT";
/// Followed by a variable's name: what a run set that variable to, and what it was before. Set only
/// where commands are left out, whose environment is put back.
constexpr const char* kSetPrefix = "RINGMAIN_RUN_SET_";
constexpr const char* kEarlierPrefix = "RINGMAIN_RUN_EARLIER_";

/// False in a process that is left out of its run; the first call says why. Threads: any.
[[nodiscard]] bool takes_part();
/// In a process that is left out by name: puts the environment back as it would be without the run,
/// so that nothing that it starts takes part. Before main.
void clear_of_run();

}  // namespace ringmain::run
