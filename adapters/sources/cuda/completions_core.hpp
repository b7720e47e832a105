// What do a Completions and its poller share? It lives until both have let go.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>

#include "engine/system/fork.hpp"

#include "adapters/launch/channel_of.hpp"
#include "adapters/sources/cuda/completions.hpp"
#include "adapters/sources/cuda/completions_bell.hpp"
#include "adapters/sources/cuda/completions_driver.hpp"
#include "adapters/sources/cuda/completions_lane.hpp"

namespace ringmain::cuda {

/// A node of graphs. Never freed: nobody knows how many copies of a graph there are, and the driver
/// calls it as long as one is launched.
struct NodeTickets {
  std::atomic<std::uint64_t> called{0};
  std::uint64_t told = 0;  // the poller's
  std::uint64_t tag = 0;
  std::int32_t thread = 0;
  std::uint32_t lane = 0;
  std::shared_ptr<Bell> bell;
  NodeTickets* next = nullptr;      // of the same core
  NodeTickets* next_all = nullptr;  // of the process
};
static_assert(sizeof(NodeTickets) == 64);  // as Completions::add_host_node() says

/// The streams' words. Memory of our own that the driver pins, and not the driver's: it stays when
/// the context goes, and the poller may read it at any time.
class Words {
 public:
  /// Null: no memory.
  static std::unique_ptr<Words> make(std::uint32_t many);
  ~Words();
  [[nodiscard]] Word* word(std::uint32_t i) const noexcept { return first_ + i; }
  [[nodiscard]] void* begin() const noexcept { return first_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  /// Something may still write here: it stays.
  void keep() noexcept { kept_ = true; }

  std::uint64_t device = 0;  // its address there, 0: not pinned

 private:
  Words(Word* first, std::size_t bytes) noexcept : first_(first), bytes_(bytes) {}
  Word* const first_;
  const std::size_t bytes_;
  bool kept_ = false;
};

struct CompletionsCore : engine::Born, std::enable_shared_from_this<CompletionsCore> {
  CompletionsCore(const Driver& found, const CompletionsOptions& asked);

  /// Everything but the poller. Throws std::bad_alloc.
  static Result<std::shared_ptr<CompletionsCore>> make(Bus& bus, const CompletionsOptions& options);
  /// Starts it, and waits until it could begin.
  [[nodiscard]] std::optional<Error> start();

  Armed arm(void* stream, std::uint64_t tag, void* graph_exec) noexcept;
  Result<GraphNode> add_host_node(void* graph, std::span<void* const> dependencies,
                                  std::uint64_t tag);
  Detached end(nanoseconds limit) noexcept;
  [[nodiscard]] CompletionFigures figures() const noexcept;

  /// From here on no lane gets a ticket.
  void seal() noexcept;
  template <class F>
  void for_each_lane(F f) const noexcept {
    const std::uint32_t used = lanes_used;
    for (std::uint32_t i = 0; i < used; ++i) f(*lanes[i]);
  }
  /// It is never freed.
  void keep() noexcept;
  /// What the driver says of the context: 0, or why nothing on it is done any more.
  [[nodiscard]] std::int32_t ask() noexcept;

  const std::uint64_t id;  // no other of the process has it
  const Driver& driver;
  const CompletionsOptions options;
  const std::uint32_t tickets;  // lane_tickets, as a power of two
  Strategy strategy = Strategy::automatic;
  void* context = nullptr;
  unsigned long long context_id = 0;
  int device = kNoDevice;
  void* own_stream = nullptr;  // nothing is ever put there: asked in place of the program's
                               // streams, which may be destroyed at any time
  std::unique_ptr<Words> words;
  std::unique_ptr<std::unique_ptr<Lane>[]> lanes;
  std::atomic<std::uint32_t> lanes_used{0};
  std::mutex taking;  // lanes; held over no call of the driver's
  bool sealed = false;
  std::atomic<NodeTickets*> nodes{nullptr};
  const std::shared_ptr<Bell> bell = std::make_shared<Bell>();
  run::ChannelHeld<Completion> channel;
  Publisher<Completion> publisher;
  run::ChannelHeld<ContextLost> losses;
  Publisher<ContextLost> loss;

  std::atomic<std::int32_t> lost{0};
  std::atomic<bool> ended{false}, ending{false};
  std::atomic<bool> doubted{false};          // the driver has refused: does the context live?
  std::atomic<std::int64_t> give_up_ns{-1};  // -1: never
  enum : std::uint32_t { kBegun = 1, kFinished = 2 };
  engine::Atomic<std::uint32_t> finished{0};  // what the poller has
  std::thread poller;

  /// Written by the poller.
  struct {
    std::atomic<std::uint64_t> completed{0}, failed{0}, abandoned{0};
    std::atomic<std::uint64_t> of_nodes{0};  // armed by being called
    std::atomic<std::uint64_t> refused{0};   // events, by the bus
    std::atomic<std::uint64_t> asked{0};
  } count;
  std::array<std::atomic<std::uint64_t>, kArmCodes> arms{};  // refusals, by whoever wanted to arm

 private:
  std::shared_ptr<CompletionsCore> kept_;
  struct Place {
    Lane* lane = nullptr;
    ArmCode code = ArmCode::armed;
    std::int32_t result = 0;
  };
  class Lent;
  Place place_of(void* stream) noexcept;
  Place new_place(void* stream, std::uint64_t stream_id);
  Lane* known_lane(void* stream, std::uint64_t stream_id) const noexcept;
  Lane* take();
  std::int32_t make_event(void*& event) noexcept;
  std::int32_t put_on_stream(Lane& lane, Slot& slot, void* stream) noexcept;
  Armed refuse(ArmCode code, std::int32_t result = 0, bool launched = false) noexcept;
};

/// The poller's thread.
void poll(CompletionsCore& core) noexcept;

}  // namespace ringmain::cuda
