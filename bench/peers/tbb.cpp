// Peers: oneTBB's blocking queue with a worker thread, and a flow graph's function node.
#include <oneapi/tbb/concurrent_queue.h>
#include <oneapi/tbb/flow_graph.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/task_scheduler_observer.h>
#include <optional>

#include "bench/peers/async_peer.hpp"

namespace ringmain::bench {
namespace {

struct TbbQueue {
  template <class E, class Hear>
  class System {
   public:
    explicit System(Hear& hear) : call_(callback_of<E>(hear)), worker_([this] { run(); }) {
      queue_.set_capacity(65536);
    }
    System(const System&) = delete;
    System& operator=(const System&) = delete;
    ~System() {
      queue_.push(make_event<E>(kEnd, 0));
      worker_.join();
    }
    template <class Make>
    bool push(Make&& make) {
      queue_.push(make());
      return true;
    }
    auto producer() { return shared_producer(*this); }

   private:
    void run() {
      pin_worker();
      for (E event;;) {
        queue_.pop(event);
        if (event.number == kEnd) return;
        call_(event);
      }
    }
    std::function<void(const E&)> call_;
    tbb::concurrent_bounded_queue<E> queue_;
    std::thread worker_;
  };
};

/// The scheduler's threads run where workers do.
struct PinWorkers : tbb::task_scheduler_observer {
  explicit PinWorkers(tbb::task_arena& arena) : task_scheduler_observer(arena) { observe(true); }
  ~PinWorkers() override { observe(false); }
  void on_scheduler_entry(bool is_worker) override {
    if (is_worker) pin_worker();
  }
};

struct TbbFlow {
  template <class E, class Hear>
  class System {
   public:
    explicit System(Hear& hear) {
      // Made inside the arena, whose one worker then runs its node.
      arena_.execute([&] {
        graph_.emplace();
        node_.emplace(*graph_, tbb::flow::serial, [call = callback_of<E>(hear)](const E& event) {
          call(event);
          return tbb::flow::continue_msg();
        });
      });
    }
    System(const System&) = delete;
    System& operator=(const System&) = delete;
    ~System() {
      arena_.execute([this] {
        graph_->wait_for_all();
        node_.reset();
        graph_.reset();
      });
    }
    template <class Make>
    bool push(Make&& make) {
      return node_->try_put(make());
    }
    auto producer() { return shared_producer(*this); }

   private:
    // One thread besides the publisher's, also where that one is pinned to a core: TBB counts the
    // cores of the thread that asks first.
    tbb::global_control threads_{tbb::global_control::max_allowed_parallelism, 2};
    tbb::task_arena arena_{2, 1};
    PinWorkers pinned_{arena_};
    std::optional<tbb::flow::graph> graph_;
    std::optional<tbb::flow::function_node<E>> node_;
  };
};

[[maybe_unused]] const bool kAdded[] = {add_async_peer<TbbQueue>("tbb_queue"),
                                        add_async_peer<TbbFlow>("tbb_flow_graph")};

}  // namespace
}  // namespace ringmain::bench
