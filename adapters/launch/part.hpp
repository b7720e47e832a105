// Which processes of a run take no part in it, though a library of ours is in them? Those that are
// left out by name, and those built with a sanitizer that would take us for a fault.
#pragma once

namespace ringmain::run {

/// The names of those that are left out, one a line.
constexpr const char* kExceptVariable = "RINGMAIN_RUN_EXCEPT";
/// With a variable's name after it: what a run set it to, and what it was before. There only where
/// commands are left out, whose environment is put back.
constexpr const char* kSetPrefix = "RINGMAIN_RUN_SET_";
constexpr const char* kEarlierPrefix = "RINGMAIN_RUN_EARLIER_";

/// False in a process of a run that is left out of it; says why at the first call. Threads: any.
[[nodiscard]] bool takes_part();
/// In a process that is left out by name: puts the environment back as it would be without the run,
/// so that nothing that it starts takes part. Before main.
void clear_of_run();

}  // namespace ringmain::run
