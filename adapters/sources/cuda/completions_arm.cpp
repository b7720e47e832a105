// How does a thread arm a point of a stream? On a lane of its own, with no lock over a call of the
// driver's.
#include <algorithm>
#include <new>
#include <utility>
#include <vector>

#include "engine/system/clock.hpp"
#include "engine/system/thread_exit.hpp"

#include "adapters/launch/tid.hpp"
#include "adapters/sources/cuda/completions_core.hpp"
#include "adapters/sources/cuda/cuda_callback.hpp"

namespace ringmain::cuda {
namespace {

constexpr std::uint64_t kLastDefaultStream = 2;  // 0, 1 and 2 are no addresses
constexpr unsigned kWithoutTiming = 2;
constexpr std::size_t kOwnLanes = 16;  // so many of one thread's before it looks for an idle one
constexpr std::uint32_t kNodesMax = 65536;

/// A lane that this thread has.
struct Known {
  std::uint64_t core;
  std::uint64_t stream_id;  // never another stream's, as handles are
  Lane* lane;
  std::weak_ptr<CompletionsCore> owner;
};

/// A thread's lanes.
using OfThread = std::vector<Known>;
constinit thread_local OfThread* of_thread = nullptr;
// What is called later at the thread's end may arm.
constinit thread_local bool thread_over = false;

/// Gives them back.
void end_thread(void* its) {
  thread_over = true;
  of_thread = nullptr;
  const std::unique_ptr<OfThread> known(static_cast<OfThread*>(its));
  for (const Known& each : *known) {
    if (const auto core = each.owner.lock()) each.lane->owner = Lane::Owner::left;
  }
}
constinit engine::ThreadExit at_thread_exit{&end_thread};

/// Throws std::bad_alloc, also where the system has no key left.
OfThread& lanes_of_thread() {
  if (of_thread != nullptr) return *of_thread;
  auto made = std::make_unique<OfThread>();
  if (!at_thread_exit.ask(made.get())) throw std::bad_alloc();
  return *(of_thread = made.release());
}

/// Where the driver calls for Strategy::host_functions.
void reached_by_host(void* slot) {
  const Slot& own = *static_cast<const Slot*>(slot);
  own.word->reached = own.value;
}
/// Where it calls for a node. Waits for nothing: a thread that calls CUDA may wait for it.
void called_by_node(void* node) {
  auto& own = *static_cast<NodeTickets*>(node);
  ++own.called;
  own.bell->ring();
}

std::atomic<NodeTickets*> all_nodes{nullptr};  // so that they can be found for ever
std::atomic<std::uint32_t> nodes_made{0};      // or about to be
std::atomic<std::uint32_t> nodes_given{0};     // each has a number of its own

/// One of the process's nodes, given back unless it is made.
struct NodePlace {
  NodePlace() noexcept : taken(++nodes_made <= kNodesMax) {
    if (!taken) --nodes_made;
  }
  NodePlace(const NodePlace&) = delete;
  NodePlace& operator=(const NodePlace&) = delete;
  ~NodePlace() {
    if (taken) --nodes_made;
  }
  bool taken;
};

void push(std::atomic<NodeTickets*>& list, NodeTickets*& next, NodeTickets* node) noexcept {
  next = list;
  while (!list.compare_exchange_weak(next, node)) {
  }
}

}  // namespace

Lane* CompletionsCore::take() {
  const auto own_word = [this](std::uint32_t i) {
    return words == nullptr ? nullptr : words->word(i);
  };
  const std::lock_guard lock(taking);
  if (sealed) return nullptr;
  for (std::uint32_t i = 0; i < lanes_used; ++i) {
    Lane& lane = *lanes[i];
    if (lane.owner == Lane::Owner::left && lane.reusable()) {
      lane.owner = Lane::Owner::thread;
      return &lane;
    }
  }
  const std::uint32_t fresh = lanes_used;
  if (fresh == options.lanes_max) return nullptr;
  const std::uint64_t at_device =
      words == nullptr || words->device == 0 ? 0 : words->device + fresh * sizeof(Word);
  lanes[fresh] = std::make_unique<Lane>(fresh, tickets, own_word(fresh), at_device);
  lanes[fresh]->owner = Lane::Owner::thread;
  lanes_used = fresh + 1;
  return lanes[fresh].get();
}

/// A stream that this thread has not armed on, or not for long.
CompletionsCore::Place CompletionsCore::new_place(void* stream, std::uint64_t stream_id) {
  void* of = nullptr;
  const std::int32_t asked_of = own(driver.stream_context, stream, &of);
  if (asked_of != kDone) return {.code = ArmCode::driver, .result = asked_of};
  if (of != context) return {.code = ArmCode::other_context};

  OfThread& known = lanes_of_thread();
  known.erase(std::remove_if(known.begin(), known.end(),
                             [](const Known& each) {
                               const auto owner = each.owner.lock();
                               return owner == nullptr || owner->ended;  // some are never freed
                             }),
              known.end());
  known.reserve(known.size() + 1);
  const auto idle = [&]() -> Known* {
    for (Known& each : known)
      if (each.core == id && each.lane->reusable()) return &each;
    return nullptr;
  };
  Known* place = known.size() < kOwnLanes ? nullptr : idle();
  if (place == nullptr) {
    if (Lane* const lane = take()) {
      place = &known.emplace_back(Known{id, stream_id, lane, weak_from_this()});
    } else if ((place = idle()) == nullptr) {
      return {.code = ArmCode::no_lane};
    }
  }
  place->stream_id = stream_id;
  place->lane->stream = stream;
  place->lane->thread = static_cast<std::int32_t>(run::this_tid());
  return {.lane = place->lane};
}

/// The one that this thread has for it, or nullptr.
Lane* CompletionsCore::known_lane(void* stream, std::uint64_t stream_id) const noexcept {
  if (of_thread == nullptr) return nullptr;
  for (const Known& each : *of_thread) {
    if (each.stream_id != stream_id || each.core != id || each.lane->stream != stream) continue;
    // A host function reads its ticket's place, so not even that is used twice.
    if (strategy != Strategy::host_functions || !each.lane->burnt) return each.lane;
  }
  return nullptr;
}

CompletionsCore::Place CompletionsCore::place_of(void* stream) noexcept {
  int capturing = 0;
  unsigned long long stream_id = 0;
  const auto asked = own(driver.is_capturing, stream, &capturing);
  if (asked != kDone && asked != kCaptureImplicit)
    return {.code = ArmCode::driver, .result = asked};
  if (capturing != 0 || asked == kCaptureImplicit) return {.code = ArmCode::capturing};
  if (const auto r = own(driver.stream_id, stream, &stream_id); r != kDone)
    return {.code = ArmCode::driver, .result = r};
  if (reinterpret_cast<std::uintptr_t>(stream) <= kLastDefaultStream) {
    void* current = nullptr;  // whose default stream it is
    if (const auto r = own(driver.context_current, &current); r != kDone)
      return {.code = ArmCode::driver, .result = r};
    if (current != context) return {.code = ArmCode::other_context};
  }
  if (Lane* const its = known_lane(stream, stream_id)) return {.lane = its};
  try {
    return new_place(stream, stream_id);
  } catch (const std::bad_alloc&) {
    return {.code = ArmCode::no_memory};
  }
}

/// An event is of the context that is current when it is made, and has to be of the stream's.
std::int32_t CompletionsCore::make_event(void*& event) noexcept {
  void* current = nullptr;
  if (const auto r = own(driver.context_current, &current); r != kDone) return r;
  if (current != context) {
    if (const auto r = own(driver.set_context, context); r != kDone) return r;
  }
  void* made = nullptr;
  const std::int32_t result = own(driver.event_create, &made, kWithoutTiming);
  if (result == kDone) event = made;
  if (current == context) return result;
  const std::int32_t back = own(driver.set_context, current);
  return result == kDone ? back : result;
}

std::int32_t CompletionsCore::put_on_stream(Lane& lane, Slot& slot, void* stream) noexcept {
  switch (strategy) {
    case Strategy::event_queries: {
      if (slot.event == nullptr) {
        if (const auto made = make_event(slot.event); made != kDone) return made;
      }
      return own(driver.event_record, slot.event, stream);
    }
    case Strategy::host_functions:
      slot.word = lane.word;
      return own(driver.launch_host, stream, &reached_by_host, static_cast<void*>(&slot));
    default:
      return own(driver.write_value, stream, static_cast<unsigned long long>(lane.device),
                 slot.value, 0U);
  }
}

Armed CompletionsCore::refuse(ArmCode code, std::int32_t result, bool launched) noexcept {
  if (code == ArmCode::ended && lost != 0) code = ArmCode::lost;
  if (code == ArmCode::lost) result = lost;
  if (code == ArmCode::driver && is_fatal(result)) {
    doubted = true;  // where nothing is on its way nobody else would ask
    bell->ring_loudly();
  }
  ++arms[static_cast<std::size_t>(code)];
  return {.code = code, .result = result, .launched = launched};
}

/// Lends the context to a thread that has none, such as one that runs callbacks.
class CompletionsCore::Lent {
 public:
  Lent(const CompletionsCore& core, bool wanted) noexcept
      : core_(core), is_(wanted && own(core.driver.set_context, core.context) == kDone) {}
  ~Lent() {
    if (is_) (void)own(core_.driver.set_context, static_cast<void*>(nullptr));
  }
  Lent(const Lent&) = delete;
  Lent& operator=(const Lent&) = delete;
  explicit operator bool() const noexcept { return is_; }

