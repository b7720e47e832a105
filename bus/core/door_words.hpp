// What does a door answer? docs/door.md has the words.
#pragma once
#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "../../engine/door/reply.hpp"

#include "../options.hpp"

namespace ringmain::detail {

/// Of one door. Threads: one, the door's own; what it starts for a dump may outlive it.
class DoorWords {
 public:
  /// A dump that takes longer than `dump_limit` is told to be under way.
  explicit DoorWords(nanoseconds dump_limit = std::chrono::seconds(8));
  /// Throws std::bad_alloc.
  void answer(std::string_view word, engine::door::Reply& reply);

 private:
  struct Dumping;
  void dump(engine::door::Reply& reply);
  const std::string process_;  // "Process 4711 (python3), rank 3 of 8"
  const nanoseconds dump_limit_;
  std::shared_ptr<Dumping> dumping_;
};

}  // namespace ringmain::detail
