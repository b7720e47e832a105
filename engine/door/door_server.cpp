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
  place->answering = false;
}

void Server::answer(Peer& peer, std::string_view line) noexcept {
  try {
    options_.answer(word_of(line), peer.reply);
  } catch (const std::exception&) {
    peer.reply.say_static("ringmain: there was no memory to answer\n\n");
  }
  peer.answering = true;
  peer.until_ns = now_ns() + options_.taken_within_ns;
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
    peer.answering = true;
    peer.until_ns = now_ns() + options_.taken_within_ns;
    return send(peer);
  }
  if (some != 0) return;
  if (peer.got == 0) return drop(peer);
  answer(peer, said);  // it has said all that it will
}

void Server::send(Peer& peer) noexcept {
  while (peer.sent < peer.reply.view().size()) {
    const std::string_view rest = peer.reply.view().substr(peer.sent);
    const ssize_t some = ::send(peer.fd, rest.data(), rest.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (some < 0 && errno == EINTR) continue;
    if (some < 0 && errno == EAGAIN) return;
    if (some < 0) return drop(peer);
    peer.sent += static_cast<std::size_t>(some);
  }
  drop(peer);
}

void Server::run() noexcept {
  for (;;) {
    const std::int64_t before = now_ns();
    std::array<pollfd, kPeersMax + 1> polled{};
    const bool lets_in = free_place() != nullptr && lets_in_from_ns_ <= before;
    polled[0] = {lets_in ? listening_ : -1, POLLIN, 0};
    for (std::size_t i = 0; i < kPeersMax; ++i) {
      const short wanted = peers_[i].answering ? POLLOUT : POLLIN;
      polled[i + 1] = {peers_[i].fd, wanted, 0};
    }
    const int came = ::poll(polled.data(), polled.size(), wait_ms(before));
    if (came < 0 && errno != EINTR && errno != EAGAIN) return;
    if (options_.ends()) return;
    if (came > 0 && (polled[0].revents & (POLLNVAL | POLLERR | POLLHUP)) != 0) return;
    const std::int64_t now = now_ns();
    for (std::size_t i = 0; i < kPeersMax; ++i) {
      Peer& peer = peers_[i];
      if (peer.fd < 0) continue;
      // What has come counts, however late it is looked at: the process may have been stopped.
      if (came > 0 && polled[i + 1].revents != 0) {
        peer.answering ? send(peer) : hear(peer);
        // But one that takes its answer byte by byte is not waited for either.
        if (!peer.answering) continue;
      }
      if (peer.fd >= 0 && peer.until_ns <= now) drop(peer);
    }
    if (came > 0 && (polled[0].revents & POLLIN) != 0) let_in(now);
  }
}

}  // namespace ringmain::engine::door
