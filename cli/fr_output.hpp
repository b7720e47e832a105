// How do the verbs of `ringmain fr` write, and what do they share of their options?
#pragma once
#include <string>
#include <string_view>

#include "adapters/flight/job.hpp"
#include "adapters/flight/verdict.hpp"

#include "cli/arguments.hpp"

namespace ringmain::cli {

/// Writes a file whole or not at all; "-" is standard output. Returns a sentence if that failed.
[[nodiscard]] std::string write_whole(const std::string& path, std::string_view bytes);

/// What is read: operands, --prefix, --rank-from, --world-size. Returns a sentence if it is wrong.
[[nodiscard]] std::string read_job_options(const Arguments& arguments, flight::JobOptions& options);
/// --grace; a sentence where it is no number of seconds.
[[nodiscard]] std::string read_grace(const Arguments& arguments, flight::JudgeOptions& options);

/// Prints "ringmain: …" for what cannot be read or was called wrongly; returns kWrongUsage, which
/// of the verbs of `fr` means: nothing was judged.
int nothing_judged(std::string_view sentence);

}  // namespace ringmain::cli
