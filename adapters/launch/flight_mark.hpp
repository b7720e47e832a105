// Did any process of a run record something? Asked by the command's own process at its end, when
// the others may be dead.
//
// Each process that records names its file in one of the run's, the mark, wherever it has its own:
// a job may give each rank a folder. The command's own process looks into the files that are named.
#pragma once
#include <string>
#include <vector>

namespace ringmain::run {

/// Where the mark of a run may lie whose command this process becomes: the first that can be made
/// is it. Throws std::bad_alloc.
[[nodiscard]] std::vector<std::string> flight_marks();

/// This process records in that file. "": in memory, which a sentence has said. Throws
/// std::bad_alloc.
void mark_recording(const std::vector<std::string>& marks, const std::string& file);

/// If the run of these marks has its command in this process, the next function says something in
/// it. Throws std::bad_alloc.
void expect_records(const std::vector<std::string>& marks, const std::string& patterns);
/// One sentence if no process of the run on this machine has recorded anything, and why that may
/// be. Only the first call of the process looks, and takes the mark away. Async-signal-safe;
/// allocates nothing.
void say_if_nothing_was_recorded() noexcept;

}  // namespace ringmain::run
