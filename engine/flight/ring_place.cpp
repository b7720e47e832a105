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
#include <tuple>
#include <unistd.h>
#include <utility>

#include "engine/flight/layout.hpp"
#include "engine/flight/process_life.hpp"

namespace ringmain::engine::flight {
namespace {

constexpr std::string_view kPrefix = "flight-", kSuffix = ".ring";

/// Closes it before the program can find its number taken.
class Descriptor {
 public:
  explicit Descriptor(int fd) noexcept : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  [[nodiscard]] int get() const noexcept { return fd_; }
  [[nodiscard]] int release() noexcept { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

std::string in_words(int error) {
  char text[128];
  return ::strerror_r(error, text, sizeof text);
}

/// By the magic numbers of statfs(2). What a server holds may be shared by machines, and a page of
/// it may be written back, or not, at any time.
bool is_on_a_network(int fd) noexcept {
  struct statfs fs {};
  if (::fstatfs(fd, &fs) != 0) return false;
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

/// The folder, made if it is not there; -1 and a sentence.
int open_folder(const std::string& folder, std::string& complaint) {
  if (folder.empty() || folder.front() != '/') {
    complaint = "'" + folder + "' is no absolute path; name one in RINGMAIN_FLIGHT_DIR";
    return -1;
  }
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    complaint = "the folder " + folder + " cannot be made: " + in_words(errno);
    return -1;
  }
  Descriptor fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (fd.get() < 0) {
    complaint = "the folder " + folder + " cannot be opened: " + in_words(errno);
    return -1;
  }
  struct stat about {};
  if (::fstat(fd.get(), &about) != 0 || about.st_uid != ::geteuid() || (about.st_mode & 022) != 0) {
    complaint = "the folder " + folder + " is another user's, or others may write to it";
    return -1;
  }
  if (is_on_a_network(fd.get())) {
    complaint = "the folder " + folder +
                " is on a network or FUSE file system; name a local one in RINGMAIN_FLIGHT_DIR";
    return -1;
  }
  return fd.release();
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
  dead = {about.st_mtim.tv_sec, about.st_mtim.tv_nsec, name};
  return true;
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

}  // namespace

bool parse_flight_name(const std::string& name, FlightName& parsed) noexcept {
  std::string_view text = name;
  if (text.substr(0, kPrefix.size()) != kPrefix) return false;
  text.remove_prefix(kPrefix.size());
  return take_number(text, '-', parsed.pid) && take_number(text, '-', parsed.start) &&
         take_number(text, '.', parsed.number) && text == kSuffix;
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

MadeFile make_flight_file(const std::string& folder, std::uint64_t process_start,
                          std::size_t bytes) {
  MadeFile made;
  const Descriptor in(open_folder(folder, made.complaint));
  if (in.get() < 0) return made;
  if (!is_allowed(bytes)) {
    made.complaint =
        "the process may not write files of " + std::to_string(bytes) + " bytes (ulimit -f)";
    return made;
  }
  for (std::uint32_t number = 0; number < 1000; ++number) {
    const std::string name = std::string(kPrefix) + std::to_string(::getpid()) + "-" +
                             std::to_string(process_start) + "-" + std::to_string(number) +
                             std::string(kSuffix);
    Descriptor fd(
        ::openat(in.get(), name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (fd.get() < 0 && errno == EEXIST) continue;
    if (fd.get() < 0) {
      made.complaint = "no file can be made in " + folder + ": " + in_words(errno);
      return made;
    }
    // Without it a full disk would be a SIGBUS at some later store. The error is its result.
    const int error = ::posix_fallocate(fd.get(), 0, static_cast<off_t>(bytes));
    if (error != 0) {
      (void)::unlinkat(in.get(), name.c_str(), 0);
      made.complaint =
          folder + " has no room for " + std::to_string(bytes) + " bytes: " + in_words(error);
      return made;
    }
    made.path = folder + "/" + name;
    made.fd = fd.release();
    return made;
  }
  made.complaint = folder + " has a thousand files of this process";
  return made;
}

void prune_flight_files(const std::string& folder, std::size_t kept) {
  std::string complaint;
  const int fd = open_folder(folder, complaint);
  if (fd < 0) return;
  DIR* const entries = ::fdopendir(fd);
  if (entries == nullptr) {
    ::close(fd);
    return;
  }
  std::vector<Dead> dead;
  while (const dirent* const entry = ::readdir(entries)) {
    FlightName numbers;
    Dead one;
    if (parse_flight_name(entry->d_name, numbers) && is_dead(fd, entry->d_name, numbers, one))
      dead.push_back(std::move(one));
  }
  std::sort(dead.begin(), dead.end(), [](const Dead& a, const Dead& b) {
    return std::tie(a.changed_s, a.changed_ns, a.name) >
           std::tie(b.changed_s, b.changed_ns, b.name);
  });
  for (std::size_t i = kept; i < dead.size(); ++i) (void)::unlinkat(fd, dead[i].name.c_str(), 0);
  ::closedir(entries);
}

}  // namespace ringmain::engine::flight
