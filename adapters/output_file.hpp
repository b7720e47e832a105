// How does a sink open its file, so that several processes of one command can share it?
//
// Alone, the file is written anew. Below `ringmain run` the processes of the command append to it,
// and the first of them empties what an earlier run had left.
#pragma once
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <string>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace ringmain::registry {

/// Below a run: when it began, CLOCK_REALTIME_COARSE in ns, which is the clock of files.
constexpr const char* kRunStartedVariable = "RINGMAIN_RUN_STARTED";

namespace detail {
inline void empty_if_older(int fd, std::int64_t started_ns) noexcept {
  struct stat status {};
  (void)::flock(fd, LOCK_EX);  // two processes may come at once
  if (::fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0) {
    const std::int64_t written_ns =
        std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
    if (written_ns < started_ns) (void)!::ftruncate(fd, 0);
  }
  (void)::flock(fd, LOCK_UN);
}
}  // namespace detail

/// Unbuffered, so that what one call writes is one write: whole lines stay whole, and a forked
/// child has nothing of its parent's to write again. nullptr: errno says why.
inline std::FILE* open_output(const std::string& path) noexcept {
  const char* started = std::getenv(kRunStartedVariable);
  std::FILE* file = nullptr;
  if (started == nullptr) {
    file = std::fopen(path.c_str(), "we");
  } else {
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (fd < 0) return nullptr;
    detail::empty_if_older(fd, std::strtoll(started, nullptr, 10));
    file = ::fdopen(fd, "ae");
    if (file == nullptr) ::close(fd);
  }
  if (file != nullptr) (void)std::setvbuf(file, nullptr, _IONBF, 0);
  return file;
}

}  // namespace ringmain::registry
