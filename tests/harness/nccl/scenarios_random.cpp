// Random streams: several ranks' threads do anything that NCCL may do, in any order that it may
// have, and what it does wrong; all by one seed.
#include <algorithm>
#include <unistd.h>

#include "tests/harness/nccl/play.hpp"
#include "tests/harness/nccl/rules.hpp"
#include "tests/harness/nccl/scenarios.hpp"

namespace ringmain::nccl_conformance {
namespace {

constexpr int kCallers = 3;
constexpr int kTurns = 60;

/// One thread of the application, and those that work for its communicators.
struct Caller {
  Caller(Stage& stage, int number)
      : random(stage.random()),
        name(std::to_string(number)),
        proxy(stage.front, stage.random()),
        kernels(stage.front, device, stage.options.release) {}

  Random random;
  const std::string name;
  std::vector<std::unique_ptr<Communicator>> live;
  std::vector<std::unique_ptr<Communicator>> gone;  // events may still name them
  std::vector<std::shared_ptr<Plan>> graphs;
  Proxy proxy;
  Device device;
  KernelWatch kernels;

  [[nodiscard]] std::uint64_t below(std::uint64_t bound) { return random() % bound; }
  [[nodiscard]] Communicator& any() { return *live[below(live.size())]; }
  Call call_of(Communicator& communicator) {
    Call made;
    made.communicator = &communicator;
    made.function = static_cast<Function>(below(kFunctions));
    made.datatype = static_cast<Datatype>(below(4));
    made.count = below(100'000);
    made.peer = static_cast<int>(below(4));
    made.stream = 0x100 * (1 + below(3));
    made.tag = below(2) * below(1000);
    return made;
  }
};

void follow(Stage& stage, Caller& caller, const Plan& plan) {
  const Network network{.steps = static_cast<int>(1 + caller.below(6)),
                        .slice_steps = static_cast<int>(1 + caller.below(2)),
                        .restarts = caller.below(4) == 0};
  void* const context =
      caller.gone.empty() || caller.below(4) != 0
          ? plan.communicator->context
          : caller.gone[caller.below(caller.gone.size())]->context;  // a shared proxy's
  stage.actor("progress " + caller.name).post([&stage, &caller, plan, network, context] {
    caller.proxy.append(plan, network);
    caller.kernels.append(plan);
    caller.proxy.progress(context);
    caller.kernels.run();
    (void)stage;
  });
}

void operate(Stage& stage, Caller& caller) {
  std::vector<Call> calls;
  Communicator& communicator = caller.any();
  const std::uint64_t many = 1 + caller.below(4);
  for (std::uint64_t i = 0; i < many; ++i) calls.push_back(caller.call_of(communicator));
  std::stable_partition(calls.begin(), calls.end(),
                        [](const Call& one) { return !one.point_to_point(); });
  const int channels = static_cast<int>(1 + caller.below(4));
  const auto launched = [&](Plan& plan) {
    launch(stage.front, plan);
    enqueue(stage.front, plan, [&] { follow(stage, caller, plan); });
  };
  if (calls.size() == 1) {
    (void)call(stage.front, calls.front(), channels, launched);
  } else {
    (void)call(stage.front, calls, channels, launched);
  }
}

void fail(Stage& stage, Caller& caller) {
  // Posting fails: what began never ends.
  Communicator& communicator = caller.any();
  (void)call(stage.front, caller.call_of(communicator), 1, [&](Plan& plan) {
    stage.front.group_event_begins(plan);
    stage.front.tasks_begin(plan);
  });
}

void capture_or_replay(Stage& stage, Caller& caller) {
  if (caller.graphs.size() < 3) {
    Call graph = caller.call_of(caller.any());
    graph.captured = true;
    caller.graphs.push_back(std::make_shared<Plan>(
        call(stage.front, graph, 1, [&](Plan& plan) { launch(stage.front, plan); })));
    return;
  }
  const std::shared_ptr<Plan> graph = caller.graphs[caller.below(caller.graphs.size())];
  stage.actor("cuda_cb " + caller.name).post([&stage, graph] { enqueue(stage.front, *graph); });
}

void open_or_close(Stage& stage, Caller& caller) {
  stage.actor("progress " + caller.name).wait();
  stage.actor("cuda_cb " + caller.name).wait();
  if (caller.live.size() < 3) {
    caller.live.push_back(std::make_unique<Communicator>());
    Communicator& fresh = *caller.live.back();
    fresh.id = caller.random();
    fresh.name = "random";
    fresh.named = caller.below(4) != 0;
    fresh.rank = static_cast<int>(caller.below(4));
    fresh.ranks = 4;
    stage.open(fresh);
    return;
  }
  const std::size_t place = 1 + caller.below(caller.live.size() - 1);
  caller.graphs.clear();
  stage.front.finalize(*caller.live[place]);
  caller.gone.push_back(std::move(caller.live[place]));
  caller.live.erase(caller.live.begin() + static_cast<std::ptrdiff_t>(place));
}

void turn(Stage& stage, Caller& caller) {
  switch (caller.below(10)) {
    case 0:
      return open_or_close(stage, caller);
    case 1:
      return fail(stage, caller);
    case 2:
      return capture_or_replay(stage, caller);
    case 3: {
      if (stage.options.own_mask) return operate(stage, caller);
      stage.front.set_mask(static_cast<int>(caller.random() & 0xFFFF));
      return;
    }
    case 4: {
      if (stage.options.own_mask) return operate(stage, caller);
      stage.front.set_mask(caller.below(2) == 0 ? 0 : 0xFFFF);
      return;
    }
    default:
      return operate(stage, caller);
  }
}

}  // namespace

void random_streams(Stage& stage) {
  std::deque<Caller> callers;
  for (int i = 0; i < kCallers; ++i) {
    Caller& caller = callers.emplace_back(stage, i);
    (void)stage.actor("progress " + caller.name);
    (void)stage.actor("cuda_cb " + caller.name);
    (void)stage.actor("app " + caller.name);
  }
  for (Caller& caller : callers) {
    stage.actor("app " + caller.name).post([&stage, &caller] {
      caller.live.push_back(std::make_unique<Communicator>());
      caller.live.front()->id = caller.random();
      caller.live.front()->name = "random";
      stage.open(*caller.live.front());
    });
  }
  stage.wait_for_all();
  for (int i = 0; i < kTurns; ++i) {
    for (Caller& caller : callers) {
      stage.actor("app " + caller.name).post([&stage, &caller] { turn(stage, caller); });
    }
  }
  stage.wait_for_all();
  for (Caller& caller : callers) {
    stage.actor("app " + caller.name).post([&stage, &caller] {
      for (const auto& communicator : caller.live) stage.front.finalize(*communicator);
    });
  }
  stage.wait_for_all();
}

}  // namespace ringmain::nccl_conformance
