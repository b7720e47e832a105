// What does NCCL know when it calls a profiler plugin? Its communicators, tasks, plans and proxy
// arguments, as far as the front end of the plugins reads and writes them.
//
// The members that hold handles are kept as NCCL keeps them: where it never clears one, nothing
// here does (facts in docs/nccl-conformance.md).
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace ringmain::nccl_conformance {

/// NCCL's mask is an int, and its bits are numbers without a sign.
[[nodiscard]] constexpr bool any_of(int mask, std::uint64_t bits) noexcept {
  return (static_cast<std::uint32_t>(mask) & bits) != 0;
}

enum class Function : std::uint8_t { all_gather, all_reduce, reduce_scatter, send, recv };
constexpr std::size_t kFunctions = 5;
enum class Datatype : std::uint8_t { int8, float16, float32, bfloat16 };

/// Memory of NCCL's own structure, where the real front end plays; nobody else looks.
using Native = std::shared_ptr<std::byte[]>;

struct Communicator {
  std::uint64_t id = 0;
  std::string name;
  bool named = true;
  int rank = 0;
  int ranks = 1;
  int nodes = 1;
  void* context = nullptr;  // what the plugin's init wrote
  std::array<std::uint64_t, kFunctions> sequence{};
  Native native;
};

/// A call of the API: a collective operation or half of a transfer.
struct Call {
  Function function = Function::all_reduce;
  std::uint64_t count = 1;
  Datatype datatype = Datatype::float32;
  int peer = 0;  // or root
  Communicator* communicator = nullptr;
  std::uint64_t stream = 0;
  std::uint64_t tag = 0;
  bool captured = false;

  [[nodiscard]] bool point_to_point() const noexcept { return function >= Function::send; }
};

/// What an appended call leaves in a plan; a captured one is replayed from it.
struct Task {
  Call call;
  std::uint64_t count = 0;  // of datatype: bytes of int8, where NCCL counts bytes
  Datatype datatype = Datatype::int8;
  int mask = 0;  // as it was when the call was appended
  void* group_api = nullptr;
  void* api = nullptr;
  void* event = nullptr;
  std::uint8_t channels = 0;
};

/// One kernel: some tasks of one communicator.
struct Plan {
  Communicator* communicator = nullptr;
  bool persistent = false;
  std::vector<Task> tasks;  // collective operations before transfers
  std::uint64_t stream = 0;
  void* group = nullptr;
  void* launch = nullptr;
};

// What all calls have in common; nobody follows the addresses.
constexpr std::uintptr_t kSendBuffer = 0x7000'1000'0000;
constexpr std::uintptr_t kRecvBuffer = 0x7000'2000'0000;
constexpr int kWarps = 16;

constexpr std::size_t kStepsInFlight = 8;

/// An operation of one channel and direction, on the thread that moves its bytes. Pooled: a sub is
/// used again without being cleared.
struct Sub {
  int channel = 0;
  int peer = 0;
  int rank = 0;
  int steps = 1;
  std::int32_t pid = 0;
  int mask = 0;
  void* context = nullptr;
  void* task = nullptr;
  void* op = nullptr;
  void* kernel = nullptr;
  std::array<void*, kStepsInFlight> step{};
  std::uint64_t moved_bytes = 0;
  std::uint64_t work = 0;  // which of the channel's works, for the device's counters
};

struct ProxyArguments {
  static constexpr std::size_t kSubs = 16;
  std::array<Sub, kSubs> subs;
  std::size_t used = 0;
  int slice_steps = 1;
  int chunk_bytes = 0;
  bool send = false;
  bool over_net = true;  // a send over another transport, as CollNet's, is said to receive
};

/// A collective operation by the copy engines.
struct CopyEngineCall {
  Call call;
  void* api = nullptr;
  void* event = nullptr;
};

}  // namespace ringmain::nccl_conformance
