// How does a thread arm a point of a stream? On a lane of its own, with no lock over a call of the
// driver's.
#include <algorithm>
#include <new>
#include <utility>
#include <vector>

#include "engine/system/clock.hpp"

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

/// A thread's lanes, given back when it ends.
struct OfThread {
  std::vector<Known> known;
  ~OfThread();
};
thread_local OfThread of_thread;
// An object of the thread's own that is destroyed later may arm in its destructor.
constinit thread_local bool thread_over = false;

OfThread::~OfThread() {
  thread_over = true;
  for (const Known& each : known) {
    if (const auto core = each.owner.lock()) each.lane->owner = Lane::Owner::left;
  }
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
std::atomic<std::uint32_t> nodes_made{0};

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

  std::vector<Known>& known = of_thread.known;
  known.erase(std::remove_if(known.begin(), known.end(),
                             [](const Known& each) { return each.owner.expired(); }),
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

CompletionsCore::Place CompletionsCore::place_of(void* stream) noexcept {
  int capturing = 0;
  unsigned long long stream_id = 0;
  if (const auto r = own(driver.is_capturing, stream, &capturing); r != kDone)
    return {.code = ArmCode::driver, .result = r};
  if (capturing != 0) return {.code = ArmCode::capturing};
  if (const auto r = own(driver.stream_id, stream, &stream_id); r != kDone)
    return {.code = ArmCode::driver, .result = r};
  if (reinterpret_cast<std::uintptr_t>(stream) <= kLastDefaultStream) {
    void* current = nullptr;  // whose default stream it is
    if (const auto r = own(driver.context_current, &current); r != kDone)
      return {.code = ArmCode::driver, .result = r};
    if (current != context) return {.code = ArmCode::other_context};
  }
  for (const Known& each : of_thread.known) {
    if (each.stream_id == stream_id && each.core == id && each.lane->stream == stream)
      return {.lane = each.lane};
  }
  try {
    return new_place(stream, stream_id);
  } catch (const std::bad_alloc&) {
    return {.code = ArmCode::no_memory};
  }
}

std::int32_t CompletionsCore::put_on_stream(Lane& lane, Slot& slot, void* stream) noexcept {
  switch (strategy) {
    case Strategy::event_queries: {
      if (slot.event == nullptr) {
        const auto made = own(driver.event_create, &slot.event, kWithoutTiming);
        if (made != kDone) {
          slot.event = nullptr;
          return made;
        }
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
  ++arms[static_cast<std::size_t>(code)];
  return {.code = code, .result = result, .launched = launched};
}

Armed CompletionsCore::arm(void* stream, std::uint64_t tag, void* graph_exec) noexcept {
  if (forked() || thread_over || switchboard.presence.inside()) return refuse(ArmCode::forbidden);
  if (lost != 0) return refuse(ArmCode::lost);
  if (ended) return refuse(ArmCode::ended);
  const Place place = place_of(stream);
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
  const std::uint32_t mine = nodes_made++;
  if (mine >= kNodesMax) {
    --nodes_made;
    return no(
        "this process has its 65536 host nodes already: add one to a graph and launch "
        "that graph again");
  }
  auto made = std::make_unique<NodeTickets>();
  made->tag = tag;
  made->thread = static_cast<std::int32_t>(run::this_tid());
  made->lane = CompletionsOptions::kLanesMax + 1 + mine;
  made->bell = bell;
  const HostNodeParams what{&called_by_node, made.get()};
  void* node = nullptr;
  const std::int32_t result =
      own(driver.add_host_node, &node, graph, dependencies.data(), dependencies.size(), &what);
  if (result != kDone) {
    return no("cuGraphAddHostNode answers " + std::to_string(result) +
              ": see cudaGetErrorString()");
  }
  NodeTickets* const kept = made.release();
  push(all_nodes, kept->next_all, kept);
  push(nodes, kept->next, kept);
  bell->ring();
  return GraphNode{node, kept->lane};
}

}  // namespace ringmain::cuda
