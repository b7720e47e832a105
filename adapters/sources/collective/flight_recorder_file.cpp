#include "adapters/sources/collective/flight_recorder_file.hpp"

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/system/descriptor.hpp"

#include "bus/core/python_stacks.hpp"

#include "adapters/sources/collective/flight_recorder_partial.hpp"

namespace ringmain::collective::detail {
namespace {

using flight::ByteSink;

constexpr std::size_t kEntries = 2000;  // as PyTorch and torchcomms

/// What that variable says; "": it is not set.
std::string_view said_by(std::string_view name) noexcept {
  flight::FixedText<64> text;
  text += name;
  const char* const said = ::secure_getenv(text.c_str());
  return said == nullptr ? std::string_view() : said;
}
/// "TORCHCOMM_FR_BUFFER_SIZE"; `older`: PyTorch's name of it before.
std::string_view variable(FlightVariables of, std::string_view what,
                          std::string_view older = {}) noexcept {
  const bool torch = of == FlightVariables::torch;
  flight::FixedText<64> name;
  name += torch ? "TORCH_FR_" : "TORCHCOMM_FR_";
  name += what;
  const std::string_view said = said_by(name.view());
  return said.empty() && torch && !older.empty() ? said_by(older) : said;
}

bool is_true(std::string_view said) noexcept {
  return said == "1" || said == "true" || said == "True" || said == "TRUE";
}

void say(FlightFault& fault, std::string_view what, std::string_view of, int error) noexcept {
  char text[128];
  fault += what;
  fault += of;
  fault += ": ";
  fault += ::strerror_r(error, text, sizeof text);
}

/// A file that is larger than the process may write would cost it a SIGXFSZ.
bool is_allowed(const std::function<void(ByteSink&)>& write, std::uint64_t& bytes) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return true;
  flight::CountingSink count;
  write(count);
  count.flush();
  bytes = count.bytes;
  return limit.rlim_cur >= bytes;
}

bool is_folder(const char* path) noexcept {
  struct stat about {};
  return ::stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}
/// With those above it. 0, or what errno was.
int make_folder(FlightPath& folder) noexcept {
  if (is_folder(folder.c_str())) return 0;
  for (std::size_t end = 1; end <= folder.view().size(); ++end) {
    if (end != folder.view().size() && folder.view()[end] != '/') continue;
    FlightPath part;
    part += folder.view().substr(0, end);
    if (::mkdir(part.c_str(), 0777) == 0) continue;
    const int error = errno;
    if (!is_folder(part.c_str())) return error == EEXIST ? ENOTDIR : error;
  }
  return 0;
}

class FileSink final : public ByteSink {
 public:
  explicit FileSink(int fd) noexcept : fd_(fd) {}
  /// Has the disk have all of it. 0, or what errno was.
  [[nodiscard]] int finish() noexcept {
    flush();
    const bool there = ::fsync(fd_) == 0 || errno == EINVAL;  // not every file system has it
    return error_ != 0 || there ? error_ : errno;
  }

 private:
  void take(std::string_view bytes) noexcept override {
    while (error_ == 0 && !bytes.empty()) {
      const ssize_t written = ::write(fd_, bytes.data(), bytes.size());
      if (written < 0 && errno != EINTR) error_ = errno;
      if (written > 0) bytes.remove_prefix(static_cast<std::size_t>(written));
    }
  }

  const int fd_;
  int error_ = 0;
};

/// 0, or what errno was.
int write_once(FlightPath& path, FlightPath& folder, const std::function<void(ByteSink&)>& write,
               std::string_view& what) {
  what = "cannot write in ";
  FlightPath partial;
  const engine::Descriptor fd(make_partial(folder.view(), partial));
  if (fd.get() < 0) return errno;
  what = "cannot write ";
  FileSink to(fd.get());
  write(to);
  int error = to.finish();
  if (error == 0 && ::rename(partial.c_str(), path.c_str()) != 0) error = errno;
  if (error != 0) ::unlink(partial.c_str());
  return error;
}

/// "." for a path without one.
void folder_of(const FlightPath& path, FlightPath& folder) noexcept {
  const std::size_t end = path.view().rfind('/');
  folder += end == path.view().npos ? "." : path.view().substr(0, end == 0 ? 1 : end);
}

}  // namespace

std::size_t flight_entries(FlightVariables variables) {
  const auto said = variable(variables, "BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE");
  std::size_t entries = 0;
  (void)std::from_chars(said.data(), said.data() + said.size(), entries);
  return entries == 0 ? kEntries : entries;
}

void flight_path(FlightVariables variables, std::int64_t rank, FlightPath& path,
                 FlightFault& fault) noexcept {
  const auto said = variable(variables, "DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE");
  if (!said.empty()) {
    path += said;
    if (!is_true(variable(variables, "DUMP_DYNAMIC_FILE_NAME"))) path += rank;
  } else {
    const auto cache = said_by("XDG_CACHE_HOME"), home = said_by("HOME");
    path += cache.empty() ? home : cache;
    if (cache.empty()) path += "/.cache";
    path += "/torch/comm_lib_trace_rank_";
    path += rank;
    if (cache.empty() && home.empty()) {
      fault +=
          "a dump has no place: set TORCHCOMM_FR_DUMP_TEMP_FILE to the beginning of its file's "
          "name, or HOME";
    }
  }
  if (path.cut()) fault += "the name of a dump's file is too long for a path: give a shorter one";
}

void write_flight_file(FlightPath& path, const std::function<void(ByteSink&)>& write,
                       FlightFault& fault) noexcept {
  std::uint64_t bytes = 0;
  if (!is_allowed(write, bytes)) {
    fault += "cannot write ";
    fault += path.view();
    fault += ": the process may not write files of ";
    fault += bytes;
    fault += " bytes (ulimit -f)";
    return;
  }
  FlightPath folder;
  folder_of(path, folder);
  if (const int error = make_folder(folder); error != 0)
    return say(fault, "cannot make ", folder.view(), error);
  std::string_view what;
  int error = write_once(path, folder, write, what);
  // The dump first: looking through a large folder takes its time.
  const int removed = remove_dead_partials(folder);
  if ((error == ENOSPC || error == EDQUOT) && removed > 0)
    error = write_once(path, folder, write, what);
  if (error != 0) say(fault, what, what.ends_with("in ") ? folder.view() : path.view(), error);
}

void write_stacks_beside(const FlightPath& path, std::int64_t rank, const char* process) noexcept {
  const char* why = nullptr;
  const engine::Descriptor stacks = ringmain::detail::python_stacks_in_memory(process, why);
  if (stacks.get() < 0) return;  // there is no Python here, or it does not lend them
  FlightPath beside;
  folder_of(path, beside);
  beside += "/stacks-";
  beside += rank;
  beside += ".txt";
  const auto copy = [&stacks](ByteSink& to) {
    char some[4096];
    ssize_t size = 0;
    for (off_t at = 0; (size = ::pread(stacks.get(), some, sizeof some, at)) > 0; at += size)
      to.append(some, some + size);
  };
  FlightFault fault;
  if (!beside.cut()) write_flight_file(beside, std::cref(copy), fault);
}

}  // namespace ringmain::collective::detail
