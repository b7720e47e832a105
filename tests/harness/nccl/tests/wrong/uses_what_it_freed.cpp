// Wrong: a state of an event that has stopped is counted in the event's memory, which was freed.
#include <mutex>
#include <set>

#include "tests/harness/nccl/tests/wrong/plugin.hpp"

namespace {
using namespace ringmain::nccl_conformance::wrong;

struct Event {
  std::uint64_t type = 0, begun_ns = 0, ended_ns = 0;
  std::atomic<std::uint64_t>* states;
};

struct Wrong : Plugin {
  std::atomic<std::uint64_t> states{0};
  std::mutex lock;
  std::set<void*> open;

  abi::Result start(void*, void** handle, const Begun& begun) override {
    const std::lock_guard guard(lock);
    *handle = *open.insert(new Event{.type = begun.type, .states = &states}).first;
    return abi::kSuccess;
  }
  abi::Result stop(void* handle) override {
    const std::lock_guard guard(lock);
    if (open.erase(handle) != 0) delete static_cast<Event*>(handle);
    return abi::kSuccess;
  }
  abi::Result record(void* handle, int, const abi::StateArgs*) override {
    ++*static_cast<Event*>(handle)->states;
    return abi::kSuccess;
  }
};
}  // namespace

RINGMAIN_NCCL_TEST_PLUGIN(Wrong)
