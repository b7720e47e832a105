#include "engine/door/door_server.hpp"

#include <algorithm>
#include <cerrno>
#include <exception>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "engine/system/clock.hpp"

namespace ringmain::engine::door {
namespace {

constexpr std::int64_t kPauseNs = 1'000'000'000;

bool may_come_in(int fd) noexcept {
  ucred peer{};
  socklen_t bytes = sizeof peer;
  return ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 &&
         is_let_in(peer.uid, ::geteuid());
}

/// Without the spaces around it.
std::string_view word_of(std::string_view line) noexcept {
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t from = line.find_first_not_of(kSpace);
  if (from == line.npos) return {};
  return line.substr(from, line.find_last_not_of(kSpace) - from + 1);
}

}  // namespace

Server::~Server() {
  drop_all();
}

void Server::drop_all() noexcept {
  for (Peer& peer : peers_) drop(peer);
}

void Server::drop(Peer& peer) noexcept {
  if (peer.fd >= 0) ::close(peer.fd);
  peer.fd = -1;
  peer.reply.clear();
}

Server::Peer* Server::free_place() noexcept {
  const auto place =
      std::find_if(peers_.begin(), peers_.end(), [](const Peer& peer) { return peer.fd < 0; });
  return place == peers_.end() ? nullptr : &*place;
}

int Server::wait_ms(std::int64_t now_ns) const noexcept {
  std::int64_t until = lets_in_from_ns_ > now_ns ? lets_in_from_ns_ : INT64_MAX;
  for (const Peer& peer : peers_) {
    if (peer.fd >= 0) until = std::min(until, peer.until_ns);
  }
  if (until == INT64_MAX) return -1;
  return static_cast<int>(std::clamp<std::int64_t>((until - now_ns) / 1'000'000 + 1, 0, 3'600'000));
}

void Server::let_in(std::int64_t now_ns) noexcept {
  Peer* const place = free_place();
  if (place == nullptr) return;
  const int fd = ::accept4(listening_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd < 0) {
    const bool scarce = errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS;
    if (scarce) lets_in_from_ns_ = now_ns + kPauseNs;
    return;
  }
  if (!may_come_in(fd)) {
    ::close(fd);
    return;
  }
  place->fd = fd;
  place->until_ns = now_ns + options_.request_within_ns;
  place->got = place->sent = 0;
  place->phase = Phase::asks;
}

void Server::answer(Peer& peer, std::string_view line) noexcept {
  try {
    options_.answer(word_of(line), peer.reply);
  } catch (const std::exception&) {
    peer.reply.say_static("ringmain: there was no memory to answer\n\n");
  }
  send(peer);
}

void Server::hear(Peer& peer) noexcept {
  const ssize_t some =
      ::recv(peer.fd, peer.line.data() + peer.got, peer.line.size() - peer.got, MSG_DONTWAIT);
  if (some < 0) {
    if (errno != EAGAIN && errno != EINTR) drop(peer);
    return;
  }
  peer.got += static_cast<std::size_t>(some);
  const std::string_view said(peer.line.data(), peer.got);
  const std::size_t end = said.find('\n');
  if (end != said.npos) return answer(peer, said.substr(0, end));
  if (peer.got == peer.line.size()) {
    peer.reply.say_static("ringmain: a request is one word on a line of 255 bytes at most\n\n");
    return send(peer);
  }
  if (some != 0) return;
  if (peer.got == 0) return drop(peer);
  answer(peer, said);  // it has said all that it will
}

void Server::send(Peer& peer) noexcept {
  if (peer.phase == Phase::asks) {
    peer.phase = Phase::is_answered;
    peer.until_ns = now_ns() + options_.taken_within_ns;
  }
  while (peer.sent < peer.reply.view().size()) {
    const std::string_view rest = peer.reply.view().substr(peer.sent);
    const ssize_t some = ::send(peer.fd, rest.data(), rest.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (some < 0 && errno == EINTR) continue;
    if (some < 0 && errno == EAGAIN) return;
    if (some < 0) return drop(peer);
    peer.sent += static_cast<std::size_t>(some);
  }
  peer.reply.clear();
  peer.phase = Phase::leaves;
  peer.until_ns = now_ns() + options_.left_within_ns;
  if (::shutdown(peer.fd, SHUT_WR) != 0) drop(peer);
}

/// What it has said beyond its word is taken and forgotten: a socket that is closed with something
/// unread gives its peer an error in place of the end.
void Server::see_off(Peer& peer) noexcept {
  char some[4096];
  const ssize_t bytes = ::recv(peer.fd, some, sizeof some, MSG_DONTWAIT);
  if (bytes == 0 || (bytes < 0 && errno != EAGAIN && errno != EINTR)) drop(peer);
}

void Server::serve(Peer& peer) noexcept {
  switch (peer.phase) {
    case Phase::asks:
      return hear(peer);
    case Phase::is_answered:
      return send(peer);
    case Phase::leaves:
      return see_off(peer);
  }
}

void Server::run() noexcept {
  for (;;) {
    const std::int64_t before = now_ns();
    // Only what is there: more than the process may have open is refused.
    std::array<pollfd, kPeersMax + 1> polled{};
    std::array<Peer*, kPeersMax> whose{};
    std::size_t n = 0;
    for (Peer& peer : peers_) {
      if (peer.fd < 0) continue;
      const short wanted = peer.phase == Phase::is_answered ? POLLOUT : POLLIN;
      polled[n] = {peer.fd, wanted, 0};
      whose[n++] = &peer;
    }
    pollfd& door = polled[n];
    door = {n < kPeersMax && lets_in_from_ns_ <= before ? listening_ : -1, POLLIN, 0};
    const int came = ::poll(polled.data(), n + 1, wait_ms(before));
    if (came < 0 && (errno == EINVAL || errno == ENOMEM)) {  // the program's limit is lower now
      drop_all();
      (void)::poll(nullptr, 0, static_cast<int>(kPauseNs / 1'000'000));
    } else if (came < 0 && errno != EINTR && errno != EAGAIN) {
      return;
    }
    if (options_.ends()) return;
    if (came > 0 && (door.revents & (POLLNVAL | POLLERR | POLLHUP)) != 0) return;
    const std::int64_t now = now_ns();
    for (std::size_t i = 0; i < n; ++i) {
      Peer& peer = *whose[i];
      // What has come counts, however late it is looked at: the process may have been stopped.
      if (came > 0 && polled[i].revents != 0) {
        serve(peer);
        // But one that takes its answer byte by byte, or never stops, is not waited for either.
        if (peer.phase == Phase::asks) continue;
      }
      if (peer.fd >= 0 && peer.until_ns <= now) drop(peer);
    }
    if (came > 0 && (door.revents & POLLIN) != 0) let_in(now);
  }
}

}  // namespace ringmain::engine::door
