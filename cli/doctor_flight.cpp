#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <system_error>

#include "engine/flight/ring_file.hpp"
#include "engine/flight/ring_place.hpp"

#include "cli/doctor.hpp"
#include "cli/terminal.hpp"

namespace ringmain::cli {
namespace {

using State = Finding::State;

/// In memory, whichever folder it was asked for by. By the magic numbers of statfs(2).
bool is_in_memory(const std::string& path) {
  struct statfs fs {};
  if (::statfs(path.c_str(), &fs) != 0) return false;
  const auto type = static_cast<std::uint32_t>(fs.f_type);
  return type == 0x01021994 || type == 0x858458f6;  // tmpfs, ramfs
}

/// Who empties that folder? "": nobody but who deletes in it.
std::string stays(const std::string& path) {
  std::error_code none;
  const auto real_path = [&none](const std::string& of) {
    return std::filesystem::weakly_canonical(of, none).string() + "/";
  };
  const std::string real = real_path(path);
  const char* const runtime = std::getenv("XDG_RUNTIME_DIR");
  if ((runtime != nullptr && *runtime == '/' && real.starts_with(real_path(runtime))) ||
      real.starts_with("/run/user/")) {
    return "; until you log out";
  }
  if (real.starts_with("/dev/shm/")) {
    return "; until the machine restarts, unless a job's epilog or the end of a container empties "
           "/dev/shm";
  }
  if (is_in_memory(path)) return "; in memory, until the machine or the container restarts";
  return "";
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
  const std::string folder = std::filesystem::path(path).parent_path().string();
  const std::string emptied = stays(folder);
  struct statvfs there {};
  Finding f{"flight recorder", State::good, "files go to " + folder + emptied, ""};
  if (::statvfs(path.c_str(), &there) == 0) {
    const std::uint64_t free = std::uint64_t{there.f_bavail} * there.f_frsize;
    f.found += "; room for " + with_commas(free / options.file_bytes) + " processes at " +
               bytes_text(options.file_bytes) + " each";
  }
  if (!emptied.empty())
    f.mend = "set RINGMAIN_FLIGHT_DIR to a folder that stays, where files must outlive the session";
  std::error_code none;
  std::filesystem::remove(path, none);
  return f;
}

}  // namespace ringmain::cli
