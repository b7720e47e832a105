// What does this process say of itself while it hangs? A door: a unix socket at which it answers
// `stats`, `dump` and `stacks`.
//
//   auto door = ringmain::open_door();
//   if (!door) std::fprintf(stderr, "%s\n", door.error().message.c_str());
//   …
//   ringmain door stacks 4711
#pragma once
#include <memory>
#include <string>
#include <utility>

#include "result.hpp"

namespace ringmain {

namespace detail {
class ProcessDoor;
}  // namespace detail

struct DoorOptions {
  /// A whole path; it is made, with those above it. "": the folder that RINGMAIN_DOOR names, else
  /// ringmain-door in the user's runtime folder, else /dev/shm/ringmain-door-UID.
  std::string folder{};
};

/// Keeps the process's door open. A process has one: it closes with the last handle, and one that
/// RINGMAIN_DOOR opened stays. In a forked child it is not there, and the handle does nothing.
/// Move-only. Threads: one at a time.
class [[nodiscard]] Door {
 public:
  Door() noexcept = default;
  Door(Door&&) noexcept = default;
  Door& operator=(Door&&) noexcept = default;
  ~Door() = default;

  /// Waits for an answer that is being made, for a few seconds at most. Progress: blocking.
  void reset() noexcept { door_.reset(); }
  /// The socket; "" without a door.
  [[nodiscard]] std::string path() const;
  [[nodiscard]] explicit operator bool() const noexcept { return door_ != nullptr; }

 private:
  friend Result<Door> open_door(const DoorOptions& options);
  explicit Door(std::shared_ptr<detail::ProcessDoor> door) noexcept : door_(std::move(door)) {}
  std::shared_ptr<detail::ProcessDoor> door_;
};

/// Opens the process's door, or gives another handle of it: a thread, ringmain:door, sleeps at the
/// socket, which is this user's alone, and answers this user and root. system: no folder, socket or
/// thread can be had. conflict: it is open in another folder. Threads: any. Throws std::bad_alloc.
[[nodiscard]] Result<Door> open_door(const DoorOptions& options = {});

/// The Python stacks of all threads of this process, as the door tells them: without the GIL, with
/// no handler of a signal, whatever faulthandler is at. refused: there is no Python here, or one
/// that does not lend the function for it (3.13, 3.14). Threads: any. Throws std::bad_alloc.
[[nodiscard]] Result<std::string> python_stacks();

}  // namespace ringmain
