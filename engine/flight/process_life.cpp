#include "engine/flight/process_life.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <fcntl.h>
#include <string_view>
#include <unistd.h>

namespace ringmain::engine::flight {
namespace {

std::array<std::uint8_t, 16> read_boot_id() {
  std::array<std::uint8_t, 16> id{};
  std::string text = read_small_file("/proc/sys/kernel/random/boot_id");
  text.erase(std::remove_if(text.begin(), text.end(),
                            [](unsigned char c) { return std::isxdigit(c) == 0; }),
             text.end());
  if (text.size() != 2 * id.size()) return id;
  for (std::size_t i = 0; i < id.size(); ++i)
    (void)std::from_chars(text.data() + 2 * i, text.data() + 2 * i + 2, id[i], 16);
  return id;
}

std::uint64_t read_pid_namespace() {
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
Stat read_stat(const std::string& process) {
  Stat stat;
  const std::string text = read_small_file("/proc/" + process + "/stat");
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
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return {};
  std::string text(4096, '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const ssize_t some = ::read(fd, text.data() + size, text.size() - size);
    if (some <= 0) break;
    size += static_cast<std::size_t>(some);
  }
  ::close(fd);
  text.resize(size);
  return text;
}

ProcessLife this_process() {
  return {read_boot_id(), read_stat("self").start, read_pid_namespace(),
          static_cast<std::uint32_t>(::getpid())};
}

Living lives(const ProcessLife& process) {
  const ProcessLife here = this_process();
  if (here.boot_id == decltype(here.boot_id){} || process.boot_id == decltype(here.boot_id){})
    return Living::unknown;
  if (here.boot_id != process.boot_id) return Living::no;
  if (here.pid_namespace != process.pid_namespace || here.pid_namespace == 0)
    return Living::unknown;
  if (here.start == 0) return Living::unknown;  // no /proc
  const Stat stat = read_stat(std::to_string(process.pid));
  const bool gone = stat.state == 0 || stat.state == 'Z' || stat.state == 'X';
  return gone || stat.start != process.start ? Living::no : Living::yes;
}

}  // namespace ringmain::engine::flight
