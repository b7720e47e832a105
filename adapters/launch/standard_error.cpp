#include "adapters/launch/standard_error.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <sys/stat.h>
#include <unistd.h>

#include "adapters/formats/high_descriptor.hpp"
#include "adapters/launch/say.hpp"

namespace ringmain::run {
namespace {

/// Remembers the file. Set before the run's thread starts, and then by that thread only.
class StandardError {
 public:
  void remember() noexcept {
    if (remembered_) return;
    struct stat now {};
    remembered_ = true;
    there_ = ::fstat(STDERR_FILENO, &now) == 0;
    device_ = now.st_dev;
    inode_ = now.st_ino;
  }
  /// False where another file has that number now.
  [[nodiscard]] bool holds(int fd) const noexcept { return !remembered_ || is(fd); }
  /// For a thread that shares the program's descriptors: keeps a second one, at a number that
  /// programs seldom close.
  void keep_one_more() noexcept {
    if (is(STDERR_FILENO)) high_ = formats::duplicate_high(STDERR_FILENO);
  }
  /// A descriptor that is that file now; -1: there is none.
  [[nodiscard]] int number() const noexcept {
    if (high_ >= 0 && is(high_)) return high_;
    return !remembered_ || is(STDERR_FILENO) ? STDERR_FILENO : -1;
  }

 private:
  [[nodiscard]] bool is(int fd) const noexcept {
    struct stat now {};
    return there_ && ::fstat(fd, &now) == 0 && now.st_dev == device_ && now.st_ino == inode_;
  }

  bool remembered_ = false;
  bool there_ = false;
  int high_ = -1;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};
constinit StandardError standard_error;

}  // namespace

void remember_standard_error() noexcept {
  standard_error.remember();
}

bool is_standard_error(int fd) noexcept {
  return standard_error.holds(fd);
}
void keep_one_more_standard_error() noexcept {
  standard_error.keep_one_more();
}

void write_sentence(std::string_view sentence) noexcept {
  const iovec line{const_cast<char*>(sentence.data()), sentence.size()};
  write_unnoticed(standard_error.number(), &line, 1);
}

void tell_unheard(const char* why) noexcept {
  char line[256];
  const int bytes = std::snprintf(line, sizeof line, "ringmain: nothing is heard from %s: %s\n",
                                  ::program_invocation_short_name, why);
  write_sentence({line, std::min(sizeof line - 1, static_cast<std::size_t>(bytes))});
}

}  // namespace ringmain::run
