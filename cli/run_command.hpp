// Which file is the command that is to be run, and how does one become it?
#pragma once
#include <string>
#include <vector>

namespace ringmain::cli {

/// Where the shell's rules find it: with a slash as it is, else along PATH. "" if nowhere.
[[nodiscard]] std::string find_command(const std::string& name);
/// Becomes the command. Returns only if that cannot be: 127 when there is none, 126 when it cannot
/// be executed, as shells say it, after one sentence.
[[nodiscard]] int become(const std::vector<std::string>& words);

}  // namespace ringmain::cli
