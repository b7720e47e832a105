#include "cli/sort_input.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "adapters/sources/replay/kineto_bytes.hpp"

#include "cli/each_line.hpp"

namespace ringmain::cli {
namespace {

constexpr std::size_t kWindowBytes = 16 << 10;
constexpr std::size_t kBlockBytes = 1 << 20;

std::string reason(int why) {
  return std::generic_category().message(why);
}

/// Opens a file without a name in the folder for temporary files; -1 and errno if that fails.
int nameless_file(const std::string& folder) {
  const int fd = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != ENOENT)) return fd;
  std::string path = folder + "/ringmain-sort-XXXXXX";
  const int named = ::mkostemp(path.data(), O_CLOEXEC);
  if (named >= 0) ::unlink(path.c_str());
  return named;
}

bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t wrote = ::write(fd, bytes.data(), bytes.size());
    if (wrote < 0 && errno != EINTR) return false;
    if (wrote > 0) bytes.remove_prefix(static_cast<std::size_t>(wrote));
  }
  return true;
}

}  // namespace

Input::Input(const std::string& path) : name_(path == "-" ? "standard input" : path) {
  fd_ = path == "-" ? ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
                    : ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY);
  struct stat status {};
  if (fd_ < 0 || ::fstat(fd_, &status) != 0) {
    const int why = errno;
    if (fd_ >= 0) ::close(fd_);
    throw CannotSort(name_ + " cannot be read: " + reason(why));
  }
  if (S_ISDIR(status.st_mode)) {
    ::close(fd_);
    throw CannotSort(name_ + " cannot be read: it is a folder; name the files in it");
  }
  device_ = status.st_dev;
  inode_ = status.st_ino;
  regular_ = S_ISREG(status.st_mode);
  if (!regular_) return;
  const off_t at = path == "-" ? std::max<off_t>(::lseek(fd_, 0, SEEK_CUR), 0) : 0;
  first_ = static_cast<std::uint64_t>(at);
  bytes_ = static_cast<std::uint64_t>(std::max<off_t>(status.st_size - at, 0));
}

Input::Input(Input&& other) noexcept
    : name_(std::move(other.name_)),
      fd_(std::exchange(other.fd_, -1)),
      first_(other.first_),
      bytes_(other.bytes_),
      device_(other.device_),
      inode_(other.inode_),
      regular_(other.regular_),
      window_(std::move(other.window_)),
      window_at_(other.window_at_) {}

Input::~Input() {
  if (fd_ >= 0) ::close(fd_);
}

bool Input::plain() const {
  if (!regular_) return false;
  char begin[2] = {};
  return read(0, begin, sizeof begin) < sizeof begin || begin[0] != '\x1f' || begin[1] != '\x8b';
}

void Input::spool() {
  const char* const said = std::getenv("TMPDIR");
  const std::string folder = said != nullptr && *said != '\0' ? said : "/tmp";
  const auto failed = [&](int why) {
    return CannotSort(name_ + " cannot be kept in " + folder + " meanwhile: " + reason(why) +
                      "; TMPDIR names another folder");
  };
  const int kept = nameless_file(folder);
  if (kept < 0) throw failed(errno);
  auto bytes = replay::KinetoBytes::of_descriptor(std::exchange(fd_, kept), name_);
  if (!bytes) throw CannotSort(in_one_clause(bytes.error().message));
  first_ = bytes_ = 0;
  std::vector<char> block(kBlockBytes);
  for (;;) {
    const auto got = bytes.value().read(block);
    if (!got) throw CannotSort(in_one_clause(got.error().message));
    if (got.value() == 0) return;
    if (!write_all(kept, {block.data(), got.value()})) throw failed(errno);
    bytes_ += got.value();
  }
}

std::size_t Input::read(std::uint64_t at, char* into, std::size_t most) const {
  const std::size_t there = static_cast<std::size_t>(std::min<std::uint64_t>(most, bytes_ - at));
  std::size_t done = 0;
  while (done < there) {
    const ssize_t got =
        ::pread(fd_, into + done, there - done, static_cast<off_t>(first_ + at + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw CannotSort(name_ + " cannot be read: " + reason(errno));
    if (got == 0) throw CannotSort(name_ + " became shorter while it was read");
    done += static_cast<std::size_t>(got);
  }
  return there;
}

std::string_view Input::again(std::uint64_t at, std::size_t length) {
  const bool inside = at >= window_at_ && at + length <= window_at_ + window_.size();
  if (!inside) {
    window_.resize(std::max(length, kWindowBytes));
    window_at_ = at;
    window_.resize(read(at, window_.data(), window_.size()));
  }
  return {window_.data() + (at - window_at_), length};
}

std::uint64_t Input::line_number(std::uint64_t at) const {
  std::vector<char> block(kBlockBytes);
  std::uint64_t number = 1;
  for (std::uint64_t from = 0; from < at;) {
    const std::size_t most =
        static_cast<std::size_t>(std::min<std::uint64_t>(block.size(), at - from));
    const std::size_t got = read(from, block.data(), most);
    number += static_cast<std::uint64_t>(
        std::count(block.begin(), block.begin() + static_cast<std::ptrdiff_t>(got), '\n'));
    from += got;
  }
  return number;
}

}  // namespace ringmain::cli
