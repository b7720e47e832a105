// Where do the sockets of doors lie, and how is one reached?
//
// In order: the folder that is asked for, the user's runtime folder, /dev/shm. A socket is made of
// numbers, door-PID-START-N.sock, and is there only once it listens: whoever finds one that refuses
// a connection has found what a dead process left, in whichever pid namespace it was.
#pragma once
#include <cstdint>
#include <string>
#include <sys/types.h>
#include <vector>

namespace ringmain::engine::door {

/// Folders in the order in which they are tried: `asked` alone if it is not empty. Throws
/// std::bad_alloc.
[[nodiscard]] std::vector<std::string> door_folders(const std::string& asked);

/// The numbers in a socket's name. False: it is not one of ours.
struct DoorName {
  std::uint32_t pid = 0;
  std::uint64_t start = 0;
  std::uint32_t number = 0;
};
[[nodiscard]] bool parse_door_name(const std::string& name, DoorName& parsed) noexcept;

/// A socket that listens, with mode 0600; or none, and a sentence why not and how to mend it.
struct MadeSocket {
  int fd = -1;
  int folder = -1;
  std::string name, path;
  dev_t device = 0;
  ino_t inode = 0;
  std::string complaint;
};
/// What dead processes left in the folder goes first. `with_parents`: what is above the folder is
/// made, too. Throws std::bad_alloc.
[[nodiscard]] MadeSocket make_socket(const std::string& folder, bool with_parents);

/// Takes the socket's file away, unless another one has its name by now.
void remove_socket(int folder, const char* name, dev_t device, ino_t inode) noexcept;

/// A connection that does not block, or -errno: ECONNREFUSED where nobody listens, ENAMETOOLONG
/// where /proc is missing and the path is too long for a socket.
[[nodiscard]] int connect_to(int folder, const std::string& path_of_folder,
                             const std::string& name) noexcept;

/// The name is a socket that nobody listens at.
[[nodiscard]] bool is_left(int folder, const std::string& path_of_folder,
                           const std::string& name) noexcept;

}  // namespace ringmain::engine::door
