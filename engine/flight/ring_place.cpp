#include "engine/flight/ring_place.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <string_view>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <tuple>
#include <unistd.h>
#include <utility>

#include "engine/flight/layout.hpp"
#include "engine/flight/process_life.hpp"
#include "engine/system/descriptor.hpp"

namespace ringmain::engine::flight {
namespace {

constexpr std::string_view kPrefix = "flight-", kSuffix = ".ring", kRunSuffix = ".run";

std::string in_words(int error) {
  char text[128];
  return ::strerror_r(error, text, sizeof text);
}

/// By the magic numbers of statfs(2). What a server holds may be shared by machines, and a page of
/// it may be written back, or not, at any time.
bool is_on_a_network(int fd, int (*look_at_disk)(int, struct statfs*)) noexcept {
  struct statfs fs {};
  if (look_at_disk(fd, &fs) != 0) return false;
  constexpr std::uint32_t kServed[] = {0x6969,       // NFS
                                       0xff534d42,   // CIFS
                                       0xfe534d42,   // SMB2
                                       0x517b,       // SMB
                                       0x0bd00bd0,   // Lustre
                                       0x47504653,   // GPFS
                                       0x19830326,   // BeeGFS
                                       0x00c36400,   // Ceph
                                       0x5346414f,   // OpenAFS
                                       0x6b414653,   // kAFS
                                       0x01021997,   // 9P
                                       0x01161970,   // GFS2
                                       0x7461636f,   // OCFS2
                                       0x65735546,   // FUSE: most of them are served
                                       0xaad7aaea};  // PanFS
  const auto type = static_cast<std::uint32_t>(fs.f_type);
  return std::find(std::begin(kServed), std::end(kServed), type) != std::end(kServed);
}

constexpr const char kVariable[] = "RINGMAIN_FLIGHT_DIR";

std::string mend_in(const char* variable) {
  return std::string(" a folder of your own with mode 0700 in ") + variable;
}

bool make_folder(const std::string& folder, bool with_parents) {
  if (::mkdir(folder.c_str(), 0700) == 0 || errno == EEXIST) return true;
  const std::size_t above = folder.find_last_of('/');
  if (errno != ENOENT || !with_parents || above == 0 || above == std::string::npos) return false;
  return make_folder(folder.substr(0, above), true) &&
         (::mkdir(folder.c_str(), 0700) == 0 || errno == EEXIST);
}

bool is_link(const std::string& path) noexcept {
  struct stat about {};
  return ::lstat(path.c_str(), &about) == 0 && S_ISLNK(about.st_mode);
}

/// A file that would be larger than the process may write would cost it a SIGXFSZ.
bool is_allowed(std::size_t bytes) noexcept {
  rlimit limit{};
  return ::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
         limit.rlim_cur >= bytes;
}

/// A dead process's file, and when it was last changed.
struct Dead {
  std::int64_t changed_s = 0, changed_ns = 0;
  std::uint64_t bytes = 0;
  std::string name;
};

bool is_dead(int folder, const std::string& name, const FlightName& numbers, Dead& dead) {
  struct stat about {};
  if (::fstatat(folder, name.c_str(), &about, AT_SYMLINK_NOFOLLOW) != 0 ||
      !S_ISREG(about.st_mode) || about.st_uid != ::geteuid()) {
    return false;
  }
  const Descriptor fd(
      ::openat(folder, name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  FixedHeader header{};
  if (fd.get() < 0) return false;
  ProcessLife process{{}, numbers.start, 0, numbers.pid};
  if (::pread(fd.get(), &header, sizeof header, 0) == sizeof header && header.magic == kMagic) {
    process.boot_id = header.boot_id;
    process.pid_namespace = header.pid_namespace;
  } else {  // its process was killed while it made the file, or is still at it
    const ProcessLife here = this_process();
    process.boot_id = here.boot_id;
    process.pid_namespace = here.pid_namespace;
  }
  if (lives(process) != Living::no) return false;
  dead = {about.st_mtim.tv_sec, about.st_mtim.tv_nsec, static_cast<std::uint64_t>(about.st_size),
          name};
  return true;
}

bool parse_name(std::string_view text, std::string_view suffix, FlightName& parsed) noexcept;

/// The youngest first.
std::vector<Dead> dead_files(int folder, std::string_view suffix = kSuffix) {
  std::vector<Dead> dead;
  const int fd = ::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* const entries = fd < 0 ? nullptr : ::fdopendir(fd);
  if (entries == nullptr) {
    if (fd >= 0) ::close(fd);
    return dead;
  }
  while (const dirent* const entry = ::readdir(entries)) {
    FlightName numbers;
    Dead one;
    if (parse_name(entry->d_name, suffix, numbers) && is_dead(folder, entry->d_name, numbers, one))
      dead.push_back(std::move(one));
  }
  ::closedir(entries);
  std::sort(dead.begin(), dead.end(), [](const Dead& a, const Dead& b) {
    return std::tie(a.changed_s, a.changed_ns, a.name) >
           std::tie(b.changed_s, b.changed_ns, b.name);
  });
  return dead;
}

bool is_want_of_room(int error) noexcept {
  return error == ENOSPC || error == EDQUOT;
}

/// Allocates the file's bytes, and returns the error. What the dead left makes room for a process
/// that lives.
int allocate(int folder, int file, const WantedFile& wanted) {
  const auto bytes = static_cast<off_t>(wanted.bytes);
  // Without it a full disk would be a SIGBUS at some later store. The error is its result.
  int error = wanted.allocate(file, 0, bytes);
  if (!is_want_of_room(error) || !wanted.makes_room) return error;
  for (std::vector<Dead> dead = dead_files(folder); is_want_of_room(error) && !dead.empty();
       dead.pop_back()) {
    if (::unlinkat(folder, dead.back().name.c_str(), 0) == 0)
      error = wanted.allocate(file, 0, bytes);
  }
  return error;
}

template <class Number>
bool take_number(std::string_view& text, char after, Number& number) noexcept {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end == text.data()) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  if (text.empty() || text.front() != after) return false;
  if (after != '.') text.remove_prefix(1);
  return true;
}

bool parse_name(std::string_view text, std::string_view suffix, FlightName& parsed) noexcept {
  if (text.substr(0, kPrefix.size()) != kPrefix) return false;
  text.remove_prefix(kPrefix.size());
  return take_number(text, '-', parsed.pid) && take_number(text, '-', parsed.start) &&
         take_number(text, '.', parsed.number) && text == suffix;
}

/// Of runs whose command's own process was killed. Of another pid namespace nobody knows here.
void prune_run_files(int folder) {
  const auto here = static_cast<std::uint32_t>(this_process().pid_namespace);
  for (const Dead& one : dead_files(folder, kRunSuffix)) {
    FlightName numbers;
    if (parse_name(one.name, kRunSuffix, numbers) && numbers.number == here)
      (void)::unlinkat(folder, one.name.c_str(), 0);
  }
}

}  // namespace

int open_private_folder(const std::string& folder, bool with_parents, const char* variable,
                        std::string& complaint, int (*look_at_disk)(int, struct statfs*)) {
  const std::string mend = mend_in(variable);
  if (folder.empty() || folder.front() != '/') {
    complaint = "'" + folder + "' is no absolute path; name one in " + variable;
    return -1;
  }
  if (!make_folder(folder, with_parents)) {
    complaint = "the folder " + folder + " cannot be made: " + in_words(errno) + "; name" + mend;
    return -1;
  }
  Descriptor fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (fd.get() < 0) {
    const int error = errno;
    complaint = "the folder " + folder + " cannot be opened: " +
                (is_link(folder) ? "it is a link, and none is followed" : in_words(error)) +
                "; name" + mend;
    return -1;
  }
  struct stat about {};
  if (::fstat(fd.get(), &about) != 0 || about.st_uid != ::geteuid() || (about.st_mode & 022) != 0) {
    complaint = "the folder " + folder +
                " is another user's, or others may write to it; close it to others (chmod 700), "
                "or name" +
                mend;
    return -1;
  }
  if (is_on_a_network(fd.get(), look_at_disk)) {
    complaint = "the folder " + folder +
                " is on a network or FUSE file system; name a local one in " + variable;
    return -1;
  }
  return fd.release();
}

bool parse_flight_name(const std::string& name, FlightName& parsed) noexcept {
  return parse_name(name, kSuffix, parsed);
}

std::string flight_run_name(const ProcessLife& process) {
  return std::string(kPrefix) + std::to_string(process.pid) + "-" + std::to_string(process.start) +
         "-" + std::to_string(static_cast<std::uint32_t>(process.pid_namespace)) +
         std::string(kRunSuffix);
}

std::vector<std::string> flight_folders(const std::string& asked) {
  if (!asked.empty()) return {asked};
  if (const char* const set = ::secure_getenv("RINGMAIN_FLIGHT_DIR");
      set != nullptr && *set != '\0')
    return {set};
  const std::string user = std::to_string(::geteuid());
  const char* const runtime = ::secure_getenv("XDG_RUNTIME_DIR");
  const bool is_set = runtime != nullptr && *runtime == '/';
  return {(is_set ? runtime : "/run/user/" + user) + "/ringmain-flight",
          "/dev/shm/ringmain-flight-" + user};
}

MadeFile make_flight_file(const WantedFile& wanted) {
  MadeFile made;
  const std::string& folder = wanted.folder;
  const Descriptor in(open_private_folder(folder, wanted.with_parents, kVariable, made.complaint,
                                          wanted.look_at_disk));
  if (in.get() < 0) return made;
  if (!is_allowed(wanted.bytes)) {
    made.complaint =
        "the process may not write files of " + std::to_string(wanted.bytes) + " bytes (ulimit -f)";
    return made;
  }
  for (std::uint32_t number = 0; number < 1000; ++number) {
    const std::string name = std::string(kPrefix) + std::to_string(::getpid()) + "-" +
                             std::to_string(wanted.process_start) + "-" + std::to_string(number) +
                             std::string(kSuffix);
    Descriptor fd(
        ::openat(in.get(), name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (fd.get() < 0 && errno == EEXIST) continue;
    if (fd.get() < 0) {
      made.complaint = "no file can be made in " + folder + ": " + in_words(errno) + "; name" +
                       mend_in(kVariable);
      return made;
    }
    if (const int error = allocate(in.get(), fd.get(), wanted); error != 0) {
      (void)::unlinkat(in.get(), name.c_str(), 0);
      made.complaint = folder + " has no room for " + std::to_string(wanted.bytes) +
                       " bytes: " + in_words(error) + "; free some, or name" + mend_in(kVariable);
      return made;
    }
    made.path = folder + "/" + name;
    made.fd = fd.release();
    return made;
  }
  made.complaint =
      folder + " has a thousand files of this process; delete some, or name" + mend_in(kVariable);
  return made;
}

std::size_t staying(const std::vector<std::uint64_t>& bytes, std::size_t kept,
                    std::uint64_t disk_bytes) noexcept {
  std::size_t stay = 0;
  std::uint64_t left = disk_bytes / 2;
  while (stay < std::min(kept, bytes.size()) && bytes[stay] <= left) left -= bytes[stay++];
  return stay;
}

void prune_flight_files(const std::string& folder, std::size_t kept) {
  if (kept == kKeepAll) return;
  std::string complaint;
  const Descriptor in(open_private_folder(folder, false, kVariable, complaint));
  if (in.get() < 0) return;
  const std::vector<Dead> dead = dead_files(in.get());
  std::vector<std::uint64_t> bytes;
  for (const Dead& one : dead) bytes.push_back(one.bytes);
  struct statvfs disk {};
  const bool known = ::fstatvfs(in.get(), &disk) == 0 && disk.f_blocks != 0;
  const std::uint64_t size = known ? std::uint64_t{disk.f_blocks} * disk.f_frsize : ~0ull;
  for (std::size_t i = staying(bytes, kept, size); i < dead.size(); ++i)
    (void)::unlinkat(in.get(), dead[i].name.c_str(), 0);
  prune_run_files(in.get());
}

}  // namespace ringmain::engine::flight
