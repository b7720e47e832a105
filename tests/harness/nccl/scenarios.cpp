// H1 to H7: what NCCL's documentation and source show of whole operations.
#include "tests/harness/nccl/scenarios.hpp"

#include <algorithm>

#include "tests/harness/nccl/play.hpp"
#include "tests/harness/nccl/rules.hpp"

namespace ringmain::nccl_conformance {
namespace {

/// A rank of a job: its communicator, its GPU and the threads that work for it.
struct Rank {
  Communicator communicator;
  Actor* application = nullptr;
  Actor* progress = nullptr;
  Actor* profiler = nullptr;  // that looks at the GPU's counters
  std::unique_ptr<Proxy> proxy;
  Device device;
  std::unique_ptr<KernelWatch> kernels;
};

void people(Stage& stage, Rank& rank, const std::string& number) {
  rank.application = &stage.actor("app " + number);
  rank.progress = &stage.actor("progress " + number);
  rank.profiler =
      kernels_by_proxy(stage.options.release) ? rank.progress : &stage.actor("profiler " + number);
  rank.proxy = std::make_unique<Proxy>(stage.front, stage.random());
  rank.kernels = std::make_unique<KernelWatch>(stage.front, rank.device, stage.options.release);
}

/// Hands a plan's proxy operations, or its kernels' works, to the threads that follow them.
void post_proxies(Rank& rank, const Plan& plan, const Network& network) {
  rank.progress->post([&rank, plan, network] {
    rank.proxy->append(plan, network);
    rank.proxy->progress(rank.communicator.context);
  });
}
void post_kernels(Rank& rank, const Plan& plan) {
  rank.profiler->post([&rank, plan] {
    rank.kernels->append(plan);
    rank.kernels->run();
  });
}

Call all_reduce(Communicator& communicator, std::uint64_t count, std::uint64_t tag = 0) {
  Call made;
  made.communicator = &communicator;
  made.count = count;
  made.datatype = Datatype::bfloat16;
  made.stream = 0x5700;
  made.tag = tag;
  return made;
}

void eager(Stage& stage, Rank& rank, const Call& what, int channels, const Network* network) {
  (void)call(stage.front, what, channels, [&](Plan& plan) {
    launch(stage.front, plan);
    enqueue(stage.front, plan, [&] {
      if (network != nullptr) post_proxies(rank, plan, *network);
      post_kernels(rank, plan);
    });
  });
}

void end(Stage& stage, Rank& rank) {
  stage.wait_for_all();
  rank.application->post([&] { stage.front.finalize(rank.communicator); });
  stage.wait_for_all();
}

}  // namespace

void all_reduce_on_two_nodes(Stage& stage) {
  constexpr int kRanks = 8;
  std::vector<Rank> ranks(kRanks);
  for (int i = 0; i < kRanks; ++i) {
    Rank& rank = ranks[static_cast<std::size_t>(i)];
    rank.communicator = stage.communicator(i, kRanks, 2);
    rank.communicator.id = 0xA11'0000;  // the same on all ranks
    people(stage, rank, std::to_string(i));
    rank.application->post([&stage, &rank] { stage.open(rank.communicator); });
  }
  stage.wait_for_all();
  for (const int channels : {1, 2, 8, 24, 64}) {
    for (Rank& rank : ranks) {
      rank.application->post([&stage, &rank, channels] {
        const Network network{.steps = channels > 8 ? 1 : 4, .restarts = channels == 2};
        eager(stage, rank, all_reduce(rank.communicator, 1 << 20), channels, &network);
      });
    }
  }
  stage.wait_for_all();
  for (Rank& rank : ranks) {
    rank.application->post([&stage, &rank] { stage.front.finalize(rank.communicator); });
  }
  stage.wait_for_all();
}

void kernels_on_one_node(Stage& stage) {
  Rank rank;
  rank.communicator = stage.communicator(0, 2, 1);
  people(stage, rank, "0");
  rank.application->post([&] { stage.open(rank.communicator); });
  rank.application->wait();
  for (int i = 0; i < 20; ++i) {
    rank.application->post(
        [&] { eager(stage, rank, all_reduce(rank.communicator, 4096), 4, nullptr); });
  }
  stage.wait_for_all();
  const auto kept_back = [&](int works, const std::function<void(Plan&)>& then) {
    rank.application->post([&] {
      for (int i = 0; i < works; ++i) {
        (void)call(stage.front, all_reduce(rank.communicator, 4096), 2, [&](Plan& plan) {
          launch(stage.front, plan);
          enqueue(stage.front, plan, [&] {
            rank.profiler->post([&rank, plan] { rank.kernels->append(plan); });
            then(plan);
          });
        });
      }
    });
    stage.wait_for_all();
  };
  // The GPU is done between the host's two looks: until 2.30 an end without a begin (Q3).
  kept_back(1, [](Plan&) {});
  rank.profiler->post([&] {
    const Driving driving(stage, rules::kStopDead);
    (void)rank.kernels->look([&] {
      for (int channel = 0; channel < 2; ++channel) {
        const std::uint64_t work = rank.device.last(channel);
        rank.device.begin(channel, work);
        rank.device.end(channel, work);
      }
    });
    rank.kernels->run();
  });
  stage.wait_for_all();
  end(stage, rank);
}

void lapped_kernels(Stage& stage) {
  Rank rank;
  rank.communicator = stage.communicator(0, 2, 1);
  people(stage, rank, "0");
  rank.application->post([&] { stage.open(rank.communicator); });
  rank.application->wait();
  rank.application->post([&] {
    for (std::size_t i = 0; i < Device::kSlots + 8; ++i) {
      (void)call(stage.front, all_reduce(rank.communicator, 64), 1, [&](Plan& plan) {
        enqueue(stage.front, plan,
                [&] { rank.profiler->post([&rank, plan] { rank.kernels->append(plan); }); });
      });
    }
  });
  stage.wait_for_all();
  // All of them end before the first look, so that the first slots have a later lap's stamps (Q15).
  rank.profiler->post([&] {
    for (std::uint64_t work = 1; work <= Device::kSlots + 8; ++work) {
      rank.device.begin(0, work);
      rank.device.end(0, work);
    }
    while (rank.kernels->look() != 0) {
    }
  });
  end(stage, rank);
}

void transfers_in_a_group(Stage& stage) {
  Rank rank;
  rank.communicator = stage.communicator(1, 4, 2);
  people(stage, rank, "0");
  rank.application->post([&] { stage.open(rank.communicator); });
  rank.application->wait();
  const Network network{.steps = 2};
  for (const int peers : {1, 8}) {  // a pair; an AlltoAll, which is pairs
    rank.application->post([&stage, &rank, network, peers] {
      std::vector<Call> calls;
      for (int peer = 0; peer < peers; ++peer) {
        for (const Function function : {Function::send, Function::recv}) {
          Call half = all_reduce(rank.communicator, 256, 77);
          half.function = function;
          half.peer = peer;
          calls.push_back(half);
        }
      }
      (void)call(stage.front, calls, 1, [&](Plan& whole) {
        const std::size_t cut = whole.tasks.size() > 2 ? whole.tasks.size() / 2 : 2;
        for (std::size_t from = 0; from < whole.tasks.size(); from += cut) {
          Plan plan = whole;
          plan.tasks.assign(whole.tasks.begin() + static_cast<std::ptrdiff_t>(from),
                            whole.tasks.begin() + static_cast<std::ptrdiff_t>(from + cut));
          launch(stage.front, plan);
          enqueue(stage.front, plan, [&] {
            post_proxies(rank, plan, network);
            post_kernels(rank, plan);
          });
        }
      });
    });
  }
  end(stage, rank);
}

void two_communicators_in_a_group(Stage& stage) {
  std::vector<Rank> ranks(2);
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    ranks[i].communicator = stage.communicator(static_cast<int>(i), 2, 2);
    people(stage, ranks[i], std::to_string(i));
  }
  ranks[1].application = ranks[0].application;  // one thread drives both
  ranks[0].application->post([&] {
    for (Rank& rank : ranks) stage.open(rank.communicator);
    std::vector<Call> calls;
    for (int i = 0; i < 3; ++i) {
      for (Rank& rank : ranks) calls.push_back(all_reduce(rank.communicator, 512));
    }
    (void)call(stage.front, calls, 2, [&](Plan& whole) {
      for (Rank& rank : ranks) {
        Plan plan = whole;
        plan.communicator = &rank.communicator;
        std::erase_if(plan.tasks, [&](const Task& task) {
          return task.call.communicator != &rank.communicator;
        });
        launch(stage.front, plan);
        enqueue(stage.front, plan, [&] { post_proxies(rank, plan, {}); });
      }
    });
  });
  stage.wait_for_all();
  for (Rank& rank : ranks) end(stage, rank);
}

