// How does a sink write its file, so that nobody else's file is ever written, and no line is torn?
//
// The descriptor may be closed or taken over by others in the process, so each write looks first
// whether it still is the file that was opened. A pipe that nobody reads yet is opened again at
// each write.
#pragma once
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <fcntl.h>
#include <poll.h>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "ringmain/bus/result.hpp"

#include "ringmain/adapters/high_descriptor.hpp"
#include "ringmain/adapters/output_open.hpp"

namespace ringmain::registry {

/// An open file, FIFO or device. Move-only. Threads: one at a time.
class OutputFile {
 public:
  OutputFile() = default;
  OutputFile(OutputFile&& other) noexcept { *this = std::move(other); }
  OutputFile& operator=(OutputFile&& other) noexcept {
    (void)close();
    fd_ = std::exchange(other.fd_, -1);
    path_ = std::move(other.path_);
    device_ = other.device_;
    inode_ = other.inode_;
    waits_ = other.waits_;
    return *this;
  }
  ~OutputFile() { (void)close(); }

  /// As open_shared_output(). An Error: one sentence.
  static Result<OutputFile> open(const std::string& path) {
    OutputFile file;
    file.path_ = path;
    if (const std::string fault = file.reopen(); !fault.empty())
      return Error{Error::Code::system, fault};
    return file;
  }

  /// Writes all of it; waits where a FIFO or a terminal is full or has no reader, until
  /// `give_up`. Returns how many bytes stay in the file: all, or whole lines only. Then errno says
  /// why, and is ESTALE where the descriptor is no longer that file.
  std::size_t write(std::string_view lines, const std::atomic<bool>& give_up) noexcept {
    std::size_t written = 0;
    while (written < lines.size()) {
      if (!still_ours(give_up)) break;
      const ssize_t now = ::write(fd_, lines.data() + written, lines.size() - written);
      if (now >= 0) {
        written += static_cast<std::size_t>(now);
      } else if (errno == EAGAIN) {
        pollfd room{fd_, POLLOUT, 0};
        (void)::poll(&room, 1, kLookMs);
        if (give_up) {
          errno = ETIMEDOUT;
          break;
        }
      } else if (errno != EINTR) {
        break;
      }
    }
    return written == lines.size() ? written : cut_torn_line(lines, written);
  }

  /// False: errno says why; a network file system may say only now that something is lost.
  bool close() noexcept {
    const int fd = std::exchange(fd_, -1);
    struct stat now {};
    if (fd < 0 || ::fstat(fd, &now) != 0 || !is(now)) return true;  // another's by now
    return ::close(fd) == 0;
  }

 private:
  enum : int { kLookMs = 20 };

  /// "" or one sentence.
  std::string reopen() {
    const auto opened = open_shared_output(path_);
    if (!opened) return opened.error().message;
    waits_ = !opened.value().has_reader;
    if (waits_) return {};
    fd_ = move_high(opened.value().fd);
    struct stat now {};
    (void)::fstat(fd_, &now);
    device_ = now.st_dev;
    inode_ = now.st_ino;
    if (!S_ISREG(now.st_mode)) (void)::fcntl(fd_, F_SETFL, ::fcntl(fd_, F_GETFL) | O_NONBLOCK);
    return {};
  }

  /// Below a run only: elsewhere it was the program that opened it.
  static int move_high(int fd) noexcept {
    if (std::getenv(kRunStartedVariable) == nullptr) return fd;
    const int high = duplicate_high(fd);
    if (high < 0) return fd;
    (void)::close(fd);
    return high;
  }

  [[nodiscard]] bool is(const struct stat& now) const noexcept {
    return now.st_dev == device_ && now.st_ino == inode_;
  }

  /// Waits for the reader of a FIFO. False: errno says why.
  bool still_ours(const std::atomic<bool>& give_up) noexcept {
    while (fd_ < 0) {
      errno = EBADF;
      if (!waits_) return false;
      try {
        if (!reopen().empty()) return false;
      } catch (...) {
        errno = ENOMEM;
        return false;
      }
      if (fd_ >= 0) break;
      (void)::poll(nullptr, 0, kLookMs);
      if (give_up) {
        errno = ETIMEDOUT;
        return false;
      }
    }
    struct stat now {};
    if (::fstat(fd_, &now) == 0 && is(now)) return true;
    fd_ = -1;  // closed, or somebody else's: not ours to close
    waits_ = false;
    errno = ESTALE;
    return false;
  }

  /// What stands after the last whole line goes, if nobody has written after it.
  std::size_t cut_torn_line(std::string_view lines, std::size_t written) noexcept {
    const int why = errno;
    const std::size_t last = lines.substr(0, written).rfind('\n');
    const std::size_t whole = last == lines.npos ? 0 : last + 1;
    struct stat now {};
    if (whole < written && fd_ >= 0 && ::fstat(fd_, &now) == 0 && S_ISREG(now.st_mode)) {
      const off_t end = ::lseek(fd_, 0, SEEK_CUR);
      if (end == now.st_size) (void)!::ftruncate(fd_, end - static_cast<off_t>(written - whole));
    }
    errno = why;
    return whole;
  }

  int fd_ = -1;
  bool waits_ = false;  // for a reader
  std::string path_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

}  // namespace ringmain::registry
