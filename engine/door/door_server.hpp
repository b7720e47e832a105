// Who is let in, and how long may one take? One thread serves a few peers side by side: a line is
// read, the word on it answered, and the connection closed.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <sys/types.h>

#include "reply.hpp"

namespace ringmain::engine::door {

inline constexpr std::size_t kPeersMax = 8;
inline constexpr std::size_t kRequestBytesMax = 255;  // without the end of the line

/// Is a peer of this user let in by a process of that one? Its own user is, and root.
[[nodiscard]] inline bool is_let_in(uid_t peer, uid_t own) noexcept {
  return peer == own || peer == 0;
}

struct ServerOptions {
  /// A peer that has not said its line by then is dropped.
  std::int64_t request_within_ns = 2'000'000'000;
  /// So is one that has not taken its answer.
  std::int64_t taken_within_ns = 10'000'000'000;
  /// And one that has it, and goes on talking.
  std::int64_t left_within_ns = 2'000'000'000;
  /// Called in the server's thread. What it does not say is answered by a sentence.
  std::function<void(std::string_view word, Reply&)> answer;
  /// Asked after each time that something came.
  std::function<bool()> ends;
};

/// Threads: one.
class Server {
 public:
  Server(int listening, const ServerOptions& options) noexcept
      : listening_(listening), options_(options) {}
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server();

  /// Returns once it is to end, or the socket is gone.
  void run() noexcept;

 private:
  enum class Phase : std::uint8_t { asks, is_answered, leaves };
  struct Peer {
    int fd = -1;
    std::int64_t until_ns = 0;
    std::size_t got = 0, sent = 0;
    Phase phase = Phase::asks;
    std::array<char, kRequestBytesMax + 1> line{};
    Reply reply;
  };
  void let_in(std::int64_t now_ns) noexcept;
  void hear(Peer& peer) noexcept;
  void answer(Peer& peer, std::string_view line) noexcept;
  void send(Peer& peer) noexcept;
  void serve(Peer& peer) noexcept;
  static void see_off(Peer& peer) noexcept;
  static void drop(Peer& peer) noexcept;
  void drop_all() noexcept;
  [[nodiscard]] Peer* free_place() noexcept;
  [[nodiscard]] int wait_ms(std::int64_t now_ns) const noexcept;

  const int listening_;
  const ServerOptions& options_;
  std::array<Peer, kPeersMax> peers_{};
  std::int64_t lets_in_from_ns_ = 0;  // after the system had no descriptor
};

}  // namespace ringmain::engine::door
