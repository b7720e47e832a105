// The one door of a process. Not for users of the library.
#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "../../engine/door/door.hpp"

#include "../result.hpp"

namespace ringmain::detail {

/// While it lives, the door is open.
class ProcessDoor {
 public:
  explicit ProcessDoor(std::shared_ptr<engine::door::Door> door) noexcept;
  ProcessDoor(const ProcessDoor&) = delete;
  ProcessDoor& operator=(const ProcessDoor&) = delete;
  ~ProcessDoor();
  [[nodiscard]] engine::door::Door& door() const noexcept { return *door_; }

 private:
  const std::shared_ptr<engine::door::Door> door_;
  bool is_at_end_ = false;
};

/// Does this process have one? Sources whose answers take work beforehand do it then. In a forked
/// child what the parent had. Threads: any. Progress: wait-free.
[[nodiscard]] bool has_door() noexcept;

/// What RINGMAIN_DOOR says.
struct DoorAsked {
  bool opens = false;
  std::string folder;     // "": the usual ones
  std::string complaint;  // of a value that means nothing
};
[[nodiscard]] DoorAsked read_door_variable(std::string_view value);

/// Opens it once in each process, if RINGMAIN_DOOR wants one; what goes wrong is said on standard
/// error. It stays open until the process ends.
void open_door_of_environment() noexcept;
/// Takes the socket's file away, at an end of the process that runs no handler of exit().
/// Async-signal-safe.
void leave_no_door() noexcept;

}  // namespace ringmain::detail
