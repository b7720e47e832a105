#include "adapters/launch/flight_mark.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/flight/layout.hpp"
#include "engine/flight/process_life.hpp"
#include "engine/flight/ring_place.hpp"
#include "engine/system/descriptor.hpp"

#include "adapters/launch/standard_error.hpp"

namespace ringmain::run {
namespace {

namespace flight = engine::flight;

/// What the command's own process looks for, and may say. Never destroyed.
struct Expected {
  std::vector<std::string> marks;
  std::string unused, unmatched;
  pid_t pid;
  uid_t user;
};
std::atomic<Expected*> expected{nullptr};

// Not on the stack, which in a handler may be small: only one call looks.
std::array<char, PATH_MAX + 1> line;
std::array<flight::RingLine, 16> rings;
flight::FixedHeader header;

bool is_file_of(uid_t user, int fd) noexcept {
  struct stat about {};
  return ::fstat(fd, &about) == 0 && S_ISREG(about.st_mode) && about.st_uid == user;
}

/// Also where that cannot be told: a file may have made room for others since.
bool may_hold_records(const char* path) noexcept {
  const engine::Descriptor fd(::open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  if (fd.get() < 0 || ::pread(fd.get(), &header, sizeof header, 0) != sizeof header ||
      header.magic != flight::kMagic) {
    return true;
  }
  const std::uint64_t end = sizeof(flight::Header) + header.rings.bytes;
  for (std::uint64_t at = sizeof(flight::Header); at < end; at += sizeof rings) {
    const ssize_t got = ::pread(fd.get(), rings.data(), sizeof rings, static_cast<off_t>(at));
    if (got <= 0) return true;
    const std::uint64_t there = std::min(static_cast<std::uint64_t>(got), end - at);
    for (std::size_t i = 0; i < there / sizeof(flight::RingLine); ++i) {
      if (rings[i].ring.written != 0 || rings[i].annex.written != 0) return true;
    }
  }
  return false;
}

/// Of the files that a mark names, one a line. What had no room in it is not known to be empty.
bool any_may_hold_records(int mark) noexcept {
  for (off_t at = 0;;) {
    const ssize_t got = ::pread(mark, line.data(), line.size(), at);
    if (got <= 0) return at == 0;
    const void* const end = std::memchr(line.data(), '\n', static_cast<std::size_t>(got));
    if (end == nullptr || end == line.data()) return true;  // cut; in memory
    const auto length = static_cast<const char*>(end) - line.data();
    line[static_cast<std::size_t>(length)] = '\0';
    if (may_hold_records(line.data())) return true;
    at += length + 1;
  }
}

}  // namespace

std::vector<std::string> flight_marks() {
  const std::string name = flight::flight_run_name(flight::this_process());
  const std::string user = std::to_string(::geteuid());
  std::vector<std::string> folders = flight::flight_folders("");
  for (const char* const memory : {"/dev/shm", "/tmp"})
    folders.push_back(std::string(memory) + "/ringmain-flight-" + user);
  std::vector<std::string> marks;
  for (const std::string& folder : folders) {
    if (folder.front() == '/' && folder.find('\n') == folder.npos)
      marks.push_back(folder + "/" + name);
  }
  return marks;
}

void mark_recording(const std::vector<std::string>& marks, const std::string& file) {
  const std::string named = file + "\n";
  for (const std::string& mark : marks) {
    const std::size_t slash = mark.rfind('/');
    std::string complaint;
    const engine::Descriptor folder(flight::open_private_folder(mark.substr(0, slash), false,
                                                                "RINGMAIN_FLIGHT_DIR", complaint));
    if (folder.get() < 0) continue;
    const engine::Descriptor fd(::openat(folder.get(), mark.c_str() + slash + 1,
                                         O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC,
                                         0600));
    if (fd.get() < 0) continue;
    (void)!::write(fd.get(), named.data(), named.size());  // one write: lines of others are whole
    return;
  }
}

void expect_records(const std::vector<std::string>& marks, const std::string& patterns) {
  const flight::ProcessLife self = flight::this_process();
  if (marks.empty() || !marks.front().ends_with("/" + flight::flight_run_name(self))) return;
  remember_standard_error();
  const std::string begin = "ringmain: --flight recorded nothing: ";
  expected = new Expected{
      marks,
      begin +
          "no process of this command used ringmain on this machine; a program must publish with "
          "its library, on the process's bus, one in Python needs the package ringmain in the "
          "Python that runs it, and "
          "other libraries are heard by a source such as --source mpi\n",
      begin + "processes of this command used ringmain, and published nothing on a channel that '" +
          patterns + "' matches; --sink json_lines:FILE shows on which they publish\n",
      ::getpid(), ::geteuid()};
}

void say_if_nothing_was_recorded() noexcept {
  const Expected* const here = expected;
  // Not in a child of vfork, which has this memory.
  if (here == nullptr || here->pid != ::getpid() || expected.exchange(nullptr) == nullptr) return;
  const int saved = errno;
  bool used = false, recorded = false;
  for (const std::string& mark : here->marks) {
    const engine::Descriptor fd(
        ::open(mark.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
    // A program that has given up its rights since cannot tell.
    recorded = recorded || (fd.get() < 0 && errno != ENOENT && errno != ENOTDIR);
    if (fd.get() < 0 || !is_file_of(here->user, fd.get())) continue;
    used = true;
    recorded = recorded || any_may_hold_records(fd.get());
    (void)::unlink(mark.c_str());
  }
  if (!recorded) write_sentence(used ? here->unmatched : here->unused);
  errno = saved;
}

}  // namespace ringmain::run
