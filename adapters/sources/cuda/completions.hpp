// Did the GPU get there? A program arms a point of a stream, and hears once that the GPU has
// reached it, or why it never will.
//
//   auto made = cuda::Completions::make(bus);             // of the thread's current context
//   auto heard = bus.channel<cuda::Completion>().subscribe([](const cuda::Completion& c) { … });
//   …launch work on stream…
//   const cuda::Armed armed = made.value().arm(stream, 7);  // like one small kernel more
//   if (!armed) …                                           // nothing was armed, for armed.code
//   made.value().end(std::chrono::seconds(1));              // the rest is abandoned then
//
// Behind the work the stream writes a number to memory of the host's, which one thread of ours
// reads: nothing of the driver's is called while all goes well, and the stream waits for nobody.
// Where a device cannot do that, CUDA events are recorded and asked for. Needs the driver, of CUDA
// 12.0 or later, at run time only; handles are those of the driver and of the runtime alike.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "../../../bus/bus.hpp"

#include "../../../events/cuda_completion.hpp"

namespace ringmain::cuda {

enum class Strategy : std::uint8_t {
  automatic,      // memory writes, or event queries where the device lacks them
  memory_writes,  // make() is refused where the device lacks them
  event_queries,
  host_functions  // the driver calls one of ours, and the stream waits for that
};
/// Progress: wait-free.
[[nodiscard]] std::string_view to_string(Strategy strategy) noexcept;

struct CompletionsOptions {
  static constexpr std::uint32_t kLanesMax = 65535;
  static constexpr std::uint32_t kTicketsMin = 2;
  static constexpr std::uint32_t kTicketsMax = 1 << 20;

