#include "adapters/launch/solitude.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include "engine/system/clock.hpp"

namespace ringmain::run {
namespace {

/// "12/comm" of a thread, cut to the room for it.
std::size_t read_about(int threads, const char* thread, const char* what, char* to,
                       std::size_t room) noexcept {
  char path[64];
  (void)std::snprintf(path, sizeof path, "%s/%s", thread, what);
  const int fd = ::openat(threads, path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  const ssize_t bytes = ::read(fd, to, room - 1);  // ESRCH: it has ended meanwhile
  (void)::close(fd);
  to[std::max<ssize_t>(bytes, 0)] = 0;
  return static_cast<std::size_t>(std::max<ssize_t>(bytes, 0));
}

/// Are other threads in `threads`, a descriptor of /proc/self/task? True also if that cannot be
/// told, because ending the process would end them.
bool others_are_there(int threads) noexcept {
  const int mine = ::openat(threads, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* const folder = mine < 0 ? nullptr : ::fdopendir(mine);
  if (folder == nullptr) {
    if (mine >= 0) (void)::close(mine);
    return true;
  }
  bool found = false;
  for (const dirent* entry = nullptr; !found && (entry = ::readdir(folder)) != nullptr;) {
    if (entry->d_name[0] == '.' || std::atoi(entry->d_name) == ::getpid()) continue;
    char name[17] = "";
    const bool lives = read_about(threads, entry->d_name, "comm", name, sizeof name) != 0;
    const bool ours = std::strncmp(name, "ringmain", 8) == 0 && (name[8] == ':' || name[8] == '/');
    found = lives && !ours;
  }
  (void)::closedir(folder);
  return found;
}

/// The main thread's status: the last of 52 words of its line. 0 if it is missing.
int status_of_main_thread(int threads) noexcept {
  char id[16];
  char line[1024] = "";
  (void)std::snprintf(id, sizeof id, "%d", ::getpid());
  (void)read_about(threads, id, "stat", line, sizeof line);
  const char* const last = std::strrchr(line, ' ');
  return last == nullptr ? 0 : std::atoi(last + 1) >> 8 & 0xff;
}

}  // namespace

int open_threads() noexcept {
  return ::open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/// Looks ever more seldom, so that the process ends at most 2 % of its time later.
int await_solitude_in(int threads) noexcept {
  // A process ends with the status of its last thread. Only the main thread's can be read; the C
  // library ends others with 0.
  if (!others_are_there(threads)) return status_of_main_thread(threads);
  const std::int64_t begun = engine::now_ns();
  while (others_are_there(threads)) {
    const std::int64_t pause_ns =
        std::clamp<std::int64_t>((engine::now_ns() - begun) / 64, 1'000'000, 100'000'000);
    const timespec for_so_long{0, pause_ns};
    (void)::nanosleep(&for_so_long, nullptr);
  }
  return 0;
}

}  // namespace ringmain::run
