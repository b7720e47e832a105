#include "cli/run_command.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

#include "cli/arguments.hpp"
#include "cli/verbs.hpp"

namespace ringmain::cli {
namespace {

bool runs(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
         ::access(path.c_str(), X_OK) == 0;
}

}  // namespace

std::string find_command(const std::string& name) {
  if (name.find('/') != name.npos) return runs(name) ? name : "";
  const char* path = std::getenv("PATH");
  std::string_view left = path == nullptr ? "/bin:/usr/bin" : path;
  while (!left.empty()) {
    const std::size_t end = std::min(left.find(':'), left.size());
    const std::string folder(left.substr(0, end));
    const std::string candidate = (folder.empty() ? "." : folder) + "/" + name;
    if (runs(candidate)) return candidate;
    left.remove_prefix(std::min(end + 1, left.size()));
  }
  return "";
}

int become(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  std::fflush(nullptr);
  std::signal(SIGPIPE, inherited_sigpipe());
  ::execvp(pointers[0], pointers.data());
  const int why = errno;
  const std::string name = "'" + words[0] + "'";
  if (why == ENOENT && find_command(words[0]).empty()) {
    (void)failed("there is no command " + name);
    return 127;
  }
  (void)failed("the command " + name +
               " cannot be executed: " + std::generic_category().message(why));
  return why == ENOENT ? 127 : 126;
}

}  // namespace ringmain::cli
