// Who writes a dump when a signal asks for one? A thread of ringmain's, which the handler wakes.
//
// The handler counts the signal, posts a semaphore and calls what the program had for that signal;
// it takes no lock, allocates nothing and keeps errno. When the last who wanted the signal has
// ended, what the program had is there again, unless the program has set something else meanwhile,
// which stays. Signals that come while functions are called amount to one more call.
#pragma once
#include <cstdint>
#include <functional>

#include "engine/system/fork.hpp"

namespace ringmain::collective::detail {

/// While it lives, its function is called soon after each signal of that number. In a forked child
/// it is over, and the child has the handlers that the program had. Threads: any.
class OnSignal {
 public:
  /// A signal that would not end the program any more by being handled is refused, and one after
  /// which it cannot go on. `call` must not throw. Throws std::invalid_argument, std::bad_alloc,
  /// std::system_error.
  OnSignal(int number, std::function<void()> call);
  OnSignal(const OnSignal&) = delete;
  OnSignal& operator=(const OnSignal&) = delete;
  /// Waits for a call that is running. Not inside of one.
  ~OnSignal();

 private:
  const engine::Born born_;
  std::uint64_t id_ = 0;
};

}  // namespace ringmain::collective::detail
