// What does a door answer? docs/door.md has the words.
#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "../../engine/door/reply.hpp"

namespace ringmain::detail {

/// Of one door. Threads: one, the door's own; what it starts for a dump may outlive it.
class DoorWords {
 public:
  DoorWords();
  /// Throws std::bad_alloc.
  void answer(std::string_view word, engine::door::Reply& reply);

 private:
  struct Dumping;
  void dump(engine::door::Reply& reply);
  const std::string process_;  // "Process 4711 (python3), rank 3 of 8"
  std::shared_ptr<Dumping> dumping_;
};

}  // namespace ringmain::detail
