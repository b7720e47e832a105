#include "engine/flight/process_life.hpp"

#include <cctype>
#include <charconv>
#include <cstdio>
#include <fcntl.h>
#include <string_view>
#include <unistd.h>

#include "engine/system/descriptor.hpp"

namespace ringmain::engine::flight {
namespace {

/// Without memory of the heap: who asks may have none.
struct SmallFile {
  char bytes[4096];
  std::size_t size = 0;

  explicit SmallFile(const char* path) noexcept {
    const Descriptor fd(::open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    while (fd.get() >= 0 && size < sizeof bytes) {
      const ssize_t some = ::read(fd.get(), bytes + size, sizeof bytes - size);
      if (some <= 0) return;
      size += static_cast<std::size_t>(some);
    }
  }
  [[nodiscard]] std::string_view view() const noexcept { return {bytes, size}; }
};

std::array<std::uint8_t, 16> read_boot_id() noexcept {
  const SmallFile file("/proc/sys/kernel/random/boot_id");
  std::array<char, 32> digits{};
  std::size_t count = 0;
  for (const char c : file.view()) {
    if (std::isxdigit(static_cast<unsigned char>(c)) == 0) continue;
    if (count == digits.size()) return {};
    digits[count++] = c;
  }
  std::array<std::uint8_t, 16> id{};
  if (count != digits.size()) return id;
  for (std::size_t i = 0; i < id.size(); ++i)
    (void)std::from_chars(digits.data() + 2 * i, digits.data() + 2 * i + 2, id[i], 16);
  return id;
}

std::uint64_t read_pid_namespace() noexcept {
  char target[64];
  const ssize_t size = ::readlink("/proc/self/ns/pid", target, sizeof target);
  if (size <= 0) return 0;
  const std::string_view text(target, static_cast<std::size_t>(size));
  const std::size_t at = text.find('[');
  std::uint64_t number = 0;
  if (at != text.npos) (void)std::from_chars(text.data() + at + 1, text.data() + size, number);
  return number;
}

struct Stat {
  char state = 0;
  std::uint64_t start = 0;
};
/// The third and the 22nd field of /proc/PID/stat; the second is a name in brackets, which may hold
/// anything.
Stat read_stat(const char* path) noexcept {
  Stat stat;
  const SmallFile file(path);
  const std::string_view text = file.view();
  std::size_t at = text.rfind(") ");
  if (at == text.npos || at + 2 >= text.size()) return stat;
  at += 2;
  stat.state = text[at];
  for (int field = 3; field < 22; ++field) {
    at = text.find(' ', at);
    if (at == text.npos) return {};
    ++at;
  }
  (void)std::from_chars(text.data() + at, text.data() + text.size(), stat.start);
  return stat;
}

}  // namespace

std::string read_small_file(const std::string& path) {
  return std::string(SmallFile(path.c_str()).view());
}

ProcessLife this_process() noexcept {
  return {read_boot_id(), read_stat("/proc/self/stat").start, read_pid_namespace(),
          static_cast<std::uint32_t>(::getpid())};
}

Living lives(const ProcessLife& process) noexcept {
  const ProcessLife here = this_process();
  if (here.boot_id == decltype(here.boot_id){} || process.boot_id == decltype(here.boot_id){})
    return Living::unknown;
  if (here.boot_id != process.boot_id) return Living::no;
  if (here.pid_namespace != process.pid_namespace || here.pid_namespace == 0)
    return Living::unknown;
  if (here.start == 0) return Living::unknown;  // no /proc
  char path[32];
  (void)std::snprintf(path, sizeof path, "/proc/%u/stat", process.pid);
  const Stat stat = read_stat(path);
  const bool gone = stat.state == 0 || stat.state == 'Z' || stat.state == 'X';
  return gone || stat.start != process.start ? Living::no : Living::yes;
}

}  // namespace ringmain::engine::flight
