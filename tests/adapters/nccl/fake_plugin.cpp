// A profiler plugin of FAKE_VERSION that writes down how it is called, and does as it is told.
#include "tests/adapters/nccl/fake_plugin.hpp"

#include <chrono>
#include <stdexcept>
#include <thread>

#include "adapters/sources/nccl/nccl_profiler_abi.hpp"

namespace {

namespace abi = ringmain::nccl::abi;
using ringmain::nccl::FakeCall;
using ringmain::nccl::FakePlugin;

FakePlugin& fake() {
  static auto* const made = new FakePlugin;
  return *made;
}

#define FAKE_PASTE(a, b) a##b
#define FAKE_NAMED(prefix, version) FAKE_PASTE(prefix, version)
using Descriptor = FAKE_NAMED(abi::DescriptorV, FAKE_VERSION);
using Table = FAKE_NAMED(abi::TableV, FAKE_VERSION);

void note(const FakeCall& call) {
  fake().calls.push_back(call);
  if (fake().throws_in != call.what) return;
  if (fake().throws_what_is_no_exception) throw 7;
  throw std::runtime_error("its disk is full");
}

abi::Result take(void** context, int* mask) {
  note({.what = FakeCall::init});
  if (fake().refuses) return abi::kInternalError;
  fake().mask = mask;
  *mask = fake().wanted;
  *context = reinterpret_cast<void*>(0xc000 + ++fake().contexts);
  return abi::kSuccess;
}
#if FAKE_VERSION == 4
abi::Result init(void** context, int* mask, const char*, std::uint64_t, int, int, int,
                 abi::Logger) {
  return take(context, mask);
}
#else
abi::Result init(void** context, std::uint64_t, int* mask, const char*, int, int, int,
                 abi::Logger) {
  return take(context, mask);
}
#endif

abi::Result start(void* context, void** handle, Descriptor* what) {
  FakeCall call{
      .what = FakeCall::start, .type = what->type, .context = context, .parent = what->parent};
  if (fake().slow) std::this_thread::sleep_for(std::chrono::milliseconds(3));
  if (fake().gives_no_handle) {
    *handle = nullptr;
    note(call);
    return abi::kSuccess;
  }
  *handle = call.handle = reinterpret_cast<void*>(0x1000 + fake().handles++);
  note(call);
  if (fake().on_start) fake().on_start(call);
  return fake().fails ? abi::kInternalError : abi::kSuccess;
}
[[maybe_unused]] abi::Result stop(void* handle) {
  note({.what = FakeCall::stop, .handle = handle});
  return abi::kSuccess;
}
abi::Result record(void* handle, abi::State state, abi::StateArgs* args) {
  note({.what = FakeCall::record,
        .type = static_cast<std::uint64_t>(state),
        .handle = handle,
        .has_args = args != nullptr});
  return abi::kSuccess;
}
[[maybe_unused]] abi::Result finalize(void* context) {
  note({.what = FakeCall::finalize, .context = context});
  return abi::kSuccess;
}

}  // namespace

extern "C" {
[[gnu::visibility("default")]] extern Table FAKE_NAMED(ncclProfiler_v, FAKE_VERSION);
#ifdef FAKE_HALF  // nobody may call it: of its table a function is missing
Table FAKE_NAMED(ncclProfiler_v, FAKE_VERSION){"fake", &init, &start, &stop, &record, nullptr};
#else
Table FAKE_NAMED(ncclProfiler_v, FAKE_VERSION){"fake", &init, &start, &stop, &record, &finalize};
#endif
[[gnu::visibility("default")]] FakePlugin* fake_plugin() {
  return &fake();
}
}
