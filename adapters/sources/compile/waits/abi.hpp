// What does PyTorch ask of a library that wants to see its wait counters? One function, looked up
// once per process, that is offered each counter's name.
//
// Source: c10/util/WaitCounterDynamicBackend.h of PyTorch 2.13, said anew. Its rules: the function
// is called once for each name, under a lock of c10's, so no wait counter may be touched in it; a
// `self` of nullptr means that the counter is not wanted, else all four are called; begin and end
// come on any thread, overlap freely, and must not throw; `destroy` may never come. The name has no
// NUL after it.
#pragma once
#include <cstddef>
#include <cstdint>

namespace ringmain::compile::abi {

struct WaitBackend {
  void* self;
  std::intptr_t (*start)(void* self, std::int64_t now_us);
  void (*stop)(void* self, std::int64_t now_us, std::intptr_t context);
  void (*destroy)(void* self);
};

static_assert(offsetof(WaitBackend, self) == 0 && offsetof(WaitBackend, start) == sizeof(void*) &&
              offsetof(WaitBackend, stop) == 2 * sizeof(void*) &&
              offsetof(WaitBackend, destroy) == 3 * sizeof(void*) &&
              sizeof(WaitBackend) == 4 * sizeof(void*));

constexpr const char* kInitialise = "c10_monitor_wait_counter_dynamic_backend_init_v1";
using Initialise = void (*)(WaitBackend* out, const char* key, std::size_t key_bytes);

}  // namespace ringmain::compile::abi

/// libringmain_wait_counter.so: what PyTorch looks up, and what an attaching program calls.
extern "C" {
void c10_monitor_wait_counter_dynamic_backend_init_v1(ringmain::compile::abi::WaitBackend* out,
                                                      const char* key, std::size_t key_bytes);
/// Publishes counters on `bus` (a ringmain::Bus*; nullptr: the process's), from the next one on
/// that PyTorch offers. 0: the rest of ringmain is not there, or another bus has them already.
int ringmain_wait_counter_attach(void* bus);
/// How many names PyTorch has offered so far. If it stays 0 while counters run, the library was
/// loaded too late.
std::uint64_t ringmain_wait_counter_keys();
}

/// libringmain_waits.so, which the first one loads.
extern "C" {
void ringmain_waits_offer(ringmain::compile::abi::WaitBackend* out, const char* key,
                          std::size_t key_bytes);
int ringmain_waits_attach(void* bus);
}
