// A program with a bus, which does what it is told on standard input, a word a line, and prints a
// line after each: say (publishes 10 events), fds (how many descriptors it has), threads, close
// (all descriptors from 3 on), fork (a child that goes on without an exec, and has ended), child (a
// child that makes a bus of its own, and waits for its own end), exec (becomes itself anew), _exit,
// door (opens one), path (of that), shut (closes it).
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <memory>
#include <string>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bus/bus.hpp"
#include "bus/door.hpp"

#include "tests/process/alone_awake.hpp"
#include "tests/process/sanitized.hpp"

namespace {

struct Said {
  std::uint64_t number;
};
constexpr auto describe(ringmain::EventOf<Said>) {
  return ringmain::event("program.said", ringmain::field<&Said::number>("number"));
}

long entries(const char* folder) {
  namespace fs = std::filesystem;
  return std::distance(fs::directory_iterator(folder), fs::directory_iterator());
}

void print(const std::string& line) {
  std::puts(line.c_str());
  std::fflush(stdout);
}

void say() {
  for (std::uint64_t i = 0; i < 10; ++i) ringmain::Bus::process().channel<Said>().post({i});
}

std::string end_of_child(bool with_a_bus) {
  std::fflush(nullptr);
  if (ringmain::tests::is_sanitized()) ringmain::tests::wait_until_alone_awake();
  const pid_t child = ::fork();
  if (child == 0) {
    if (with_a_bus) {
      const ringmain::Bus own;
      print(std::to_string(::getpid()));
      (void)::pause();
    }
    std::exit(0);
  }
  int status = 0;
  (void)::waitpid(child, &status, 0);
  return "ended " + std::to_string(status);
}

}  // namespace

int main(int, char** words) {
  ringmain::Door door;
  print("ready");
  char line[64];
  while (std::fgets(line, sizeof line, stdin) != nullptr) {
    line[std::strcspn(line, "\n")] = '\0';
    const std::string word = line;
    if (word == "say") say();
    if (word == "fds" || word == "threads") {
      print(std::to_string(entries(word == "fds" ? "/proc/self/fd" : "/proc/self/task")));
      continue;
    }
    if (word == "close") (void)::syscall(SYS_close_range, 3u, ~0u, 0u);
    if (word == "fork" || word == "child") {
      print(end_of_child(word == "child"));
      continue;
    }
    if (word == "exec") ::execl(words[0], words[0], nullptr);
    if (word == "_exit") ::_exit(0);
    if (word == "door") {
      auto made = ringmain::open_door();
      if (!made) {
        print(made.error().message);
        continue;
      }
      door = std::move(made).value();
    }
    if (word == "path") {
      print(door.path());
      continue;
    }
    if (word == "shut") door.reset();
    print("done");
  }
  return 0;
}
