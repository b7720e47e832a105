// Which file is the command that is to be run, and how does this process become it?
#pragma once
#include <string>
#include <vector>

namespace ringmain::cli {

/// Where the shell's rules find it: with a slash as it is, else along PATH. "" if nowhere.
[[nodiscard]] std::string find_command(const std::string& name);
/// Becomes the command. Returns only if that fails, after one sentence, with the status that a
/// shell gives: 127 if there is no such command, 126 if it cannot be executed.
[[nodiscard]] int become(const std::vector<std::string>& words);

}  // namespace ringmain::cli
