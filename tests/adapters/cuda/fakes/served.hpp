// How does a call go through the fake? It enters, does what it does, and leaves; CUPTI's fake looks
// on at both ends, and the log gets a line.
//
// All of this is in the fake libcuda.so.1, which the runtime's fake calls, as CUPTI's does.
#pragma once
#include <cstddef>
#include <cstdint>
#include <new>
#include <type_traits>

#include "tests/adapters/cuda/fakes/calls.hpp"
#include "tests/adapters/cuda/fakes/fake_cuda.h"

namespace ringmain::fake {

constexpr std::uint64_t kNone = ~std::uint64_t{0};

/// What a call did, by the fake's own knowledge and not by reading its parameters.
struct Deed {
  bool said = false;
  std::uint64_t handle = 0, bytes = 0, graph = 0;
  std::uint64_t stream = kNone;
  std::uint32_t flags = 0;
  std::int32_t priority = 0;
};

constexpr std::size_t kSubscribersMax = 4;
constexpr int kOutOfMemory = 2;  // of the driver's and of the runtime's calls alike

/// One call, from its entry to its return; it lies on the stack of who calls.
struct Call {
  Row row;
  const void* params;
  std::size_t params_bytes;
  Deed deed{};
  Call* outer = nullptr;
  std::uint64_t order = 0;
  std::uint64_t correlation = 0;  // the order of the outermost call that it is in
  std::uint32_t depth = 1;
  bool forbidden = false;
  bool told = true;  // to CUPTI's subscribers
  void* context = nullptr;
  std::uint32_t context_uid = 0;
  // CUPTI's: what a subscriber stored at the entry.
  std::uint64_t slots[kSubscribersMax] = {};
  std::uint64_t* slots_shown[kSubscribersMax] = {};
};

/// How CUPTI's fake looks on.
struct Onlooker {
  void (*enter)(Call&);
  void (*leave)(Call&, int result);
  void (*notice)(int domain, std::uint32_t cbid, void* context, void* stream);
  bool (*in_callback)();           // this thread
  bool (*in_callback_of_calls)();  // and for a call, not for a notice
};

extern "C" {
void fake_cuda_look_on(const Onlooker*);
bool fake_cuda_device_of(void* context, std::uint32_t* device);
void fake_cuda_enter(Call*);
int fake_cuda_instead(const Call*);  // -1: do it
void fake_cuda_leave(Call*, int result);
/// The runtime's own way to the driver: cuDevicePrimaryCtxRetain, and it is this thread's at once.
CUresult fake_cuda_take_primary(CUcontext*, CUdevice);
}

/// Serves one call. `body(Deed&)` does it and returns its result.
template <class Served, class Body>
int serve(typename Served::Params params, Body body, bool told = true) {
  constexpr bool kHasParams = !std::is_same_v<typename Served::Params, NoParams>;
  Call call{Served::row(), kHasParams ? &params : nullptr, kHasParams ? sizeof params : 0};
  call.told = told;
  fake_cuda_enter(&call);
  int result = fake_cuda_instead(&call);
  if (result < 0) {
    try {
      result = static_cast<int>(body(call.deed));
    } catch (const std::bad_alloc&) {
      result = kOutOfMemory;
    }
  }
  fake_cuda_leave(&call, result);
  return result;
}

}  // namespace ringmain::fake
