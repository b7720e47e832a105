// Where do the files of the flight recorder lie, and which of them may go?
//
// In order: the folder that is asked for, the user's runtime folder, /dev/shm. A folder is the
// user's own, closed to others, and no link. A file is made of numbers: flight-PID-START-N.ring.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace ringmain::engine::flight {

/// Folders in the order in which they are tried, RINGMAIN_FLIGHT_DIR alone if it is set; `asked`,
/// if it is not empty, stands for it. Throws std::bad_alloc.
[[nodiscard]] std::vector<std::string> flight_folders(const std::string& asked);

/// A new file in a folder, with room for all its bytes; or a sentence why not, and no file.
struct MadeFile {
  int fd = -1;
  std::string path;
  std::string complaint;
};
/// `bytes`: of the file, which is zeros. Throws std::bad_alloc.
[[nodiscard]] MadeFile make_flight_file(const std::string& folder, std::uint64_t process_start,
                                        std::size_t bytes);

/// Deletes files of dead processes but the last `kept`; none whose process may live. Throws
/// std::bad_alloc.
void prune_flight_files(const std::string& folder, std::size_t kept);

/// The numbers in a file's name. False: it is not one of ours.
struct FlightName {
  std::uint32_t pid = 0;
  std::uint64_t start = 0;
  std::uint32_t number = 0;
};
[[nodiscard]] bool parse_flight_name(const std::string& name, FlightName& parsed) noexcept;

}  // namespace ringmain::engine::flight
