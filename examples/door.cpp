// What is this program at, while it runs? It opens a door, and asks at it what `ringmain door`
// would ask: its own figures.
//
//   door             asks itself, and ends
//   door wait        waits until its standard input ends; meanwhile: ringmain door stats
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <ringmain/bus/bus.hpp>
#include <ringmain/bus/door.hpp>

namespace {

struct Step {
  std::uint64_t step = 0;
};
constexpr auto describe(ringmain::EventOf<Step>) {
  return ringmain::event("train.step", ringmain::field<&Step::step>("step", ringmain::Unit::id));
}

/// A word on a line; then all that is said until the door ends the connection.
std::string ask(const std::string& path, std::string_view line) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return "";
  path.copy(address.sun_path, path.size());
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  std::string answer;
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
      ::send(fd, line.data(), line.size(), MSG_NOSIGNAL) > 0) {
    char some[4096];
    for (ssize_t bytes = 0; (bytes = ::recv(fd, some, sizeof some, 0)) > 0;)
      answer.append(some, static_cast<std::size_t>(bytes));
  }
  ::close(fd);
  return answer;
}

}  // namespace

int main(int count, char** words) {
  auto door = ringmain::open_door();
  if (!door) {
    std::fprintf(stderr, "%s\n", door.error().message.c_str());
    return 1;
  }
  ringmain::Bus bus;
  const auto seen = bus.channel<Step>().subscribe([](const Step&) {});
  for (std::uint64_t step = 1; step <= 20; ++step) bus.channel<Step>().post({step});
  std::printf("ask it: ringmain door stats %d\n", static_cast<int>(::getpid()));
  std::fflush(stdout);
  if (count > 1 && std::string_view(words[1]) == "wait") {
    while (std::getchar() != EOF) {
    }
    return 0;
  }
  const std::string answer = ask(door.value().path(), "stats\n");
  std::fputs(answer.c_str(), stdout);
  return answer.find("train.step") != answer.npos ? 0 : 1;
}
