#include "engine/door/door_place.hpp"

#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <string_view>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "engine/flight/process_life.hpp"
#include "engine/flight/ring_place.hpp"

namespace ringmain::engine::door {
namespace {

constexpr std::string_view kPrefix = "door-", kSuffix = ".sock", kUnborn = ".new";
constexpr const char kVariable[] = "RINGMAIN_DOOR";
constexpr int kBacklog = 16;
// What dead processes left is found by knocking, which each of many processes does as it starts:
// of so many files at most.
constexpr std::size_t kEntriesMax = 4096;

std::string in_words(int error) {
  char text[128];
  return ::strerror_r(error, text, sizeof text);
}

template <class Number>
bool take_number(std::string_view& text, Number& number) noexcept {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end == text.data()) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

bool take_dash(std::string_view& text) noexcept {
  if (text.empty() || text.front() != '-') return false;
  text.remove_prefix(1);
  return true;
}

bool parse(std::string_view text, std::string_view suffix, DoorName& parsed) noexcept {
  if (text.substr(0, kPrefix.size()) != kPrefix) return false;
  text.remove_prefix(kPrefix.size());
  return take_number(text, parsed.pid) && take_dash(text) && take_number(text, parsed.start) &&
         take_dash(text) && take_number(text, parsed.number) && text == suffix;
}

/// A socket's address has 107 bytes, and a folder's path may be longer: so it is named by its
/// descriptor in this thread's own table, where there is a /proc.
bool address_of(int folder, const std::string& path_of_folder, const std::string& name,
                sockaddr_un& address) noexcept {
  address = {};
  address.sun_family = AF_UNIX;
  char through[64];
  (void)std::snprintf(through, sizeof through, "/proc/thread-self/fd/%d", folder);
  const bool has_proc = ::access(through, F_OK) == 0;
  const int bytes = std::snprintf(address.sun_path, sizeof address.sun_path, "%s/%s",
                                  has_proc ? through : path_of_folder.c_str(), name.c_str());
  return bytes > 0 && static_cast<std::size_t>(bytes) < sizeof address.sun_path;
}

bool is_socket(int folder, const std::string& name, struct stat& about) noexcept {
  return ::fstatat(folder, name.c_str(), &about, AT_SYMLINK_NOFOLLOW) == 0 &&
         S_ISSOCK(about.st_mode);
}

/// Was its process killed while it made it? Its own socket would refuse a connection, too.
bool is_unborn_and_dead(const DoorName& numbers) {
  flight::ProcessLife process = flight::this_process();
  process.pid = numbers.pid;
  process.start = numbers.start;
  return flight::lives(process) == flight::Living::no;
}

void remove_what_dead_ones_left(int folder, const std::string& path_of_folder) {
  const int fd = ::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* const entries = fd < 0 ? nullptr : ::fdopendir(fd);
  if (entries == nullptr) {
    if (fd >= 0) ::close(fd);
    return;
  }
  std::size_t seen = 0;
  for (const dirent* entry = nullptr; seen < kEntriesMax && (entry = ::readdir(entries)) != nullptr;
       ++seen) {
    const std::string name = entry->d_name;
    DoorName numbers;
    struct stat about {};
    if (!is_socket(folder, name, about) || about.st_uid != ::geteuid()) continue;
    const bool goes = parse(name, kSuffix, numbers)   ? is_left(folder, path_of_folder, name)
                      : parse(name, kUnborn, numbers) ? is_unborn_and_dead(numbers)
                                                      : false;
    if (goes) remove_socket(folder, name.c_str(), about.st_dev, about.st_ino);
  }
  ::closedir(entries);
}

std::string name_of(std::uint64_t start, unsigned number, std::string_view suffix) {
  return std::string(kPrefix) + std::to_string(::getpid()) + "-" + std::to_string(start) + "-" +
         std::to_string(number) + std::string(suffix);
}

/// Gives the socket a name that nothing has: what has this process's name by now is another copy of
/// the library's.
int name_it(MadeSocket& made, const std::string& unborn, std::uint64_t start) {
  for (unsigned number = 0; number < 100; ++number) {
    made.name = name_of(start, number, kSuffix);
    if (::renameat2(made.folder, unborn.c_str(), made.folder, made.name.c_str(),
                    RENAME_NOREPLACE) == 0)
      return 0;
    if (errno == EEXIST) continue;
    if (errno != EINVAL && errno != ENOSYS) break;
    struct stat about {};  // a file system that does not know it
    if (is_socket(made.folder, made.name, about)) continue;
    if (::renameat(made.folder, unborn.c_str(), made.folder, made.name.c_str()) == 0) return 0;
    break;
  }
  return errno;
}

/// Listens before it has its name, so that a name that refuses is always a dead one's.
std::string listen_in(MadeSocket& made, const std::string& folder) {
  const std::uint64_t start = flight::this_process().start;
  const std::string unborn = name_of(start, static_cast<unsigned>(::gettid()), kUnborn);
  sockaddr_un address{};
  if (!address_of(made.folder, folder, unborn, address)) {
    return "the path " + folder + "/" + unborn +
           " is too long for a socket, of 107 bytes at most where there is no /proc";
  }
  // Its file takes the mode of the descriptor: at no moment may others connect.
  if (::fchmod(made.fd, 0600) != 0) return "no socket can be closed to others: " + in_words(errno);
  (void)::unlinkat(made.folder, unborn.c_str(), 0);  // of an earlier image of this process
  if (::bind(made.fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return "no socket can be made in " + folder + ": " + in_words(errno);
  struct stat about {};
  const bool listens = is_socket(made.folder, unborn, about) && (about.st_mode & 077) == 0 &&
                       ::listen(made.fd, kBacklog) == 0;
  const int error = listens ? name_it(made, unborn, start) : errno;
  if (!listens || error != 0) {
    (void)::unlinkat(made.folder, unborn.c_str(), 0);
    return "no socket can be opened in " + folder + ": " + in_words(error);
  }
  made.path = folder + "/" + made.name;
  made.device = about.st_dev;
  made.inode = about.st_ino;
  return "";
}

}  // namespace

std::vector<std::string> door_folders(const std::string& asked) {
  if (!asked.empty()) return {asked};
  const std::string user = std::to_string(::geteuid());
  const char* const runtime = ::secure_getenv("XDG_RUNTIME_DIR");
  const bool is_set = runtime != nullptr && *runtime == '/';
  return {(is_set ? runtime : "/run/user/" + user) + "/ringmain-door",
          "/dev/shm/ringmain-door-" + user};
}

bool parse_door_name(const std::string& name, DoorName& parsed) noexcept {
  return parse(name, kSuffix, parsed);
}

int connect_to(int folder, const std::string& path_of_folder, const std::string& name) noexcept {
  sockaddr_un address{};
  if (!address_of(folder, path_of_folder, name, address)) return -ENAMETOOLONG;
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return -errno;
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return fd;
  const int error = errno;
  ::close(fd);
  return -error;
}

bool is_left(int folder, const std::string& path_of_folder, const std::string& name) noexcept {
  const int fd = connect_to(folder, path_of_folder, name);
  if (fd >= 0) ::close(fd);
  return fd == -ECONNREFUSED;
}

void remove_socket(int folder, const char* name, dev_t device, ino_t inode) noexcept {
  struct stat about {};
  const bool same = ::fstatat(folder, name, &about, AT_SYMLINK_NOFOLLOW) == 0 &&
                    S_ISSOCK(about.st_mode) && about.st_dev == device && about.st_ino == inode;
  if (same) (void)::unlinkat(folder, name, 0);
}

MadeSocket make_socket(const std::string& folder, bool with_parents) {
  MadeSocket made;
  made.folder = flight::open_private_folder(folder, with_parents, kVariable, made.complaint);
  if (made.folder < 0) return made;
  remove_what_dead_ones_left(made.folder, folder);
  made.fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  made.complaint =
      made.fd < 0 ? "the system gives no socket: " + in_words(errno) : listen_in(made, folder);
  if (made.complaint.empty()) return made;
  if (made.fd >= 0) ::close(made.fd);
  ::close(made.folder);
  made.fd = made.folder = -1;
  return made;
}

}  // namespace ringmain::engine::door