namespace {

/// Replays a captured plan on CUDA's thread.
void replay(Stage& stage, Rank& rank, const std::shared_ptr<Plan>& captured) {
  stage.actor("cuda_cb").post([&stage, &rank, captured] {
    const Driving driving(stage, rules::kDeadParent);
    enqueue(stage.front, *captured, [&] {
      post_proxies(rank, *captured, {.steps = 1});
      post_kernels(rank, *captured);
    });
  });
}

}  // namespace

void replayed_graph(Stage& stage) {
  Rank rank;
  rank.communicator = stage.communicator(0, 2, 2);
  people(stage, rank, "0");
  std::shared_ptr<Plan> captured;
  rank.application->post([&] {
    stage.open(rank.communicator);
    Call graph = all_reduce(rank.communicator, 1024);
    graph.captured = true;
    captured = std::make_shared<Plan>(
        call(stage.front, graph, 1, [&](Plan& plan) { launch(stage.front, plan); }));  // "recorded"
  });
  rank.application->wait();
  constexpr int kReplays = 1000;
  for (int i = 0; i < kReplays; ++i) {
    replay(stage, rank, captured);
    if (i % 100 != 0) continue;
    // While graphs are in flight an eager call's bracket is on CUDA's thread, too.
    rank.application->post([&] {
      (void)call(stage.front, all_reduce(rank.communicator, 2048), 1, [&](Plan& plan) {
        stage.actor("cuda_cb").post(
            [&stage, eager = std::make_shared<Plan>(plan)] { enqueue(stage.front, *eager); });
        launch(stage.front, plan);
      });
    });
  }
  end(stage, rank);
}

