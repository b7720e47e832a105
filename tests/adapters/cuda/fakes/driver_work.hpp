// What lies on the fake driver's streams, and when is it done? Each stream has a queue; its head is
// done as soon as it can be, by the thread that put it there or let it go on. So everything is done
// at once, unless a test holds something (fake_cuda_hold) or gives a host function, which the one
// thread of the driver's calls.
//
// All of it is under `world().mutex`, which is let go while a host function runs.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

namespace ringmain::fake {

struct Context;

/// How far an event has come. It lives as long as somebody waits for it, also when it is destroyed.
struct Mark {
  std::uint64_t recorded = 0;  // how often
  std::uint64_t reached = 0;   // of these
  bool captured = false;       // its last record is a graph's
};

/// Something on a stream, or in a graph.
struct Op {
  enum class Kind : std::uint8_t { held, record, wait, write, host };
  Kind kind = Kind::held;
  std::uint64_t number =
      0;  // held: its own; record, wait: of the event's records; write: the value
  std::shared_ptr<Mark> mark{};
  std::uint64_t address = 0;
  void (*function)(void*) = nullptr;
  void* with = nullptr;
};

/// A stream's queue. It goes on when the stream is destroyed.
struct Work {
  const Context* context = nullptr;
  std::deque<Op> ops;
  bool in_host = false;  // a host function of this stream waits for its turn or runs
  [[nodiscard]] bool over() const { return ops.empty() && !in_host; }
};

struct Works {
  std::condition_variable moved;            // something was done
  std::vector<std::shared_ptr<Work>> busy;  // those that are not over
  struct Host {
    std::shared_ptr<Work> work;
    Op op;
  };
  std::deque<Host> hosts;
  bool host_thread = false;
  bool host_runs = false;
  std::set<std::uint64_t> held;  // what fake_cuda_hold() gave and nobody let go
  std::uint64_t last_held = 0;
  std::uint64_t stray_writes = 0;  // to memory that is not pinned at that moment
};

// All with world().mutex held.
Works& works();
/// Puts it on the queue and does what can be done.
void put(const std::shared_ptr<Work>& work, Op op);
/// Does what can be done of all queues.
void advance();
/// Nothing of a context that is gone or broken is done any more.
void drop_work_of(const Context* context);
[[nodiscard]] bool all_over(const Context* context);
/// What the device address stands for, or null: no memory of the host's that is pinned.
[[nodiscard]] void* host_view(std::uint64_t device_address, std::uint64_t bytes);
/// The device's address of pinned memory: another number than the host's, so that nobody mixes them
/// up.
constexpr std::uint64_t kDeviceView = std::uint64_t{1} << 56;

/// Is this thread in a host function?
[[nodiscard]] bool in_host_function();

}  // namespace ringmain::fake
