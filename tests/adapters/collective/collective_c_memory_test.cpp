// Does each failed allocation in collective.h become a code, with nothing thrown or lost?
#include <atomic>
#include <thread>

#include "tests/adapters/collective/collective_c_support.hpp"
#include "tests/engine/eventually.hpp"
#include "tests/process/allocation_faults.hpp"

namespace ringmain::tests {
namespace {

/// What a script without memory found, in words that need none.
struct Script {
  const char* fault = nullptr;
  std::atomic<int> destroyed{0};
  int owned = 0;

  void expect(bool holds, const char* what) {
    if (!holds && fault == nullptr) fault = what;
  }
  /// Memory, or the thread that needs it; or a hook that could not be asked.
  bool done(std::int32_t code) {
    expect(code == RINGMAIN_OK || code == RINGMAIN_NO_MEMORY || code == RINGMAIN_SYSTEM ||
               code == RINGMAIN_VETOED,
           ringmain_code_name(code));
    expect(code == RINGMAIN_OK || *ringmain_last_error() != '\0', "no sentence");
    return code == RINGMAIN_OK;
  }
  static void destroy(void* user) { ++static_cast<Script*>(user)->destroyed; }
  static std::uint32_t ask(void*, const ringmain_pre_hook_args*) { return 0; }
  static void tell(void*, const ringmain_post_hook_args*) {}
  static void end(void*, const ringmain_completion_hook_args*) {}
  static void give_up(void*, const ringmain_abort_hook_args*) {}

  void run() {
    ringmain_bus* bus = nullptr;
    if (!done(ringmain_open(nullptr, &bus))) return;
    ringmain_communicator_options options = c_world();
    options.abort = [](void*, std::uint32_t) {};
    options.user = this;
    options.destroy = destroy;
    ringmain_communicator *world = nullptr, *other = nullptr;
    ++owned;
    if (done(ringmain_communicator_make(bus, &options, &world))) {
      const std::int32_t found = ringmain_communicator_find(bus, "world", RINGMAIN_NO_RANK, &other);
      if (found != RINGMAIN_NOT_FOUND) done(found);  // its name had no place in memory
      use(bus, world);
    }
    ringmain_communicator_free(other);
    ringmain_communicator_free(world);
    expect(ringmain_close(bus, -1) == RINGMAIN_OK, "close");
  }
  void use(ringmain_bus* bus, ringmain_communicator* world) {
    ringmain_hook *pre = nullptr, *post = nullptr, *completion = nullptr, *abort = nullptr;
    owned += 4;
    done(ringmain_pre_hook(world, ask, this, destroy, nullptr, &pre));
    done(ringmain_post_hook(world, tell, this, destroy, nullptr, &post));
    done(ringmain_completion_hook(world, end, this, destroy, nullptr, &completion));
    done(ringmain_abort_hook(world, give_up, this, destroy, nullptr, &abort));
    ringmain_communicator* part = nullptr;
    ringmain_communicator_options options = c_world();
    options.name = "part";
    done(ringmain_communicator_part(world, &options, &part));
    issue(world);
    ringmain_communicator_free(part);
    std::uint64_t here = 1;
    if (done(ringmain_operation_here(bus, &here))) expect(here == 0, "the thread stays marked");
    ringmain_hook_free(pre);
    ringmain_hook_free(post);
    ringmain_hook_free(completion);
    ringmain_aborted result{};
    result.bytes = sizeof result;
    const std::int32_t aborted = ringmain_abort(world, "over", nullptr, -1, &result);
    if (aborted == RINGMAIN_OK) expect(result.how == RINGMAIN_ABORT_DONE, "how");
    done(aborted);
    ringmain_hook_free(abort);
  }
  void issue(ringmain_communicator* world) {
    const std::int64_t four = 4;
    ringmain_tensor tensors[6];
    for (ringmain_tensor& one : tensors) one = c_floats(four);
    ringmain_arguments arguments = RINGMAIN_ARGUMENTS;
    arguments.op = RINGMAIN_OP_ALL_GATHER;
    arguments.input = arguments.output = tensors;
    arguments.inputs = 1;
    arguments.outputs = 6;
    ringmain_operation* operation = nullptr;
    if (!done(ringmain_issue(world, &arguments, &operation))) return;
    expect(ringmain_operation_returned(operation, nullptr) == RINGMAIN_OK, "returned");
    (void)ringmain_operation_completed(operation);
    ringmain_operation_free(operation);
    arguments.tensor_bytes = 1;  // an error's sentence needs memory as well
    expect(ringmain_issue(world, &arguments, &operation) != RINGMAIN_OK, "a wrong size");
  }
};

/// In a thread of its own, whose lanes and sentences end with it. True: an allocation failed.
bool run(long first, long width, Script& script) {
  bool reached = false;
  std::thread([&] {
    fail_allocations(first, width);
    script.run();
    reached = heal_allocations();
  }).join();
  return reached;
}

void fail_in_turn(long step, long width) {
  Script whole;  // what the process makes once and keeps is there when blocks are counted
  EXPECT_FALSE(run(1L << 50, 0, whole));
  ASSERT_EQ(whole.fault, nullptr) << whole.fault;
  EXPECT_TRUE(eventually([&] { return whole.destroyed == whole.owned; }));
  long k = 1;
  for (bool reached = true; reached && !::testing::Test::HasFailure(); k += step) {
    Script script;
    reached = run(k, width, script);
    EXPECT_EQ(script.fault, nullptr) << "allocation " << k << ": " << script.fault;
    // The thread of an abort hook may hold the communicator a little longer.
    EXPECT_TRUE(eventually([&] { return script.destroyed == script.owned; }))
        << "allocation " << k << ": of " << script.owned << " users " << script.destroyed
        << " were destroyed";
  }
  EXPECT_GT(k, 100) << "the script allocates next to nothing: the test sees too little";
}

TEST(CCollectiveMemoryTest, EachAllocationMayFail) {
  fail_in_turn(1, 1);
}

TEST(CCollectiveMemoryTest, FromEachAllocationOnAllMayFail) {
  fail_in_turn(3, 1L << 40);
}

}  // namespace
}  // namespace ringmain::tests
