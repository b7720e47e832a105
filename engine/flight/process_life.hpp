// Which process is this, for a reader that comes when it is gone; and does one still live?
//
// A process id is used again, so a process is named by the boot of the machine, its id, and its
// start. Ids of another pid namespace say nothing here.
#pragma once
#include <array>
#include <cstdint>
#include <string>

namespace ringmain::engine::flight {

struct ProcessLife {
  std::array<std::uint8_t, 16> boot_id{};  // zeros: not known
  std::uint64_t start = 0;                 // clock ticks after the boot; 0: not known
  std::uint64_t pid_namespace = 0;         // 0: not known
  std::uint32_t pid = 0;
};
/// This process. Allocates nothing.
[[nodiscard]] ProcessLife this_process() noexcept;

enum class Living : std::uint8_t { no, yes, unknown };
/// A zombie does not live. Unknown: in another pid namespace, or /proc does not say. Allocates
/// nothing.
[[nodiscard]] Living lives(const ProcessLife& process) noexcept;

/// What a small file holds: 4 KiB at most; empty where it cannot be read. Throws std::bad_alloc.
[[nodiscard]] std::string read_small_file(const std::string& path);

}  // namespace ringmain::engine::flight
