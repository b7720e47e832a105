// Where do the files of the flight recorder lie, and which of them may go?
//
// In order: the folder that is asked for, the user's runtime folder, /dev/shm. A folder is the
// user's own, not writable by others, and no link. A file is made of numbers:
// flight-PID-START-N.ring.
#pragma once
#include <cstddef>
#include <cstdint>
#include <fcntl.h>
#include <string>
#include <sys/statfs.h>
#include <sys/types.h>
#include <vector>

#include "process_life.hpp"

namespace ringmain::engine::flight {

/// Folders in the order in which they are tried, RINGMAIN_FLIGHT_DIR alone if it is set; `asked`,
/// if it is not empty, stands for it. Throws std::bad_alloc.
[[nodiscard]] std::vector<std::string> flight_folders(const std::string& asked);

/// Opens a folder that is this user's own, local, no link, and writable by nobody else; it is made
/// if it is not there. -1, and a sentence that says how to mend it in `variable`. Throws
/// std::bad_alloc.
[[nodiscard]] int open_private_folder(const std::string& folder, bool with_parents,
                                      const char* variable, std::string& complaint,
                                      int (*look_at_disk)(int, struct statfs*) = &::fstatfs);

/// A new file in a folder, with room for all its bytes; or no file, and a sentence why not and how
/// to mend it.
struct MadeFile {
  int fd = -1;
  std::string path;
  std::string complaint;
};
struct WantedFile {
  std::string folder;
  std::uint64_t process_start = 0;
  std::size_t bytes = 0;      // of zeros
  bool with_parents = false;  // makes what is above the folder too
  bool makes_room = true;     // where there is none, files of dead processes go, the oldest first
  int (*allocate)(int, off_t, off_t) = &::posix_fallocate;
  int (*look_at_disk)(int, struct statfs*) = &::fstatfs;
};
/// Throws std::bad_alloc.
[[nodiscard]] MadeFile make_flight_file(const WantedFile& wanted);

/// Of what dead processes left all files stay.
inline constexpr std::size_t kKeepAll = ~std::size_t{0};

/// Deletes files of dead processes but the last `kept`, or fewer where these would fill more than
/// half of the file system; none whose process may live. Throws std::bad_alloc.
void prune_flight_files(const std::string& folder, std::size_t kept);

/// How many files of these sizes stay, `kept` at most, on a file system of `disk_bytes`.
[[nodiscard]] std::size_t staying(const std::vector<std::uint64_t>& bytes, std::size_t kept,
                                  std::uint64_t disk_bytes) noexcept;

/// The numbers in a file's name. False: it is not one of ours.
struct FlightName {
  std::uint32_t pid = 0;
  std::uint64_t start = 0;
  std::uint32_t number = 0;
};
[[nodiscard]] bool parse_flight_name(const std::string& name, FlightName& parsed) noexcept;

/// What a run of a command in that process calls the file in which its processes name theirs.
/// Beside those, and pruned with them. Throws std::bad_alloc.
[[nodiscard]] std::string flight_run_name(const ProcessLife& process);

}  // namespace ringmain::engine::flight
