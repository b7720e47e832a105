// A socket at which this process answers, and the one thread that sleeps at it.
//
// The thread has a table of descriptors of its own: the program cannot close the socket, takes none
// of its numbers, and no child of a fork or an exec inherits it. What is left in the folder by a
// process that was killed, or has become another by an exec, refuses connections; the next door
// there takes it away.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "door_server.hpp"

namespace ringmain::engine::door {

struct DoorOptions {
  std::string folder;
  bool with_parents = false;  // makes what is above the folder, too
  ServerOptions server{};     // its `ends` is the door's own
};

/// Threads: any.
class Door {
 public:
  /// nullptr: `complaint` says why, and how to mend it. Throws std::bad_alloc.
  [[nodiscard]] static std::shared_ptr<Door> open(DoorOptions options, std::string& complaint);
  Door(const Door&) = delete;
  Door& operator=(const Door&) = delete;
  /// As close().
  ~Door();

  [[nodiscard]] const std::string& path() const noexcept;
  /// Takes the socket away and ends the thread. It waits for an answer that is being made, a few
  /// seconds at most: then the thread ends once it is made. In a forked child, and in the door's
  /// own thread, it waits for nothing.
  void close() noexcept;
  /// It was opened before a fork, and this is the child.
  [[nodiscard]] bool forked() const noexcept;
  /// Takes the socket's file away; whoever is connected is answered. Not in a child of a fork or
  /// vfork. Async-signal-safe.
  void remove_file() const noexcept;

 private:
  struct Shared;
  explicit Door(std::shared_ptr<Shared> shared) noexcept : shared_(std::move(shared)) {}
  std::shared_ptr<Shared> shared_;
};

}  // namespace ringmain::engine::door
