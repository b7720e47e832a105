// How do lines get into a file? They are held until there are enough of them or no more events are
// at hand, written whole, and counted. For sinks and all else that writes lines.
#pragma once
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <string>
#include <system_error>
#include <utility>

#include "output_file.hpp"

namespace ringmain::formats {

/// A file of lines. After the first write that failed (a full disk, a closed pipe) it writes
/// nothing more, so that no line follows a torn one, and counts the lines instead. Threads: any.
class LineFile {
 public:
  struct Figures {
    std::uint64_t written = 0;
    std::uint64_t lost = 0;  // not known to be written
    std::string error;       // one sentence about the first failure, or ""
  };

  /// A stream of the caller's, which stays open.
  LineFile(std::FILE* to, std::string name) : stream_(to), name_(std::move(name)) {}
  LineFile(OutputFile to, std::string name) : file_(std::move(to)), name_(std::move(name)) {}
  LineFile(const LineFile&) = delete;
  LineFile& operator=(const LineFile&) = delete;
  ~LineFile() { close(); }

  /// Adds one line: append(std::string&) puts it after what is held, with its line end.
  template <class F>
  void add(F append) {
    const std::lock_guard lock(mutex_);
    append(text_);
    ++added_;
    if (text_.size() >= kBytesHeld) write();
  }
  /// Writes what is held. Call it whenever no more events are at hand.
  void flush() {
    const std::lock_guard lock(mutex_);
    write();
  }
  void close() {
    const std::lock_guard lock(mutex_);
    write();
    if (!file_.close()) fail();
    closed_ = true;
  }
  /// Waits for a write that is under way.
  [[nodiscard]] Figures figures() const {
    const std::lock_guard lock(mutex_);
    return {written_, added_ - written_, error_};
  }
  /// How many lines are not in the file, as far as is known now. Does not wait.
  [[nodiscard]] std::uint64_t unwritten() const noexcept {
    const std::uint64_t written = written_;  // read first, so that it never exceeds what was added
    return added_ - written;
  }
  /// Ends a write that waits for a reader, now and later. Does not wait.
  void give_up() noexcept { give_up_ = true; }

 private:
  static constexpr std::size_t kBytesHeld = 64 * 1024;

  void write() {
    if (text_.empty()) return;
    std::size_t kept = 0;
    if (!closed_ && error_.empty()) {
      kept = put();
      if (kept < text_.size()) fail();
    }
    written_ += static_cast<std::uint64_t>(
        std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(kept), '\n'));
    text_.clear();
  }
  std::size_t put() {
    if (stream_ == nullptr) return file_.write(text_, give_up_);
    const bool all = std::fwrite(text_.data(), 1, text_.size(), stream_) == text_.size() &&
                     std::fflush(stream_) == 0;
    return all ? text_.size() : 0;
  }
  void fail() {
    const int why = errno;
    if (!error_.empty()) return;
    error_ = "cannot write to " + name_ + ": ";
    if (why == ESTALE) {
      error_ += "the program closed the descriptor, or uses it for a file of its own";
    } else if (why == ETIMEDOUT) {
      error_ += "nobody reads it";
    } else {
      error_ += std::generic_category().message(why);
      if (why == ENOSPC) error_ += "; free some space there";
    }
  }

  mutable std::mutex mutex_;
  OutputFile file_;
  std::FILE* stream_ = nullptr;
  const std::string name_;
  bool closed_ = false;
  std::string text_;  // whole lines
  std::string error_;
  std::atomic<std::uint64_t> added_{0};
  std::atomic<std::uint64_t> written_{0};
  std::atomic<bool> give_up_{false};
};

}  // namespace ringmain::formats
