// Is there a request that makes a door crash or hang, or an answer that makes its client?
//
// A libFuzzer target, built with clang and -DRINGMAIN_BUILD_FUZZERS=ON:
//   door_fuzz -max_total_time=60 NEW_INPUTS tests/cli/door_corpus
// The first byte says which of the two; what follows comes over a socket, as from a peer. An answer
// is also shown as one of what hangs, beside itself: nothing in it is believed.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <poll.h>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <sys/un.h>
#include <thread>
#include <unistd.h>

#include "engine/door/door_server.hpp"

#include "cli/door_client.hpp"
#include "cli/door_stalled.hpp"

namespace ringmain::cli {
namespace {

using engine::door::Reply;

void require(bool holds) {
  if (!holds) std::abort();
}

/// A socket that listens in a folder of its own, for the whole process.
struct Listening {
  std::string folder = (std::filesystem::temp_directory_path() / "door-fuzz-XXXXXX").string();
  int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  Listening() {
    require(::mkdtemp(folder.data()) != nullptr);
    address.sun_family = AF_UNIX;
    const std::string path = folder + "/door";
    require(path.size() < sizeof address.sun_path);
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    require(::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
            ::listen(fd, 8) == 0);
  }
  ~Listening() { std::filesystem::remove_all(folder); }
};

int connected(const Listening& at) {
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  require(::connect(fd, reinterpret_cast<const sockaddr*>(&at.address), sizeof at.address) == 0);
  return fd;
}

/// What the door makes of it is an answer that ends in an empty line, or nothing.
void request(const Listening& at, std::string_view said) {
  const int peer = connected(at);
  (void)!::send(peer, said.data(), said.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  require(::shutdown(peer, SHUT_WR) == 0);
  // It looks whether it is to end when something comes: these come after the peer, one by one.
  int others[3];
  for (int& other : others) {
    other = connected(at);
    require(::shutdown(other, SHUT_WR) == 0);
  }
  engine::door::ServerOptions options;
  std::string word;
  options.answer = [&word](std::string_view asked, Reply& reply) {
    word = asked;
    reply.say("{}\n\n");
  };
  options.ends = [peer] {
    pollfd polled{peer, POLLIN, 0};
    return ::poll(&polled, 1, 0) > 0;
  };
  engine::door::Server(at.fd, options).run();
  require(word.size() <= engine::door::kRequestBytesMax && word.find('\n') == word.npos);
  char got[4096];
  const ssize_t bytes = ::recv(peer, got, sizeof got, 0);
  require(bytes <= 0 || std::string_view(got, static_cast<std::size_t>(bytes)).ends_with("\n\n"));
  for (const int fd : {peer, others[0], others[1], others[2]}) ::close(fd);
  // Those that it has not let in are not for the next one.
  for (pollfd left{at.fd, POLLIN, 0}; ::poll(&left, 1, 0) > 0;)
    ::close(::accept(at.fd, nullptr, nullptr));
}

/// The client has an answer, or a sentence.
void answer(const Listening& at, std::string_view said) {
  std::thread door([&] {
    const int peer = ::accept4(at.fd, nullptr, nullptr, SOCK_CLOEXEC);
    char word[256];
    (void)!::recv(peer, word, sizeof word, 0);
    (void)!::send(peer, said.data(), said.size(), MSG_NOSIGNAL);
    ::close(peer);
  });
  const DoorAnswer got = ask_door({at.folder, "door", 0}, "stats", 60'000'000'000);
  door.join();
  if (got.fault.empty()) require(said.ends_with("\n\n") && got.text.size() + 1 == said.size());
  require(got.fault.empty() || got.fault.find('\0') == got.fault.npos ||
          said.find('\0') != said.npos);
  const auto process = read_stalled(got.text);
  if (!process) return;
  require(!in_words(*process).empty());
  (void)whom_they_wait_for({*process, *process}, false);
  (void)whom_they_wait_for({*process}, true);
}

}  // namespace
}  // namespace ringmain::cli

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const ringmain::cli::Listening at;
  if (size == 0) return 0;
  const std::string_view said(reinterpret_cast<const char*>(data) + 1, size - 1);
  data[0] % 2 == 0 ? ringmain::cli::request(at, said) : ringmain::cli::answer(at, said);
  return 0;
}
