#include "ringmain/cli/run_command.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <string_view>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

#include "ringmain/cli/arguments.hpp"
#include "ringmain/cli/verbs.hpp"

namespace ringmain::cli {
namespace {

bool runs(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
         ::access(path.c_str(), X_OK) == 0;
}

/// True for a program of this machine that names no loader of libraries.
bool is_static(int fd) {
  ElfW(Ehdr) header;
  if (::pread(fd, &header, sizeof header, 0) != sizeof header ||
      std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_phentsize != sizeof(ElfW(Phdr))) {
    return false;
  }
  for (int i = 0; i < header.e_phnum; ++i) {
    ElfW(Phdr) segment;
    const auto at = static_cast<off_t>(header.e_phoff) + i * static_cast<off_t>(sizeof segment);
    if (::pread(fd, &segment, sizeof segment, at) != sizeof segment) return false;
    if (segment.p_type == PT_INTERP) return false;
  }
  return true;
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

std::string preload_hindrance(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return "";
  if ((status.st_mode & S_ISUID) != 0 && status.st_uid != ::getuid()) {
    return "it runs with another user's rights (setuid)";
  }
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return "";
  const bool statically = is_static(fd);
  ::close(fd);
  return statically ? "it is linked statically" : "";
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
