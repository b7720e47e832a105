// A program that publishes on its own, and ends in the way that its argument says.
// usage: publisher WAY COUNT [FILE], where FILE has a line per event before it is killed or crashes
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "bus/bus.hpp"

namespace {

struct Said {
  std::uint64_t number;
};
constexpr auto describe(ringmain::EventOf<Said>) {
  return ringmain::event("program.said", ringmain::field<&Said::number>("number"));
}

void publish(std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) ringmain::Bus::process().channel<Said>().post({i});
}

bool holds(const char* path, std::uint64_t lines) {
  std::FILE* file = std::fopen(path, "r");
  std::uint64_t seen = 0;
  for (int c = 0; file != nullptr && (c = std::fgetc(file)) != EOF;) seen += c == '\n' ? 1 : 0;
  if (file != nullptr) std::fclose(file);
  return seen >= lines;
}

void await(const char* path, std::uint64_t lines) {
  for (int i = 0; i < 60'000 && !holds(path, lines); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace

int main(int count, char** words) {
  if (count < 3) return 2;
  const std::string way = words[1];
  const std::uint64_t events = std::strtoull(words[2], nullptr, 10);
  publish(events);
  if (way == "returns") return 0;
  if (way == "_exit") ::_exit(5);
  if (way == "quick_exit") std::quick_exit(6);
  if (way == "_exit_with_a_handler") {
    std::signal(SIGALRM, [](int) { (void)!::write(STDOUT_FILENO, "told", 4); });
    (void)!::write(STDOUT_FILENO, "leaving\n", 8);
    ::_exit(5);
  }
  if (way == "exit_in_a_handler") {
    std::signal(SIGTERM, [](int) { ::_exit(7); });
    std::raise(SIGTERM);
  }
  if (way == "exec") ::execl(words[0], words[0], "returns", "50", nullptr);
  if (way == "failed_exec") {
    ::execlp("there-is-no-such-program", "x", nullptr);
    publish(events);
    return 0;
  }
  if (way == "looks_at_its_output") {
    std::fputs("held ", stdout);
    ::execl("/nowhere/at/all", "x", nullptr);  // returns after sinks have written
    return std::ferror(stdout) != 0 ? 9 : 4;
  }
  if (way == "failed_execs") {  // as a shell that looks for a program in many folders
    for (int i = 0; i < 200; ++i) ::execl("/nowhere/at/all", "x", nullptr);
    return 0;
  }
  if (way == "failed_exec_then_exec") {  // what stands in FILE has been read before the second one
    ::execl("/nowhere/at/all", "x", nullptr);
    std::puts("failed");
    std::fflush(stdout);
    await(words[3], 1);
    publish(events);
    ::execl("/bin/true", "true", nullptr);
  }
  if (way == "fork") {
    for (const bool abruptly : {false, true}) {
      const pid_t child = ::fork();
      if (child == 0) {
        publish(events);
        abruptly ? ::_exit(0) : std::exit(0);
      }
      int status = 0;
      if (::waitpid(child, &status, 0) != child || status != 0) return 9;
    }
    publish(events);
    return 0;
  }
  await(words[3], events);
  if (way == "killed") std::raise(SIGKILL);
  if (way == "crash") std::raise(SIGSEGV);
  return 2;
}