  Strategy strategy = Strategy::automatic;
  /// A lane is a stream as one thread arms it: 1 to kLanesMax, 64 bytes of pinned memory each.
  std::uint32_t lanes_max = 1024;
  /// How many tickets of a lane may be on their way: kTicketsMin to kTicketsMax, rounded up to a
  /// power of two; 40 bytes each, taken at a lane's first ticket.
  std::uint32_t lane_tickets = 256;
  /// Events on their way to their subscribers; then the poller waits, and lanes fill up.
  std::uint32_t capacity_events = 65536;
  /// While something is armed: how long to look for it without a pause, and how long a pause grows
  /// to. spin_us at its largest value: it never sleeps while something is armed.
  microseconds spin_us{20};
  microseconds sleep_us_max{500};
  /// How long nothing may move before the driver is asked whether the context still lives; twice as
  /// long each time, up to 250 ms.
  microseconds watch_us{1000};
  std::vector<int> cpus{};            // where the poller runs; empty: inherited
  nanoseconds end_ns{2'000'000'000};  // what the destructor gives end()
  /// How long end() waits beyond its limit for a poller that the driver or a subscriber holds up.
  nanoseconds beyond_ns{2'000'000'000};
};

enum class ArmCode : std::uint8_t {
  armed,
  capturing,  // the stream records a graph: add_host_node(), or arm_after_launch() of that graph
  other_context,  // the stream belongs to another context than the Completions
  full,           // this lane's tickets are on their way: CompletionsOptions::lane_tickets
  no_lane,        // all lanes are taken: CompletionsOptions::lanes_max
  no_memory,
  driver,    // the driver refused (`result`), for a stream that is destroyed for instance
  lost,      // the context has met an error, or is gone (`result`)
  ended,     // after end(), or an empty Completions
  forbidden  // inside a callback of CUPTI's or of a wrapped call; or in a forked child
};
constexpr std::size_t kArmCodes = static_cast<std::size_t>(ArmCode::forbidden) + 1;
/// Progress: wait-free.
[[nodiscard]] std::string_view to_string(ArmCode code) noexcept;

/// True where it was armed: then its ticket ends exactly once.
struct [[nodiscard]] Armed {
  std::uint64_t ticket = 0;  // above 0; later ones of a lane are larger
  ArmCode code = ArmCode::armed;
  std::int32_t result = 0;  // of the driver's
  bool launched = false;    // arm_after_launch(): the graph is on its way, whatever `code` says
  constexpr explicit operator bool() const noexcept { return code == ArmCode::armed; }
};

/// armed = completed + failed + abandoned + pending, at any time. While threads arm, each is right
/// for some moment.
struct CompletionFigures {
  std::uint64_t armed = 0;
  std::uint64_t completed = 0;
  std::uint64_t failed = 0;
  std::uint64_t abandoned = 0;
  std::uint64_t pending = 0;
  std::uint64_t refused = 0;                    // events that the bus did not take: closed, vetoed
  std::array<std::uint64_t, kArmCodes> arms{};  // answers of arm(), by code but for `armed`
  std::uint64_t asked = 0;                      // questions whether the context lives
  std::uint32_t lanes = 0;                      // that were taken at least once
  Strategy strategy = Strategy::automatic;      // the one that is used
  std::int32_t result = 0;                      // what the context has met; 0: it lives
};

struct GraphNode {
  void* node = nullptr;  // CUgraphNode
  std::uint32_t lane = 0;
};

struct CompletionsCore;

/// Tickets of one context. Move-only; an empty one arms nothing.
///
/// Threads: any, at once, but for moving it and end(). In a forked child it is inert. The bus must
/// outlive it. It has one thread, `ringmain:gpu`, which sleeps without an end while nothing is
/// armed.
class [[nodiscard]] Completions {
 public:
  Completions() noexcept = default;
  Completions(Completions&& other) noexcept = default;
  Completions& operator=(Completions&& other) noexcept;
  /// end(), with CompletionsOptions::end_ns.
  ~Completions();

  /// For streams of the calling thread's current context, of which there must be one (cudaFree(0)
  /// makes it). Not while a stream captures in this thread.
  ///
  /// Errors: `not_found`, no driver, or one older than CUDA 12.0's; `refused`, no current context,
  /// a number in `options` is outside of its limits, the device lacks memory writes and they were
  /// asked for, the driver refused (the sentence has its number), or inside a callback; `conflict`,
  /// the channel has another event; `system`, no thread. Throws std::bad_alloc.
  [[nodiscard]] static Result<Completions> make(Bus& bus, const CompletionsOptions& options = {});

  /// What is on `stream` when it is called must be done before the ticket completes. Stream 0 is
  /// the legacy default stream, of which that waits for all blocking streams too; 2 is the
  /// thread's own.
  ///
  /// Takes no lock once the thread has a lane of that stream, and none at all over a call of the
  /// driver's; then makes three of these (which stream, does it capture, write) and reads the
  /// clock. Threads: any, also several on one stream: then each has a lane, and there is no order
  /// across. Progress: blocking, as the driver is.
  Armed arm(void* stream, std::uint64_t tag) noexcept;

  /// Launches an executable graph, and arms behind it. What can be refused is refused before the
  /// launch; Armed::launched says whether it was. Otherwise as arm().
  Armed arm_after_launch(void* graph_exec, void* stream, std::uint64_t tag) noexcept;

  /// Adds a node to a graph: each launch of it is one ticket, armed and completed when the driver
  /// calls the node. The node is the process's for ever, 64 bytes, as graphs may be copied; it
  /// says nothing once this has ended. Errors: `refused`, as make(), or there are 65,536 of them.
  [[nodiscard]] Result<GraphNode> add_host_node(void* graph, std::span<void* const> dependencies,
                                                std::uint64_t tag);

  /// No ticket is given from now on; those that are on their way are waited for until `limit`, then
  /// abandoned. `done`: each ticket has had its event, and nothing of this calls the driver any
  /// more. `timeout`: the driver, or a subscriber, holds the poller up for longer than `limit` and
  /// CompletionsOptions::beyond_ns more; the poller goes on by itself. A negative limit: for ever.
  /// `deferred`: inside a callback, where it does not wait. was_not_attached: an earlier one ended
  /// it, it is empty, or in a forked child.
  Detached end(nanoseconds limit) noexcept;

  /// Also after end(), when they are final. Progress: wait-free.
  [[nodiscard]] CompletionFigures figures() const noexcept;

 private:
  explicit Completions(std::shared_ptr<CompletionsCore> core) noexcept;
  std::shared_ptr<CompletionsCore> core_;
};

}  // namespace ringmain::cuda