 private:
  const CompletionsCore& core_;
  const bool is_;
};

Armed CompletionsCore::arm(void* stream, std::uint64_t tag, void* graph_exec) noexcept {
  if (forked() || thread_over || switchboard.presence.inside()) return refuse(ArmCode::forbidden);
  if (lost != 0) return refuse(ArmCode::lost);
  if (ended) return refuse(ArmCode::ended);
  Place place = place_of(stream);
  const bool is_default = reinterpret_cast<std::uintptr_t>(stream) <= kLastDefaultStream;
  const Lent lent(*this,
                  !is_default && place.code == ArmCode::driver && place.result == kNoContext);
  if (lent) place = place_of(stream);
  if (place.code == ArmCode::no_lane && (ended || lost != 0)) return refuse(ArmCode::ended);
  if (place.lane == nullptr) return refuse(place.code, place.result);
  Lane& lane = *place.lane;
  if (!lane.room()) return refuse(ArmCode::full);
  if (!lane.begin()) return refuse(ArmCode::ended);
  bool launched = false;
  if (graph_exec != nullptr) {
    // The program's own, so that it is told as any launch.
    const std::int32_t result = driver.graph_launch(graph_exec, stream);
    launched = result == kDone;
    if (!launched) {
      lane.leave();
      return refuse(ArmCode::driver, result);
    }
  }
  Slot& slot = lane.next(tag, engine::now_ns());
  const std::uint64_t ticket = lane.ticket(slot.value);
  if (const std::int32_t result = put_on_stream(lane, slot, stream); result != kDone) {
    lane.give_up();
    return refuse(ArmCode::driver, result, launched);
  }
  if (!lane.commit()) return refuse(ArmCode::ended, 0, launched);
  bell->ring();
  return {.ticket = ticket, .launched = launched};
}

Result<GraphNode> CompletionsCore::add_host_node(void* graph, std::span<void* const> dependencies,
                                                 std::uint64_t tag) {
  const auto no = [](std::string message) {
    return Error{Error::Code::refused, std::move(message)};
  };
  if (forked() || switchboard.presence.inside())
    return no("no node is added inside a callback of CUPTI's, or in a forked child");
  if (ended || lost != 0)
    return no("no node is added once these completions have ended, or their context has");
  NodePlace place;
  if (!place.taken) {
    return no(
        "this process has its 65536 host nodes already: add one to a graph and launch "
        "that graph again");
  }
  auto made = std::make_unique<NodeTickets>();
  made->tag = tag;
  made->thread = static_cast<std::int32_t>(run::this_tid());
  made->bell = bell;
  const HostNodeParams what{&called_by_node, made.get()};
  void* node = nullptr;
  const std::int32_t result =
      own(driver.add_host_node, &node, graph, dependencies.data(), dependencies.size(), &what);
  if (result != kDone) {
    return no("cuGraphAddHostNode answers " + std::to_string(result) +
              ": see cudaGetErrorString()");
  }
  place.taken = false;  // it is the node's for ever
  made->lane = CompletionsOptions::kLanesMax + 1 + nodes_given++;
  NodeTickets* const kept = made.release();
  push(all_nodes, kept->next_all, kept);
  push(nodes, kept->next, kept);
  bell->ring();
  return GraphNode{node, kept->lane};
}

}  // namespace ringmain::cuda
