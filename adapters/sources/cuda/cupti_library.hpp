// Where is CUPTI, and may it be called? It is looked for when it is first wanted, never linked.
//
// Without a driver nothing of CUPTI is called: some of its versions die in their first call there.
// So libcuda comes first. Then the libcupti that the process has already, since two copies of it
// collide; then the one that was asked for; then by soname; then beside the loaded libcudart, where
// toolkits and Python packages have it. What was opened is never closed: CUPTI calls back.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "bus/result.hpp"

#include "adapters/sources/cuda/cupti_abi.hpp"

namespace ringmain::cuda {

constexpr const char* kOwnName = "ringmain";  // CUPTI says "CUPTI for ringmain"

/// Why there is no driver here that can be called, in one sentence, or "". Loads it, and starts
/// nothing.
[[nodiscard]] std::string why_no_driver();

/// CUPTI's functions, found. Threads: any may read it; it never changes.
struct Cupti {
  abi::UnsubscribeFn* unsubscribe = nullptr;
  abi::EnableCallbackFn* enable_callback = nullptr;
  abi::GetCallbackStateFn* callback_state = nullptr;
  abi::GetCallbackNameFn* callback_name = nullptr;
  abi::GetDeviceIdFn* device_id = nullptr;
  abi::GetResultStringFn* result_string = nullptr;
  std::uint32_t version = 0;  // CUPTI_API_VERSION of the library: 130001, or 28 for CUDA 12.9
  std::string path;
  std::string warning;  // one sentence: why it is not the library that was asked for; mostly empty

  /// Finds CUPTI, `wanted` if that is a path and no other is loaded. The first that is found stays
  /// for the life of the process; after a failure it is looked for again. The Error is one sentence
  /// with the remedy. Threads: any. Blocks: it loads libraries. Not in a callback of CUPTI's.
  static Result<const Cupti*> open(std::string_view wanted);

  /// Takes a subscriber's place. Where it is taken, the Error is `conflict` and `owner`, if given,
  /// becomes the name of who has it, as far as CUPTI tells. `code`, if given, becomes CUPTI's
  /// answer. Nothing is enabled yet. Threads: any.
  Result<abi::Subscriber> subscribe(abi::Callback callback, void* user_data, std::string* owner,
                                    abi::Result* code) const;

  /// "CUPTI_ERROR_INVALID_PARAMETER (1)".
  [[nodiscard]] std::string text_of(abi::Result result) const;

  // The forms of subscribing, of which older libraries have the first only.
  abi::SubscribeFn* subscribe_v1 = nullptr;
  abi::SubscribeV2Fn* subscribe_v2 = nullptr;
};

}  // namespace ringmain::cuda
