// How does a sink open its file, so that several processes can share it and nobody is harmed?
//
// Every write goes to the end, and the first process of a command (of `ringmain run`; else of
// itself) empties what an earlier one had left, unless a process that lives is still writing there:
// then it appends, and lines say whose they are. A file is ours or it is refused: no link is
// followed in its last part, nobody else owns it, no other name leads to it. New ones are for their
// owner only, 0600, or as RINGMAIN_OUTPUT_MODE says.
#pragma once
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <fcntl.h>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

#include "../../bus/result.hpp"

namespace ringmain::formats {

/// Below a run: when it began, CLOCK_REALTIME_COARSE in ns, which is the clock of files.
constexpr const char* kRunStartedVariable = "RINGMAIN_RUN_STARTED";
/// The same for a process that has begun in a run and may clear its environment: kept for ever.
/// Each library has its own.
[[gnu::visibility("hidden")]] inline constinit const char* run_started_at_start = nullptr;
/// For the sinks of the registry's library. Before anything is opened there.
void keep_run_started(const char* started) noexcept;
/// nullptr: below no run.
inline const char* run_started() noexcept {
  return run_started_at_start != nullptr ? run_started_at_start : std::getenv(kRunStartedVariable);
}
/// In octal: the mode of new files, such as 0640.
constexpr const char* kOutputModeVariable = "RINGMAIN_OUTPUT_MODE";

namespace detail {

inline mode_t output_mode() noexcept {
  const char* const said = std::getenv(kOutputModeVariable);
  char* end = nullptr;
  const long mode = said == nullptr ? 0 : std::strtol(said, &end, 8);
  const bool fine = said != nullptr && end != said && *end == '\0' && mode > 0 && mode <= 0666;
  return fine ? static_cast<mode_t>(mode) & 0666 : 0600;
}

/// A descriptor of this process, which the user named on purpose: what it leads to is its business.
inline bool is_descriptor(std::string_view path) noexcept {
  return path.starts_with("/dev/fd/") || path.starts_with("/proc/self/fd/");
}

/// "" or why not to write there.
inline std::string output_fault(const struct stat& status, bool made_now) {
  if (S_ISCHR(status.st_mode)) return "";  // /dev/null, a terminal: the system's
  if (!S_ISREG(status.st_mode) && !S_ISFIFO(status.st_mode)) {
    return "it is no file; name one, or a pipe";
  }
  if (!made_now && status.st_uid != ::geteuid()) {
    return "it belongs to user " + std::to_string(status.st_uid) + "; name a file of your own";
  }
  if (S_ISREG(status.st_mode) && status.st_nlink > 1) {
    return "it has another name (a hard link); remove it or name another file";
  }
  return "";
}

inline std::string open_fault(int why) {
  if (why == ELOOP) return "it is a link, which is not followed; name what it leads to";
  return std::generic_category().message(why);
}

inline int descriptor_of(const std::string& path, bool& made_now) noexcept {
  constexpr int kHow = O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
  if (is_descriptor(path)) return ::open(path.c_str(), kHow);
  for (int tries = 0; tries < 100; ++tries) {  // others may make and remove it meanwhile
    made_now = false;
    int fd = ::open(path.c_str(), kHow | O_NOFOLLOW);
    if (fd >= 0 || errno != ENOENT) return fd;
    fd = ::open(path.c_str(), kHow | O_NOFOLLOW | O_CREAT | O_EXCL, output_mode());
    made_now = fd >= 0;
    if (fd >= 0 || errno != EEXIST) return fd;
  }
  return -1;
}

/// Which processes write there is said by locks of bytes that no file has, each of an open file:
/// `flock` and the like of strangers are nothing to them.
constexpr off_t kTurn = off_t{1} << 62;  // of the one that looks who else writes, and empties
constexpr off_t kWriters = kTurn + 1;    // from here on a byte for each that writes

inline struct flock bytes(off_t first, off_t count) noexcept {
  struct flock made {};
  made.l_type = F_WRLCK;
  made.l_whence = SEEK_SET;
  made.l_start = first;
  made.l_len = count;
  return made;
}
inline bool lock_byte(int fd, off_t which) noexcept {
  struct flock one = bytes(which, 1);
  return ::fcntl(fd, F_OFD_SETLK, &one) == 0;
}
inline void unlock_byte(int fd, off_t which) noexcept {
  struct flock one = bytes(which, 1);
  one.l_type = F_UNLCK;
  (void)::fcntl(fd, F_OFD_SETLK, &one);
}
/// Why a lock failed: false where this file system has none. Nobody is seen there.
inline bool is_held() noexcept {
  return errno == EAGAIN || errno == EACCES;
}
/// What somebody else has locked of these; its l_type is F_UNLCK where nobody has.
inline struct flock held(int fd, off_t first, off_t count) noexcept {
  struct flock found = bytes(first, count);
  if (::fcntl(fd, F_OFD_GETLK, &found) != 0) found.l_type = F_UNLCK;
  return found;
}

/// Waits for those of us that are just emptying the file, a second at most. False: a stranger has
/// locked all of it, and nobody can be seen.
inline bool take_turn(int fd) noexcept {
  for (int tries = 0; tries < 1000; ++tries) {
    if (lock_byte(fd, kTurn) || !is_held()) return true;
    const struct flock holder = held(fd, kTurn, 1);
    if (holder.l_type != F_UNLCK && (holder.l_start != kTurn || holder.l_len != 1)) return false;
    const timespec some{0, 1'000'000};
    (void)::nanosleep(&some, nullptr);
  }
  return false;
}

/// Says, as long as the file is open here, that it is written.
inline void enlist(int fd) noexcept {
  constexpr off_t kApart = off_t{1} << 24;  // more than there are processes
  for (int tries = 0; tries < 64; ++tries) {
    if (lock_byte(fd, kWriters + ::getpid() + tries * kApart) || !is_held()) return;
  }
}

/// Where this is the only one of us that writes, takes off what is after `end`, if the file still
/// ends at `torn_end`. False where it stays.
inline bool cut_alone(int fd, off_t end, off_t torn_end) noexcept {
  if (!lock_byte(fd, kTurn)) return false;
  struct stat status {};
  const bool cut = held(fd, kWriters, 0).l_type == F_UNLCK && ::fstat(fd, &status) == 0 &&
                   status.st_size == torn_end && ::ftruncate(fd, end) == 0;
  unlock_byte(fd, kTurn);
  return cut;
}

inline void empty_if_earlier(int fd, const char* started) noexcept {
  const bool seen = take_turn(fd);
  struct stat status {};
  if (seen && held(fd, kWriters, 0).l_type == F_UNLCK && ::fstat(fd, &status) == 0 &&
      status.st_size > 0) {
    const std::int64_t written_ns =
        std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
    const bool earlier = started == nullptr || written_ns < std::strtoll(started, nullptr, 10);
    if (earlier) (void)!::ftruncate(fd, 0);
  }
  enlist(fd);
  unlock_byte(fd, kTurn);
}

}  // namespace detail

struct OpenedOutput {
  int fd = -1;             // to append to, closed at an exec
  bool has_reader = true;  // false: a pipe that nobody reads yet, and no descriptor
};

/// Blocks for nobody but, for a second at most, for one that is just emptying the file. An Error:
/// one sentence.
inline Result<OpenedOutput> open_shared_output(const std::string& path) {
  bool made_now = false;
  struct stat status {};
  const int fd = detail::descriptor_of(path, made_now);
  if (fd < 0 && errno == ENXIO) return OpenedOutput{-1, false};
  std::string fault = fd < 0 || ::fstat(fd, &status) != 0 ? detail::open_fault(errno) : "";
  if (fault.empty() && !detail::is_descriptor(path)) fault = detail::output_fault(status, made_now);
  if (!fault.empty()) {
    if (fd >= 0) ::close(fd);
    return Error{Error::Code::system, "cannot open " + path + " for writing: " + fault};
  }
  (void)::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) & ~O_NONBLOCK);
  if (S_ISREG(status.st_mode)) detail::empty_if_earlier(fd, run_started());
  return OpenedOutput{fd, true};
}

}  // namespace ringmain::formats
