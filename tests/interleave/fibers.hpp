// What makes a fiber a thread? A stack, registers, the program's thread-locals, and the C++
// runtime's list of exceptions in flight; all of them change hands at a switch.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <ucontext.h>
#include <utility>
#include <vector>

namespace ringmain::interleave {

/// The thread-locals of this program (not of the libraries it uses), and what the C++ runtime
/// keeps.
class ThreadImage {
 public:
  /// As a thread finds them that has just started.
  void reset();
  void save();
  void load() const;

 private:
  std::vector<std::byte> locals_;
  std::array<std::uint64_t, 2> exceptions_{};
};

/// A store that nobody but its fiber has seen.
struct Waiting {
  void* at;
  std::uint64_t value;
  std::uint8_t bytes;
  bool release;
};

struct Fiber {
  enum class State : std::uint8_t { ready, asleep, done };

  ucontext_t context{};
  ThreadImage image;
  std::byte* stack = nullptr;
  void* (*routine)(void*) = nullptr;
  void* argument = nullptr;
  State state = State::done;
  const void* on = nullptr;  // asleep
  std::int64_t until_ns = -1;
  bool timed_out = false;
  const char* doing = "";  // the last step
  const char* function = "";
  int line = 0;
  std::int64_t priority = 0;
  std::vector<Waiting> buffer;  // oldest first
  std::vector<std::pair<void (*)(void*), void*>> at_exit;
  const std::function<void()>* handler = nullptr;  // of its signals
  unsigned handlers = 0;                           // that run just now, one in another

  void prepare(void (*entry)());
};

}  // namespace ringmain::interleave
