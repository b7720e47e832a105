// How does a publish on a lane end? One word, with the reason of a veto.
#pragma once
#include <cstdint>

namespace ringmain::engine {

/// How a publish on a lane ended. The bus says the same to its users as PublishCode.
enum class Pushed : std::uint8_t {
  accepted,
  unheard,
  full,
  closed,
  would_deadlock,
  no_memory,
  too_deep,
  vetoed,
  forked
};
/// The same with a veto's reason (a name's id, or 0). One word, so that no publish takes it apart.
class PushResult {
 public:
  PushResult() = default;
  constexpr PushResult(Pushed code) noexcept  // NOLINT(google-explicit-constructor): most are
      : bits_(static_cast<std::uint64_t>(code)) {}
  constexpr PushResult(Pushed code, std::uint32_t why) noexcept
      : bits_(static_cast<std::uint64_t>(code) | std::uint64_t{why} << 32) {}
  // NOLINTNEXTLINE(google-explicit-constructor): as above
  constexpr operator Pushed() const noexcept { return static_cast<Pushed>(bits_); }
  [[nodiscard]] constexpr std::uint64_t bits() const noexcept { return bits_; }

 private:
  std::uint64_t bits_ = 0;
};
static_assert(sizeof(PushResult) == 8);

}  // namespace ringmain::engine
