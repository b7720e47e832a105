// What does a test need of a door? A folder of its own, and peers that are as rude as they like.
#pragma once
#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <poll.h>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <utility>

#include "engine/door/door.hpp"
#include "engine/door/door_place.hpp"

namespace ringmain::engine::door::tests {

class Folder {
 public:
  Folder() {
    std::string made = (std::filesystem::temp_directory_path() / "door-XXXXXX").string();
    path_ = ::mkdtemp(made.data());
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path_); }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  [[nodiscard]] std::size_t entries() const {
    std::size_t n = 0;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) {
      (void)entry;
      ++n;
    }
    return n;
  }

 private:
  std::string path_;
};

/// A peer. Its calls block.
class Peer {
 public:
  explicit Peer(const std::string& path) {
    const std::size_t end = path.rfind('/');
    const std::string folder = path.substr(0, end);
    const int in = ::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
    for (;;) {  // a door has room for so many who wait
      fd_ = connect_to(in, folder, path.substr(end + 1));
      if (fd_ != -EAGAIN) break;
      (void)::poll(nullptr, 0, 1);
    }
    ::close(in);
    if (fd_ >= 0) (void)::fcntl(fd_, F_SETFL, ::fcntl(fd_, F_GETFL) & ~O_NONBLOCK);
  }
  Peer(Peer&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Peer& operator=(Peer&&) = delete;
  ~Peer() { leave(); }

  [[nodiscard]] bool is_connected() const { return fd_ >= 0; }
  void leave() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }
  void end_of_words() const { ::shutdown(fd_, SHUT_WR); }
  void say(std::string_view words) const { (void)says(words); }
  /// False: the door hears no more.
  [[nodiscard]] bool says(std::string_view words) const {
    while (!words.empty()) {
      const ssize_t some = ::send(fd_, words.data(), words.size(), MSG_NOSIGNAL);
      if (some <= 0) return false;
      words.remove_prefix(static_cast<std::size_t>(some));
    }
    return true;
  }
  /// Until the door closes the connection; `error`: what it ended by, 0 for an end in order.
  [[nodiscard]] std::string hear(int* error = nullptr) const {
    std::string all;
    char some[4096];
    for (;;) {
      const ssize_t bytes = ::recv(fd_, some, sizeof some, 0);
      if (error != nullptr) *error = bytes < 0 ? errno : 0;
      if (bytes <= 0) return all;
      all.append(some, static_cast<std::size_t>(bytes));
    }
  }

 private:
  int fd_ = -1;
};

inline std::string ask(const std::string& path, const std::string& words) {
  const Peer peer(path);
  peer.say(words);
  return peer.hear();
}

/// A door that says every word again, or as much as a number asks for.
inline std::shared_ptr<Door> open_echo(const std::string& folder, std::string& complaint,
                                       std::int64_t request_within_ns = INT64_MAX / 4,
                                       std::int64_t left_within_ns = 2'000'000'000) {
  DoorOptions options;
  options.folder = folder;
  options.server.request_within_ns = request_within_ns;
  options.server.left_within_ns = left_within_ns;
  options.server.answer = [](std::string_view word, Reply& reply) {
    const bool is_number = !word.empty() && word.front() >= '1' && word.front() <= '9';
    reply.say(is_number ? std::string(std::stoul(std::string(word)), 'x') : std::string(word));
  };
  return Door::open(std::move(options), complaint);
}
inline std::shared_ptr<Door> open_echo(const Folder& folder) {
  std::string complaint;
  return open_echo(folder.path(), complaint);
}

/// What a process leaves that ends without a word: a socket that nobody listens at.
inline void leave_socket(const Folder& folder, const std::string& name) {
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  (void)std::snprintf(address.sun_path, sizeof address.sun_path, "%s", (folder / name).c_str());
  (void)::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  (void)::close(fd);
}

}  // namespace ringmain::engine::door::tests
