#include "bus/origin.hpp"

#include <atomic>
#include <cerrno>
#include <ctime>
#include <memory>
#include <sys/random.h>
#include <unistd.h>

namespace ringmain {
namespace {

struct Drawn {
  pid_t pid;
  std::uint64_t id;
};

std::int64_t read_ns(clockid_t clock) noexcept {
  timespec now{};
  ::clock_gettime(clock, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

/// splitmix64's last step: every bit of `x` changes every bit.
std::uint64_t mixed(std::uint64_t x) noexcept {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

std::uint64_t draw() noexcept {
  std::uint64_t id = 0;
  if (::getrandom(&id, sizeof id, GRND_NONBLOCK) == sizeof id) return id;
  // No random bytes from a kernel that has just booted, or after a filter of system calls: use
  // what differs between processes.
  return mixed(
      static_cast<std::uint64_t>(read_ns(CLOCK_REALTIME)) ^
      mixed(static_cast<std::uint64_t>(::getpid()) ^ reinterpret_cast<std::uintptr_t>(&id)));
}

/// One id for each process, without a lock that a forked child could find locked.
std::uint64_t own_id() {
  static std::atomic<const Drawn*> drawn{nullptr};
  const pid_t me = ::getpid();
  const Drawn* known = drawn;
  while (known == nullptr || known->pid != me) {
    auto made = std::make_unique<const Drawn>(Drawn{me, draw()});
    if (drawn.compare_exchange_strong(known, made.get())) return made.release()->id;
  }
  return known->id;
}

std::string hex(std::uint64_t number) {
  std::string digits;
  for (int shift = 60; shift >= 0; shift -= 4) digits += "0123456789abcdef"[number >> shift & 15u];
  return digits;
}

}  // namespace

Origin Origin::here() {
  Origin made;
  made.id = hex(own_id());
  made.process = read_rank_identity();
  made.program = ::program_invocation_short_name;
  made.read_clocks();
  return made;
}

void Origin::read_clocks() noexcept {
  std::int64_t apart_ns = INT64_MAX;
  for (int tries = 0; tries < 3; ++tries) {  // keep the pair with the shortest time between
    const std::int64_t before = read_ns(CLOCK_MONOTONIC);
    const std::int64_t real = read_ns(CLOCK_REALTIME);
    const std::int64_t after = read_ns(CLOCK_MONOTONIC);
    if (after - before >= apart_ns) continue;
    apart_ns = after - before;
    monotonic_ns = before + apart_ns / 2;
    realtime_ns = real;
  }
}

std::uint64_t new_op_ids(std::uint64_t count) noexcept {
  static constinit std::atomic<std::uint64_t> next{1};
  return next.fetch_add(count);
}

std::uint64_t new_op_id() noexcept {
  constexpr std::uint64_t kAtATime = std::uint64_t{1} << 16;
  static thread_local constinit std::uint64_t last __attribute__((tls_model("initial-exec"))) = 0;
  static thread_local constinit std::uint64_t left __attribute__((tls_model("initial-exec"))) = 0;
  if (left == 0) [[unlikely]] {
    last = new_op_ids(kAtATime) - 1;
    left = kAtATime;
  }
  --left;
  return ++last;
}

}  // namespace ringmain
