// What is the command that is to be run, and what keeps a library from being loaded into it?
#pragma once
#include <string>
#include <vector>

namespace ringmain::cli {

/// Where the shell's rules find it: with a slash as it is, else along PATH. "" if nowhere.
[[nodiscard]] std::string find_command(const std::string& name);
/// Why LD_PRELOAD does nothing there ("it is linked statically"); "" where nothing is known of.
[[nodiscard]] std::string preload_hindrance(const std::string& path);
/// Becomes the command. Returns only if that cannot be: 127 when there is none, 126 when it cannot
/// be executed, as shells say it, after one sentence.
[[nodiscard]] int become(const std::vector<std::string>& words);

}  // namespace ringmain::cli
