#include "adapters/sources/collective/flight_recorder_file.hpp"

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

#include "engine/system/clock.hpp"

#include "bus/door.hpp"

namespace ringmain::collective::detail {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kEntries = 2000;  // as PyTorch and torchcomms

/// "TORCHCOMM_FR_BUFFER_SIZE"; nullopt: not set, or empty.
std::optional<std::string> variable(FlightVariables of, const std::string& what) {
  const char* const prefix = of == FlightVariables::torch ? "TORCH_FR_" : "TORCHCOMM_FR_";
  const char* const said = ::secure_getenv((prefix + what).c_str());
  return said == nullptr || *said == '\0' ? std::nullopt : std::optional<std::string>(said);
}

/// PyTorch's older name of the same.
std::optional<std::string> variable(FlightVariables of, const std::string& what,
                                    const char* older) {
  auto said = variable(of, what);
  if (said || of != FlightVariables::torch) return said;
  const char* const old = ::secure_getenv(older);
  return old == nullptr || *old == '\0' ? std::nullopt : std::optional<std::string>(old);
}

bool is_true(const std::optional<std::string>& said) {
  return said && (*said == "1" || *said == "true" || *said == "True" || *said == "TRUE");
}

std::string because(const std::string& what) {
  return what + ": " + std::generic_category().message(errno);
}

/// A file that is larger than the process may write would cost it a SIGXFSZ.
bool is_allowed(std::size_t bytes) noexcept {
  rlimit limit{};
  return ::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
         limit.rlim_cur >= bytes;
}

/// Writes all, and asks the disk to have it.
bool write_all(int fd, std::string_view bytes) noexcept {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno != EINTR) return false;
    if (written > 0) bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return ::fsync(fd) == 0 || errno == EINVAL;  // not every file system has it
}

/// A new file of that folder, with the rights that the process gives its files: asking for its
/// umask would change it for a moment, for all threads. -1: errno says why.
int make_partial(const fs::path& folder, std::string& path) {
  for (int tries = 0; tries < 100; ++tries) {
    std::uint64_t drawn = 0;
    if (::getrandom(&drawn, sizeof drawn, GRND_NONBLOCK) != sizeof drawn)
      drawn = static_cast<std::uint64_t>(engine::now_ns());
    // Its name has no part of the prefix, by which analyzers look for files.
    // Nor does it end in a number, which they take for a rank.
    path =
        folder / (".partial-" + std::to_string(::getpid()) + "-" + std::to_string(drawn) + ".tmp");
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0 || errno != EEXIST) return fd;
  }
  return -1;
}

}  // namespace

std::size_t flight_entries(FlightVariables variables) {
  const auto said = variable(variables, "BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE");
  std::size_t entries = 0;
  if (said) (void)std::from_chars(said->data(), said->data() + said->size(), entries);
  return entries == 0 ? kEntries : entries;
}

Result<std::string> flight_path(FlightVariables variables, std::int64_t rank) {
  const auto said = variable(variables, "DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE");
  if (said) {
    const bool whole = is_true(variable(variables, "DUMP_DYNAMIC_FILE_NAME"));
    return whole ? *said : *said + std::to_string(rank);
  }
  const char* const cache = ::secure_getenv("XDG_CACHE_HOME");
  const char* const home = ::secure_getenv("HOME");
  std::string folder;
  if (cache != nullptr && *cache != '\0') {
    folder = cache;
  } else if (home != nullptr && *home != '\0') {
    folder = std::string(home) + "/.cache";
  } else {
    return Error{Error::Code::refused,
                 "a dump has no place: set TORCHCOMM_FR_DUMP_TEMP_FILE to the beginning of its "
                 "file's name, or HOME"};
  }
  return folder + "/torch/comm_lib_trace_rank_" + std::to_string(rank);
}

std::string write_flight_file(const std::string& path, const std::string& bytes) {
  if (!is_allowed(bytes.size())) {
    return "cannot write " + path + ": the process may not write files of " +
           std::to_string(bytes.size()) + " bytes (ulimit -f)";
  }
  const fs::path file(path);
  const fs::path folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed) return "cannot make " + folder.string() + ": " + failed.message();
  std::string partial;
  const int fd = make_partial(folder, partial);
  if (fd < 0) return because("cannot write in " + folder.string());
  std::string fault;
  if (!write_all(fd, bytes)) fault = because("cannot write " + path);
  ::close(fd);
  if (fault.empty() && ::rename(partial.c_str(), path.c_str()) != 0)
    fault = because("cannot write " + path);
  if (!fault.empty()) ::unlink(partial.c_str());
  return fault;
}

void write_stacks_beside(const std::string& path, std::int64_t rank) {
  const auto stacks = python_stacks();
  if (!stacks) return;  // there is no Python here, or it does not lend them
  const fs::path beside =
      fs::path(path).parent_path() / ("stacks-" + std::to_string(rank) + ".txt");
  (void)write_flight_file(beside.string(), stacks.value());
}

}  // namespace ringmain::collective::detail