void non_blocking_communicator(Stage& stage) {
  Rank rank;
  rank.communicator = stage.communicator(0, 2, 2);
  people(stage, rank, "0");
  rank.application->post([&] { stage.open(rank.communicator); });
  rank.application->wait();
  for (int i = 0; i < 10; ++i) {
    rank.application->post([&] {
      // The call returns, and with it the group's event stops; the rest comes from a job's thread.
      const Plan plan = call(stage.front, all_reduce(rank.communicator, 2048), 2, [](Plan&) {});
      stage.actor("job 0").post([&stage, &rank, late = std::make_shared<Plan>(plan)] {
        const Driving driving(stage, rules::kDeadParent);
        launch(stage.front, *late);
        enqueue(stage.front, *late, [&] { post_proxies(rank, *late, {}); });
      });
    });
  }
  end(stage, rank);
}

void shared_proxy(Stage& stage) {
  Rank parent;
  Rank child;
  parent.communicator = stage.communicator(0, 2, 2);
  child.communicator = stage.communicator(0, 2, 2);
  people(stage, parent, "0");
  people(stage, child, "0");  // the same threads
  void* finalized = nullptr;
  parent.application->post([&] {
    stage.open(parent.communicator);
    stage.open(child.communicator);
    const Network network;
    eager(stage, parent, all_reduce(parent.communicator, 512), 2, &network);
  });
  stage.wait_for_all();
  finalized = parent.communicator.context;
  parent.application->post([&] { stage.front.finalize(parent.communicator); });
  stage.wait_for_all();
  for (int i = 0; i < 5; ++i) {
    child.application->post([&] {
      (void)call(stage.front, all_reduce(child.communicator, 512), 2, [&](Plan& plan) {
        launch(stage.front, plan);
        enqueue(stage.front, plan, [&] {
          child.progress->post([&stage, &child, finalized, plan] {
            const Driving driving(stage, rules::kTombstone);
            child.proxy->append(plan, {});
            child.proxy->progress(finalized);  // the shared proxy keeps the first context
          });
        });
      });
    });
  }
  end(stage, child);
}

}  // namespace ringmain::nccl_conformance
