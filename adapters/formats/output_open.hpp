// How does a sink open its file, so that several processes can share it and no other file is
// harmed?
//
// Every write goes to the end. The first process of a `ringmain run`, or any process outside of
// one, empties what an earlier one left, unless a living process still writes there: then it
// appends, and each line says which process it is from. A file is refused if the last part of its
// path is a link, if another user owns it, or if it has a second name. New files are for their
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

/// Set below a run: when that began, CLOCK_REALTIME_COARSE in ns, which is the clock of files.
constexpr const char* kRunStartedVariable = "RINGMAIN_RUN_STARTED";
/// The variable's value at the start of a process in a run, which may clear its environment later:
/// kept for ever. Each library has its own.
[[gnu::visibility("hidden")]] inline constinit const char* run_started_at_start = nullptr;
/// Sets it for the sinks of the registry's library. Call it before the first is opened.
void keep_run_started(const char* started) noexcept;
/// nullptr: this process belongs to no run.
inline const char* run_started() noexcept {
  return run_started_at_start != nullptr ? run_started_at_start : std::getenv(kRunStartedVariable);
}
/// The mode of new files in octal, such as 0640.
constexpr const char* kOutputModeVariable = "RINGMAIN_OUTPUT_MODE";

namespace detail {

inline mode_t output_mode() noexcept {
  const char* const said = std::getenv(kOutputModeVariable);
  char* end = nullptr;
  const long mode = said == nullptr ? 0 : std::strtol(said, &end, 8);
  const bool fine = said != nullptr && end != said && *end == '\0' && mode > 0 && mode <= 0666;
  return fine ? static_cast<mode_t>(mode) & 0666 : 0600;
}

/// Is it a descriptor of this process? The user named it on purpose, so it may lead to any file.
inline bool is_descriptor(std::string_view path) noexcept {
  return path.starts_with("/dev/fd/") || path.starts_with("/proc/self/fd/");
}

/// "", or why the file is refused.
inline std::string output_fault(const struct stat& status, bool made_now) {
  if (S_ISCHR(status.st_mode)) return "";  // /dev/null, a terminal: they belong to the system
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

inline std::string open_fault(int why, bool by_path = true) {
  if (why == ELOOP) return "it is a link, which is not followed; name what it leads to";
  const std::string reason = std::generic_category().message(why);
  return by_path && why == ENOENT ? reason + "; make its folder first" : reason;
}

inline int descriptor_of(const std::string& path, bool& made_now) noexcept {
  constexpr int kHow = O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
  if (is_descriptor(path)) return ::open(path.c_str(), kHow);
  for (int tries = 0; tries < 100; ++tries) {  // other processes may make and remove it meanwhile
    made_now = false;
    int fd = ::open(path.c_str(), kHow | O_NOFOLLOW);
    if (fd >= 0 || errno != ENOENT) return fd;
    fd = ::open(path.c_str(), kHow | O_NOFOLLOW | O_CREAT | O_EXCL, output_mode());
    made_now = fd >= 0;
    if (fd >= 0 || errno != EEXIST) return fd;
  }
  return -1;
}

/// Locks on bytes far past any file's end say which processes write there. They belong to the open
/// file, so `flock` and similar locks of other programs do not meet them.
constexpr off_t kTurn = off_t{1} << 62;  // held while a process looks for writers, and empties
constexpr off_t kWriters = kTurn + 1;    // from here on a byte for each process that writes

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
/// Why did a lock fail? True: another process has it. False: this file system has no locks, and no
/// other writer can be seen.
inline bool is_held() noexcept {
  return errno == EAGAIN || errno == EACCES;
}
/// Which of these bytes another process has locked; l_type is F_UNLCK where none has.
inline struct flock held(int fd, off_t first, off_t count) noexcept {
  struct flock found = bytes(first, count);
  if (::fcntl(fd, F_OFD_GETLK, &found) != 0) found.l_type = F_UNLCK;
  return found;
}

/// Waits at most a second for a process of ringmain that is emptying the file. False: another
/// program has locked all of it, so writers cannot be seen.
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

/// Says that this process writes the file, as long as it is open here.
inline void enlist(int fd) noexcept {
  constexpr off_t kApart = off_t{1} << 24;  // more than there are processes
  for (int tries = 0; tries < 64; ++tries) {
    if (lock_byte(fd, kWriters + ::getpid() + tries * kApart) || !is_held()) return;
  }
}

/// Cuts the file at `end`, if no other process of ringmain writes it and it still ends at
/// `torn_end`. False: it stays as it is.
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
  bool has_reader = true;  // false: a pipe without a reader yet, and no descriptor
};

/// Does not block, but for a second at most while another process empties the file. An Error: one
/// sentence.
inline Result<OpenedOutput> open_shared_output(const std::string& path) {
  bool made_now = false;
  struct stat status {};
  const int fd = detail::descriptor_of(path, made_now);
  if (fd < 0 && errno == ENXIO) return OpenedOutput{-1, false};
  const bool by_path = !detail::is_descriptor(path);
  std::string fault = fd < 0 || ::fstat(fd, &status) != 0 ? detail::open_fault(errno, by_path) : "";
  if (fault.empty() && by_path) fault = detail::output_fault(status, made_now);
  if (!fault.empty()) {
    if (fd >= 0) ::close(fd);
    return Error{Error::Code::system, "cannot open " + path + " for writing: " + fault};
  }
  (void)::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) & ~O_NONBLOCK);
  if (S_ISREG(status.st_mode)) detail::empty_if_earlier(fd, run_started());
  return OpenedOutput{fd, true};
}

}  // namespace ringmain::formats
