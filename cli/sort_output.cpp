#include "cli/sort_output.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "adapters/formats/output_open.hpp"

#include "cli/verbs.hpp"

namespace ringmain::cli {
namespace {

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == path.npos ? "." : path.substr(0, slash + 1);
}

/// A pattern for a name in `path`'s folder, with room for the part that makes it unique.
std::string name_beside(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::size_t begin = slash == path.npos ? 0 : slash + 1;
  return path.substr(0, begin) + "." + path.substr(begin, 200) + ".XXXXXX";
}

/// Gives the nameless file a unique name; "" and errno if that fails.
std::string named(int fd, const std::string& path) {
  const std::string self = "/proc/self/fd/" + std::to_string(fd);
  for (unsigned n = 0; n < 10'000; ++n) {
    std::string name = name_beside(path);
    std::string digits = std::to_string(n);
    name.replace(name.size() - digits.size(), digits.size(), digits);
    if (::linkat(AT_FDCWD, self.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0) {
      return name;
    }
    if (errno != EEXIST) return "";
  }
  return "";
}

}  // namespace

void SortOutput::unwritten(int why) const {
  if (standard_ && why == EPIPE) end_as_nobody_reads();
  throw CannotSort(name_ + " cannot be written: " + std::generic_category().message(why));
}

SortOutput::SortOutput(const std::string& path, const std::vector<Input>& inputs)
    : name_(path), standard_(path == "-" || path == "/dev/stdout") {
  if (standard_) name_ = "standard output";
  const bool descriptor = standard_ || formats::detail::is_descriptor(path);
  struct stat status {};
  const bool there = standard_    ? ::fstat(STDOUT_FILENO, &status) == 0
                     : descriptor ? ::stat(path.c_str(), &status) == 0
                                  : ::lstat(path.c_str(), &status) == 0;
  if (there && S_ISLNK(status.st_mode)) {
    throw CannotSort(name_ + " cannot be written: " + formats::detail::open_fault(ELOOP));
  }
  const bool is_read = there && !S_ISCHR(status.st_mode) &&
                       std::any_of(inputs.begin(), inputs.end(),
                                   [&status](const Input& input) { return input.is(status); });
  if (is_read) throw CannotSort(name_ + " is read and cannot be written too; name another file");
  if (there && !descriptor) {
    const std::string fault = formats::detail::output_fault(status, false);
    if (!fault.empty()) throw CannotSort(name_ + " cannot be written: " + fault);
  }
  if (standard_) {
    fd_ = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
  } else if (there && (descriptor || !S_ISREG(status.st_mode))) {
    fd_ = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY);
  } else {
    open_beside(path, there ? status.st_mode & 0777 : formats::detail::output_mode());
  }
  if (fd_ < 0) unwritten(errno);
}

void SortOutput::open_beside(const std::string& path, mode_t mode) {
  path_ = path;
  const std::string folder = folder_of(path);
  if (path == folder)
    throw CannotSort(name_ + " cannot be written: it names no file, but a folder");
  const int unmade = ::mkdir(folder.c_str(), 0700) == 0 ? 0 : errno;
  if (unmade == ENOENT) {
    throw CannotSort(name_ + " cannot be written: more than its own folder is missing; make " +
                     folder + " first");
  }
  fd_ = ::open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, mode);
  if (fd_ >= 0) return;
  if (errno == ENOENT && unmade != 0 && unmade != EEXIST) {
    throw CannotSort(name_ + " cannot be written: " + folder +
                     " cannot be made: " + std::generic_category().message(unmade));
  }
  if (errno != EOPNOTSUPP && errno != EISDIR) unwritten(errno);
  temporary_ = name_beside(path);  // a file system without nameless files
  fd_ = ::mkostemp(temporary_.data(), O_CLOEXEC);
  if (fd_ < 0) {
    temporary_.clear();
  } else {
    (void)::fchmod(fd_, mode);
  }
}

SortOutput::~SortOutput() {
  if (fd_ >= 0) ::close(fd_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void SortOutput::empty() {
  std::string_view bytes = held_;
  while (!bytes.empty()) {
    const ssize_t wrote = ::write(fd_, bytes.data(), bytes.size());
    if (wrote < 0 && errno != EINTR) unwritten(errno);
    if (wrote > 0) bytes.remove_prefix(static_cast<std::size_t>(wrote));
  }
  held_.clear();
}

void SortOutput::finish() {
  empty();
  if (!path_.empty() && ::fsync(fd_) != 0 && errno != EINVAL) unwritten(errno);
  if (!path_.empty() && temporary_.empty()) temporary_ = named(fd_, path_);
  if (!path_.empty() && temporary_.empty()) unwritten(errno);
  if (::close(std::exchange(fd_, -1)) != 0) unwritten(errno);
  if (path_.empty()) return;
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) unwritten(errno);
  temporary_.clear();
}

}  // namespace ringmain::cli
