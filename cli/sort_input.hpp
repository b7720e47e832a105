// Where do lines come from? From files, and from pipes and gzip by way of a nameless temporary
// file, because lines are read twice: once to see their times, once to write them in order.
#pragma once
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <sys/types.h>
#include <vector>

namespace ringmain::cli {

/// Why nothing could be sorted: one sentence.
struct CannotSort : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// One file. What is appended after it was opened is not read.
class Input {
 public:
  /// `path`: "-" is standard input. Waits for the writer of a pipe. Throws CannotSort.
  explicit Input(const std::string& path);
  Input(Input&& other) noexcept;
  Input& operator=(Input&&) = delete;
  ~Input();

  /// Can it be read where it lies? Not a pipe, nor what begins as gzip. Throws CannotSort.
  [[nodiscard]] bool plain() const;
  /// Copies it into a nameless file in TMPDIR, unpacked if it is gzip. Throws CannotSort.
  void spool();

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] bool is(const struct stat& status) const noexcept {
    return status.st_dev == device_ && status.st_ino == inode_;
  }
  [[nodiscard]] bool same_file(const Input& other) const noexcept {
    return other.device_ == device_ && other.inode_ == inode_;
  }
  [[nodiscard]] bool regular() const noexcept { return regular_; }

  /// As many of its bytes from `at` on as there are and `into` holds. Throws CannotSort.
  std::size_t read(std::uint64_t at, char* into, std::size_t most) const;
  /// Bytes that were read before, from a window over the file; valid until the next call.
  std::string_view again(std::uint64_t at, std::size_t length);
  /// The number of the line that begins at `at`.
  [[nodiscard]] std::uint64_t line_number(std::uint64_t at) const;

 private:
  std::string name_;
  int fd_ = -1;
  std::uint64_t first_ = 0;  // where standard input stood at our start
  std::uint64_t bytes_ = 0;
  dev_t device_ = 0;
  ino_t inode_ = 0;
  bool regular_ = false;
  std::vector<char> window_;
  std::uint64_t window_at_ = 0;
};

}  // namespace ringmain::cli
