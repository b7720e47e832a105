// How does a proxy thread tell of its work? In the order of NCCL's: operations are appended in a
// round, all make progress in turn, each returns after the first phase that moved, and all of one
// set of arguments end together.
#include <algorithm>
#include <unistd.h>

#include "tests/harness/nccl/play.hpp"
#include "tests/harness/nccl/plugin_view.hpp"

namespace ringmain::nccl_conformance {

ProxyArguments& Proxy::take() {
  if (free_.empty()) free_.push_back(pool_.emplace_back(std::make_unique<ProxyArguments>()).get());
  ProxyArguments* const taken = free_.back();
  free_.pop_back();
  taken->used = 0;  // and no more: handles of the last use stay
  return *taken;
}

void Proxy::append(const Plan& plan, const Network& network) {
  constexpr int kProxied = abi::kProxyOp | abi::kProxyStep | abi::kNetPlugin;
  for (const Task& task : plan.tasks) {
    if ((task.mask & kProxied) == 0) continue;
    for (int channel = 0; channel < task.channels; ++channel) {
      Sub like;
      like.channel = channel;
      like.rank = plan.communicator->rank;
      like.peer = (like.rank + 1) % std::max(plan.communicator->ranks, 1);
      like.pid = ::getpid();
      like.mask = task.mask;
      like.context = plan.communicator->context;
      like.task = task.event;
      if (task.call.function != Function::send) append_one(like, false, network);
      if (task.call.function != Function::recv) append_one(like, true, network);
    }
  }
}

void Proxy::append_one(const Sub& like, bool send, const Network& network) {
  // What fits goes into one set of arguments, as operations of one connection do.
  if (active_.empty() || active_.back().begun || active_.back().arguments->send != send ||
      active_.back().arguments->used == 4) {
    ProxyArguments& fresh = take();
    fresh.send = send;
    fresh.over_net = network.is_net;
    fresh.slice_steps = network.slice_steps;
    fresh.chunk_bytes = 1 << 19;
    active_.push_back({&fresh, network, {}, false});
  }
  ProxyArguments& arguments = *active_.back().arguments;
  Sub& sub = arguments.subs[arguments.used++];
  sub.channel = like.channel;
  sub.peer = like.peer;
  sub.rank = like.rank;
  sub.pid = like.pid;
  sub.mask = like.mask;
  sub.context = like.context;
  sub.task = like.task;
  sub.steps = network.steps * network.slice_steps;
}

void Proxy::begin_new(void* context) {
  int appended = 0;
  void* const control = front_.control_begins(context);
  front_.control_is(control, 0, abi::kCtrlAppend);
  for (Active& active : active_) {
    if (active.begun) continue;
    for (std::size_t sub = 0; sub < active.arguments->used; ++sub) {
      front_.proxy_op_begins(*active.arguments, sub);
      ++begun_ops_;
      ++appended;
    }
    active.begun = true;
  }
  front_.control_is(control, appended, abi::kCtrlAppendEnd);
  front_.control_ends(control);
}

void Proxy::progress(void* context) {
  void* const sleeping = front_.control_begins(context);
  front_.control_is(sleeping, 0, abi::kCtrlSleep);
  front_.control_is(sleeping, 0, abi::kCtrlWakeup);
  front_.control_ends(sleeping);
  begin_new(context);
  while (pass()) {
  }
  void* const idle = front_.control_begins(context);
  front_.control_is(idle, 0, abi::kCtrlIdle);
  front_.control_ends(idle);
}

void Proxy::progress_and_stop(void* context, int passes) {
  begin_new(context);
  for (int i = 0; i < passes && pass(); ++i) {
  }
  active_.clear();  // as an aborted proxy leaves its operations
}

bool Proxy::pass() {
  for (Active& active : active_) {
    if (pass(active)) continue;
    end(active);
    free_.push_back(active.arguments);
    active.arguments = nullptr;
  }
  std::erase_if(active_, [](const Active& active) { return active.arguments == nullptr; });
  return !active_.empty();
}

bool Proxy::pass(Active& active) {
  const std::size_t subs = active.arguments->used;
  for (std::size_t sub = 0; sub < subs; ++sub) {
    if (active.flows[sub].seen) continue;
    active.flows[sub].seen = true;
    front_.proxy_op_progresses(*active.arguments, sub);
  }
  bool all_done = true;
  for (std::size_t sub = 0; sub < subs; ++sub) {
    // Now and then a phase has nothing to do, and the next comes first.
    const bool moved = (random_() % 4 != 0 && post(active, sub)) ||
                       (random_() % 4 != 0 && move(active, sub)) || acknowledge(active, sub);
    (void)moved;
    all_done = all_done && active.flows[sub].done == active.network.steps;
  }
  return !all_done;
}

bool Proxy::post(Active& active, std::size_t place) {
  Flow& flow = active.flows[place];
  if (flow.posted == active.network.steps ||
      flow.posted - flow.done == static_cast<int>(kStepsInFlight)) {
    return false;
  }
  const int step = flow.posted * active.network.slice_steps;
  ProxyArguments& arguments = *active.arguments;
  front_.step_begins(arguments, place, step);
  ++begun_steps_;
  if (arguments.send) {
    front_.step_is(arguments, place, step, abi::kSendGpuWait);
  } else {
    if (active.network.restarts && random_() % 3 == 0) {
      front_.step_begins(arguments, place, step);
      ++begun_steps_;
    }
    front_.step_is(arguments, place, step, abi::kRecvWait);
  }
  ++flow.posted;
  return true;
}

bool Proxy::move(Active& active, std::size_t place) {
  Flow& flow = active.flows[place];
  if (flow.moved == flow.posted) return false;
  const int step = flow.moved * active.network.slice_steps;
  ProxyArguments& arguments = *active.arguments;
  arguments.subs[place].moved_bytes = static_cast<std::uint64_t>(arguments.chunk_bytes);
  if (arguments.send) {
    const auto waits = 1 + random_() % static_cast<unsigned>(active.network.peer_waits_max);
    for (unsigned i = 0; i < waits; ++i) {
      front_.step_is(arguments, place, step, abi::kSendPeerWait);
    }
    front_.step_is(arguments, place, step, abi::kSendWait);
  } else {
    front_.step_is(arguments, place, step, abi::kRecvFlushWait);
    front_.step_is(arguments, place, step, abi::kRecvGpuWait);
  }
  ++flow.moved;
  return true;
}

bool Proxy::acknowledge(Active& active, std::size_t place) {
  Flow& flow = active.flows[place];
  if (flow.done == flow.moved) return false;
  front_.step_ends(*active.arguments, place, flow.done * active.network.slice_steps);
  ++flow.done;
  return true;
}

void Proxy::end(Active& active) {
  for (std::size_t sub = 0; sub < active.arguments->used; ++sub) {
    front_.proxy_op_ends(*active.arguments, sub);
  }
}

}  // namespace ringmain::nccl_conformance
