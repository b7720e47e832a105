// Loading, init, finalize and unloading: alone, at once, again and again.
#include <algorithm>
#include <barrier>
#include <dlfcn.h>

#include "tests/harness/nccl/play.hpp"
#include "tests/harness/nccl/process_state.hpp"
#include "tests/harness/nccl/rules.hpp"
#include "tests/harness/nccl/scenarios.hpp"

namespace ringmain::nccl_conformance {
namespace {

constexpr int kCycles = 100;
constexpr int kFurther = 600;                // where it grows: does that ever end?
constexpr int kRounds = 4;                   // and then each time?
constexpr int kWarmUp = 20;                  // what a plugin keeps for good is there by then
constexpr std::size_t kBytesOfACycle = 512;  // on average; less may be the allocator's

void one_operation(Stage& stage, Communicator& communicator) {
  Call only;
  only.communicator = &communicator;
  only.count = 64;
  (void)call(stage.front, only, 1, [&](Plan& plan) {
    launch(stage.front, plan);
    enqueue(stage.front, plan);
  });
}

void cycle(Stage& stage) {
  Communicator communicator = stage.communicator();
  stage.open(communicator);
  one_operation(stage, communicator);
  const Driving driving(stage, rules::kFinalize);
  stage.front.finalize(communicator);
}

/// Threads that were not there before, if they are still there after a while in the scheduler.
std::size_t new_threads(const std::vector<int>& before) {
  const auto fresh = [&] {
    std::vector<int> all = threads();
    std::erase_if(all,
                  [&](int one) { return std::binary_search(before.begin(), before.end(), one); });
    return all.size();
  };
  // A joined thread leaves /proc a moment after join() returned.
  for (int i = 0; i < 1000 && fresh() != 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return fresh();
}

/// How much memory and how many files some cycles leave behind.
struct Left {
  std::size_t bytes = 0;
  std::size_t files = 0;
};
Left left_by(Stage& stage, int cycles) {
  stage.settle();
  const std::size_t files = open_files();
  const std::size_t bytes = allocated_bytes();
  for (int i = 0; i < cycles; ++i) cycle(stage);
  stage.settle();
  const std::size_t files_now = open_files();
  const std::size_t bytes_now = allocated_bytes();
  return {bytes_now > bytes ? bytes_now - bytes : 0, files_now > files ? files_now - files : 0};
}

void cycles(Stage& stage, const std::string& path) {
  const Driving driving(stage, rules::kAgain);
  const std::vector<int> before = threads();
  cycle(stage);
  if (!stage.front.loaded() && !mapped(path)) {
    const std::size_t left = new_threads(before);
    if (left != 0) {
      stage.board.found(rules::kThreads, "%zu threads are left after the library was unmapped",
                        left);
    }
  }
  (void)left_by(stage, kWarmUp);
  constexpr int kMeasured = kCycles - kWarmUp;
  Left left = left_by(stage, kMeasured);
  const auto too_much = [&] { return left.bytes > kBytesOfACycle * kMeasured || left.files != 0; };
  if (too_much()) {
    // A table that fills up to its end is no leak, nor is what a thread of the plugin's holds at
    // the moment: a leak is there each time.
    (void)left_by(stage, kFurther);
    for (int i = 0; i < kRounds && too_much(); ++i) left = left_by(stage, kMeasured);
  }
  if (left.files != 0) {
    stage.board.found(rules::kFiles, "%zu more files are open after %d further cycles", left.files,
                      kMeasured);
  }
  if (left.bytes > kBytesOfACycle * kMeasured) {
    stage.board.found(rules::kMemory, "%zu bytes more are allocated after %d further cycles",
                      left.bytes, kMeasured);
  }
}

}  // namespace

void loading_again(Stage& stage) {
  Model* const model = stage.model();
  cycles(stage, model != nullptr ? model->path() : "");
}

void loading_again_without_unmapping(Stage& stage) {
  Model* const model = stage.model();
  if (model == nullptr) return;
  // Somebody else holds the library: dlclose leaves it, with all its variables.
  void* const held = ::dlopen(model->path().c_str(), RTLD_NOW | RTLD_LOCAL);
  cycles(stage, model->path());
  if (held != nullptr) (void)::dlclose(held);
}

void communicator_names(Stage& stage) {
  Communicator unnamed = stage.communicator();
  unnamed.named = false;
  {
    const Driving driving(stage, rules::kNoName);
    stage.open(unnamed);
  }
  Communicator named = stage.communicator();
  named.name = "a name that is gone after init";
  stage.open(named);
  const Driving driving(stage, rules::kName);
  one_operation(stage, named);
  one_operation(stage, unnamed);
  stage.front.finalize(named);
  stage.front.finalize(unnamed);
}

void inits_at_once(Stage& stage) {
  constexpr int kThreads = 8;
  constexpr int kRounds = 25;
  Communicator alone = stage.communicator();
  stage.open(alone);
  const bool wanted = alone.context != nullptr;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<Communicator> group;
    for (int i = 0; i < kThreads; ++i) group.push_back(stage.communicator(i, kThreads));
    std::barrier together(kThreads);
    const bool serial = stage.options.serial;
    for (int i = 0; i < kThreads; ++i) {
      stage.actor("job " + std::to_string(i)).post([&, i] {
        const Driving driving(stage, rules::kInitConcurrent);
        if (!serial) together.arrive_and_wait();
        stage.open(group[static_cast<std::size_t>(i)]);
        one_operation(stage, group[static_cast<std::size_t>(i)]);
      });
    }
    stage.wait_for_all();
    const auto lost = std::count_if(group.begin(), group.end(),
                                    [](const Communicator& one) { return one.context == nullptr; });
    if (wanted && lost != 0) {
      stage.board.found(rules::kInitConcurrent,
                        "%d of %d communicators that began at once have no context, and one alone "
                        "has",
                        static_cast<int>(lost), kThreads);
    }
    for (int i = 0; i < kThreads; ++i) {
      stage.actor("job " + std::to_string(i)).post([&, i] {
        const Driving driving(stage, rules::kFinalize);
        if (!serial) together.arrive_and_wait();
        stage.front.finalize(group[static_cast<std::size_t>(i)]);
      });
    }
    stage.wait_for_all();
  }
  stage.front.finalize(alone);
}

}  // namespace ringmain::nccl_conformance
