// Is anything to be done about an operation? A few looks, which the backend's own code makes.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>

#include "../../../engine/channel/channel_line.hpp"
#include "../../../engine/system/numbering.hpp"

namespace ringmain::collective::detail {

/// The part of a communicator that each operation reads.
class CommunicatorGate {
 public:
  /// Channels of what becomes of operations, and of shapes.
  using Lines = std::array<const engine::ChannelLine*, 5>;

  CommunicatorGate(const Lines& lines, const std::atomic<bool>& hooked) noexcept
      : lines_(lines), hooked_(&hooked) {}
  CommunicatorGate(const CommunicatorGate&) = delete;
  CommunicatorGate& operator=(const CommunicatorGate&) = delete;

  /// Nobody listens, no hook was ever registered on the bus, and the communicator is in use. In a
  /// forked child, where nothing is to be done, it may be either.
  [[nodiscard]] [[gnu::always_inline]] bool quiet() const noexcept {
    const auto& [issued, started, completed, failed, shapes] = lines_;
    const std::uint32_t seen =
        issued->look() | started->look() | completed->look() | failed->look() | shapes->look();
    return !engine::ChannelLine::heard(seen) && !*hooked_ && over == 0;
  }

  enum : std::uint32_t { kEnded = 1, kAborted = 2 };
  std::atomic<std::uint32_t> over{0};  // of these

 private:
  const Lines lines_;
  const std::atomic<bool>* const hooked_;

 public:
  engine::Numbering collectives;

 protected:
  ~CommunicatorGate() = default;
};

}  // namespace ringmain::collective::detail
