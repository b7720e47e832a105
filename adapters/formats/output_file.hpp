// How does a sink write its file, so that it never writes into another file, and tears no line?
//
// Other code in the process may close the descriptor or take over its number, so each write first
// checks that it still is the file that was opened. A pipe without a reader is opened again at each
// write.
#pragma once
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <optional>
#include <poll.h>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "../../bus/result.hpp"

#include "high_descriptor.hpp"
#include "output_open.hpp"

namespace ringmain::formats {

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
    regular_ = other.regular_;
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

  /// Takes a file that other code opened, by another number. Its flags and its content stay as they
  /// are. Empty where there are few numbers.
  static std::optional<OutputFile> adopt(int fd) noexcept {
    OutputFile file;
    file.fd_ = duplicate_high(fd);
    struct stat now {};
    if (file.fd_ < 0 || ::fstat(file.fd_, &now) != 0) return std::nullopt;
    file.device_ = now.st_dev;
    file.inode_ = now.st_ino;
    return file;
  }

  /// Writes all lines; waits where a FIFO or a terminal is full or has no reader, until `give_up`.
  /// Returns how many bytes stay in the file: all, or fewer, but whole lines. If fewer, errno says
  /// why; ESTALE means that the descriptor is no longer that file.
  std::size_t write(std::string_view lines, const std::atomic<bool>& give_up) noexcept {
    Piece last;
    std::size_t written = 0;
    while (written < lines.size()) {
      if (!still_ours(give_up)) break;
      const ssize_t now = ::write(fd_, lines.data() + written, lines.size() - written);
      if (now >= 0) {
        written = append(last, lines, written, static_cast<std::size_t>(now));
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
    const int why = errno;
    const std::size_t torn = torn_bytes(lines, written);
    if (torn > 0 && regular_ && fd_ >= 0) undo(last, written - torn, torn);
    errno = why;
    return written - torn;
  }

  /// False: errno says why. Some network file systems report a loss only here.
  bool close() noexcept {
    const int fd = std::exchange(fd_, -1);
    struct stat now {};
    if (fd < 0 || ::fstat(fd, &now) != 0 || !is(now)) return true;  // no longer this file
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
    regular_ = S_ISREG(now.st_mode);
    if (!regular_) (void)::fcntl(fd_, F_SETFL, ::fcntl(fd_, F_GETFL) | O_NONBLOCK);
    return {};
  }

  /// Moves it below `ringmain run` only: elsewhere the program itself opened it.
  static int move_high(int fd) noexcept {
    if (run_started() == nullptr) return fd;
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
    fd_ = -1;  // closed, or another file by now: not to be closed here
    waits_ = false;
    errno = ESTALE;
    return false;
  }

  /// A piece of a regular file that was written here, perhaps by several calls.
  struct Piece {
    std::size_t begin = 0;  // in the lines
    off_t end = 0;          // in the file
  };

  /// How many of the `written` bytes come after the last whole line.
  static std::size_t torn_bytes(std::string_view lines, std::size_t written) noexcept {
    return written - (lines.substr(0, written).rfind('\n') + 1);  // npos + 1 is 0
  }

  /// Call it when `now` more bytes are in the file. Returns how many bytes of `lines` are in it;
  /// fewer than before where a line was torn and another process has written after its first part.
  std::size_t append(Piece& last, std::string_view lines, std::size_t written,
                     std::size_t now) noexcept {
    if (!regular_) return written + now;
    const off_t end = ::lseek(fd_, 0, SEEK_CUR);
    const std::size_t torn = torn_bytes(lines, written);
    if (end - static_cast<off_t>(now) != last.end) {
      if (torn > 0) {
        undo(last, written - torn, torn);
        (void)blank(end, now);
        written -= torn;
        now = 0;
      }
      last.begin = written;
    }
    last.end = end;
    return written + now;
  }

  /// Removes the first part of a torn line, which began at `line`, or, as other processes may have
  /// written after it, makes it blanks at the end of the line before it.
  void undo(const Piece& piece, std::size_t line, std::size_t torn) noexcept {
    const auto bytes = static_cast<off_t>(torn);
    if (detail::cut_alone(fd_, piece.end - bytes, piece.end)) return;
    (void)blank(piece.end, torn + (line > piece.begin ? 1 : 0));
  }

  /// Makes the `count` bytes in front of `end`, which this process wrote, blanks and a line end.
  /// Takes no room on a full disk.
  bool blank(off_t end, std::size_t count) noexcept {
    const int how = ::fcntl(fd_, F_GETFL);
    if (how < 0 || ::fcntl(fd_, F_SETFL, how & ~O_APPEND) != 0) return false;
    off_t at = end - static_cast<off_t>(count);
    for (ssize_t put = 1; put > 0 && at < end; at += put) {
      char blanks[256];
      std::memset(blanks, ' ', sizeof blanks);
      const std::size_t some = std::min(sizeof blanks, static_cast<std::size_t>(end - at));
      if (at + static_cast<off_t>(some) == end) blanks[some - 1] = '\n';
      put = ::pwrite(fd_, blanks, some, at);
    }
    (void)::fcntl(fd_, F_SETFL, how);
    return at == end;
  }

  int fd_ = -1;
  bool waits_ = false;  // for a reader
  bool regular_ = false;
  std::string path_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

}  // namespace ringmain::formats
