#include "adapters/sources/collective/flight_recorder_partial.hpp"

#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <fcntl.h>
#include <optional>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/flight/process_life.hpp"
#include "engine/system/clock.hpp"
#include "engine/system/descriptor.hpp"

namespace ringmain::collective::detail {
namespace {

using engine::flight::ProcessLife;

// A name has no part of the prefix, by which analyzers look for files, and does not end in a
// number, which they take for a rank: .partial-BOOT-NAMESPACE-PID-START-RANDOM.tmp
constexpr std::string_view kBegin = ".partial-", kEnd = ".tmp";

FlightPath name_of(const ProcessLife& process, std::uint64_t drawn) noexcept {
  FlightPath name;
  name += kBegin;
  for (const std::uint8_t byte : process.boot_id) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    name += kDigits.substr(std::size_t{byte} >> 4, 1);
    name += kDigits.substr(byte & 15u, 1);
  }
  for (const std::uint64_t number :
       {process.pid_namespace, std::uint64_t{process.pid}, process.start, drawn}) {
    name += "-";
    name += number;
  }
  name += kEnd;
  return name;
}

/// Takes a number and the sign after it, if both are there.
template <class T>
bool take(std::string_view& text, T& number, char sign, int base = 10) noexcept {
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (fault != std::errc() || end == text.data() + text.size() || *end != sign) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()) + 1);
  return true;
}

/// Whose name is this? nullopt: it is none of ours.
std::optional<ProcessLife> owner_of(std::string_view name) noexcept {
  ProcessLife owner;
  if (!name.starts_with(kBegin) || !name.ends_with(kEnd)) return std::nullopt;
  name.remove_prefix(kBegin.size());
  if (name.size() < 2 * owner.boot_id.size()) return std::nullopt;
  for (std::uint8_t& byte : owner.boot_id) {
    const auto [end, fault] = std::from_chars(name.data(), name.data() + 2, byte, 16);
    if (fault != std::errc() || end != name.data() + 2) return std::nullopt;
    name.remove_prefix(2);
  }
  std::uint64_t drawn = 0;
  const bool whole = name.starts_with('-') && (name.remove_prefix(1), true) &&
                     take(name, owner.pid_namespace, '-') && take(name, owner.pid, '-') &&
                     take(name, owner.start, '-') && take(name, drawn, '.') && name == "tmp";
  return whole ? std::optional(owner) : std::nullopt;
}

bool is_dead(int folder, const char* name, const ProcessLife& here) noexcept {
  const auto owner = owner_of(name);
  if (!owner || owner->boot_id != here.boot_id) return false;
  struct stat about {};
  return ::fstatat(folder, name, &about, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(about.st_mode) &&
         about.st_uid == ::geteuid() && engine::flight::lives(*owner) == engine::flight::Living::no;
}

/// As the kernel has it: opendir() allocates.
struct Entry {
  std::uint64_t inode;
  std::int64_t offset;
  std::uint16_t bytes;
  std::uint8_t type;
  char name[1];  // as long as it is
};

}  // namespace

int make_partial(std::string_view folder, FlightPath& path) noexcept {
  const ProcessLife here = engine::flight::this_process();
  for (int tries = 0; tries < 100; ++tries) {
    std::uint64_t drawn = 0;
    if (::getrandom(&drawn, sizeof drawn, GRND_NONBLOCK) != sizeof drawn)
      drawn = static_cast<std::uint64_t>(engine::now_ns());
    path.clear();
    path += folder;
    path += "/";
    path += name_of(here, drawn).view();
    if (path.cut()) {
      errno = ENAMETOOLONG;
      return -1;
    }
    // Asking for the umask would change it for a moment, for all threads.
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0 || errno != EEXIST) return fd;
  }
  return -1;
}

int remove_dead_partials(FlightPath& folder) noexcept {
  const engine::Descriptor fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.get() < 0) return 0;
  const ProcessLife here = engine::flight::this_process();
  alignas(Entry) std::array<char, 8192> entries;
  int removed = 0;
  for (;;) {
    const long size = ::syscall(SYS_getdents64, fd.get(), entries.data(), entries.size());
    if (size <= 0) return removed;
    for (long at = 0; at < size;) {
      const auto* const entry = reinterpret_cast<const Entry*>(entries.data() + at);
      const char* const name = entries.data() + at + offsetof(Entry, name);
      if (is_dead(fd.get(), name, here) && ::unlinkat(fd.get(), name, 0) == 0) ++removed;
      at += entry->bytes;
    }
  }
}

}  // namespace ringmain::collective::detail
