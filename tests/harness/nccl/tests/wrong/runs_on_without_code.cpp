// Wrong: its thread is not joined by the last finalize, and its own code is taken away under it.
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include "tests/harness/nccl/tests/wrong/plugin.hpp"

namespace {
using namespace ringmain::nccl_conformance::wrong;

struct Wrong : Plugin {
  std::atomic<bool> begun{false};
  std::atomic<bool> runs{false};

  static void* run(void* of) {
    static_cast<Wrong*>(of)->runs = true;
    for (;;) (void)::usleep(100);
  }
  abi::Result init(void** context, int* mask, const char* name, int version) override {
    if (!begun.exchange(true)) {
      pthread_t thread;
      (void)::pthread_create(&thread, nullptr, &run, this);
      (void)::pthread_detach(thread);
      while (!runs) (void)::sched_yield();
    }
    return Plugin::init(context, mask, name, version);
  }
};
}  // namespace

RINGMAIN_NCCL_TEST_PLUGIN(Wrong)
