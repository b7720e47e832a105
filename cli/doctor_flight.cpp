#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <sys/statvfs.h>
#include <system_error>

#include "engine/flight/ring_file.hpp"
#include "engine/flight/ring_place.hpp"

#include "cli/doctor.hpp"
#include "cli/terminal.hpp"

namespace ringmain::cli {
namespace {

using State = Finding::State;

/// How long does a file there stay?
std::string stays(const std::string& path) {
  if (const char* asked = std::getenv("RINGMAIN_FLIGHT_DIR"); asked != nullptr && *asked != '\0')
    return "";
  if (path.starts_with("/dev/shm/"))
    return "; until the machine restarts, unless a job's epilog or the end of a container empties "
           "/dev/shm";
  return "; until you log out";
}

}  // namespace

/// Makes a file of the flight recorder, and removes it again.
Finding examine_flight() {
  engine::flight::RingFileOptions options;
  options.kept = engine::flight::kKeepAll;  // what others have left is not for the doctor to delete
  const auto file = engine::flight::RingFile::open(options);
  if (file->path().empty()) {
    return {"flight recorder", State::note, file->complaint(),
            "set RINGMAIN_FLIGHT_DIR to a folder of yours on a local disk or in memory, as a whole "
            "path, with 8 MiB for each process"};
  }
  const std::string path = file->path();
  struct statvfs there {};
  Finding f{"flight recorder", State::good,
            "files go to " + std::filesystem::path(path).parent_path().string() + stays(path), ""};
  if (::statvfs(path.c_str(), &there) == 0) {
    const std::uint64_t free = std::uint64_t{there.f_bavail} * there.f_frsize;
    f.found += "; room for " + with_commas(free / options.file_bytes) + " processes at " +
               bytes_text(options.file_bytes) + " each";
  }
  if (!stays(path).empty())
    f.mend = "set RINGMAIN_FLIGHT_DIR to a folder that stays, where files must outlive the session";
  std::error_code none;
  std::filesystem::remove(path, none);
  return f;
}

}  // namespace ringmain::cli
