// Which verb was called, and how? Finds the verb, reads its options and operands, runs it.
#pragma once
#include <span>

#include "cli/verbs.hpp"

namespace ringmain::cli {

/// Returns the exit status. `program` holds the verbs, and has no name; its option --version prints
/// `version`.
///
/// Takes "--name value" and "--name=value", where a value may be empty or begin with '-'; an option
/// may be repeated; "--" ends the options, "-" is an operand. Nothing is abbreviated, letters are
/// not bundled, and of several mistakes the first is reported.
[[nodiscard]] int run_command_line(const Verb& program, std::string_view version,
                                   std::span<char* const> words);

}  // namespace ringmain::cli
