#include "adapters/sources/nccl/nccl_core.hpp"

#include <memory>
#include <sys/random.h>
#include <unistd.h>

#include "engine/system/clock.hpp"

namespace ringmain::nccl {

constinit Switchboard switchboard;

Core::Cookies Core::draw_cookies() noexcept {
  constexpr std::uint32_t kMask = (1u << engine::Token::kCookieBits) - 1;
  std::uint32_t drawn[2] = {};
  if (::getrandom(drawn, sizeof drawn, GRND_NONBLOCK) != sizeof drawn) {
    const auto now = static_cast<std::uint64_t>(engine::now_ns());
    const std::uint64_t mixed =
        (now ^ static_cast<std::uint64_t>(::getpid()) << 32) * 0x9e3779b97f4a7c15u;
    drawn[0] = static_cast<std::uint32_t>(mixed >> 32);
    drawn[1] = static_cast<std::uint32_t>(mixed >> 14);
  }
  // The lowest bits tell them apart, one of the upper bits makes them no addresses.
  const std::uint32_t spans = (drawn[0] & kMask & ~3u) | 1u << 17;
  return {spans, (drawn[1] & kMask) | 1u | 1u << 16, spans | 2u};
}

Core::Core()
    : cookies_(draw_cookies()),
      spans(kSpans, cookies_.spans),
      passed(Passed::kPlacesMax, cookies_.passed),
      communicators(cookies_.communicators),
      counts(switchboard.counts),
      process(static_cast<std::int32_t>(::getpid())) {}

Core& Core::instance() {
  Core* found = switchboard.core.load();
  if (found != nullptr) return *found;
  auto mine = std::make_unique<Core>();
  if (!switchboard.core.compare_exchange_strong(found, mine.get()))
    return *found;  // another thread's
  return *mine.release();
}

}  // namespace ringmain::nccl
