// How does CUPTI call a subscriber, and what does it take? The part of its ABI that is used here,
// without NVIDIA's headers; tests/adapters/cuda compares it with the real ones.
//
// A subscriber is one function. It is called in the thread that made a CUDA call, inside that call:
// once when the call is entered and once when it is about to return. What it is given is valid
// until it returns.
#pragma once
#include <cstddef>
#include <cstdint>

namespace ringmain::cuda::abi {

using Result = std::int32_t;  // CUptiResult
enum : Result {
  kSuccess = 0,
  kInvalidParameter = 1,
  kNotInitialized = 15,
  kInsufficientPrivileges = 35,
  kMultipleSubscribers = 39,  // another tool has the only place
  kUnknown = 999
};

using Domain = std::int32_t;  // CUpti_CallbackDomain
enum : Domain { kDriver = 1, kRuntime = 2, kResource = 3, kState = 6 };

enum Resource : std::uint32_t { kContextCreated = 1, kContextDestroyStarting = 2 };
enum State : std::uint32_t { kFatalError = 1, kError = 2, kWarning = 3 };
enum Site : std::int32_t { kEnter = 0, kExit = 1 };

/// For the domains of calls. CUpti_CallbackData.
struct CallData {
  std::int32_t site;
  const char* function;  // a global constant: "cudaEventRecord"
  const void* params;    // the call's arguments as a struct; may be null
  const void* result;    // at the exit: cudaError_t or CUresult
  const char* symbol;
  void* context;
  std::uint32_t context_uid;
  std::uint64_t*
      correlation_data;  // of this call: what is stored at its entry is there at its exit
  std::uint32_t correlation_id;
};
static_assert(sizeof(CallData) == 72 && offsetof(CallData, correlation_data) == 56);

/// For the domain of resources. CUpti_ResourceData.
struct ResourceData {
  void* context;
  void* stream;
  void* descriptor;
};

/// For the domain of states. CUpti_StateData.
struct StateData {
  Result result;
  const char* message;
};

using Subscriber = void*;
using Callback = void (*)(void* user_data, Domain domain, std::uint32_t cbid, const void* data);

constexpr std::size_t kNameBytesMax = 53;
constexpr std::size_t kOldNameBytesMin = 64;
/// CUpti_SubscriberParams up to CUPTI 13.1.
struct SubscriberParams {
  std::size_t struct_bytes;
  const char* name;
  char* old_name;  // of the tool that has the place
  std::size_t old_name_bytes;
};
static_assert(sizeof(SubscriberParams) == 32);
/// The same from CUPTI 13.2 on; CUPTI 13.3 is the first that allows several subscribers.
struct SubscriberParamsSeveral : SubscriberParams {
  std::uint8_t several = 0;
  std::uint8_t padding[7] = {};
};
static_assert(sizeof(SubscriberParamsSeveral) == 40);
constexpr std::uint32_t kSeveralSince = 130300;

using SubscribeFn = Result(Subscriber*, Callback, void* user_data);
using SubscribeV2Fn = Result(Subscriber*, Callback, void* user_data, SubscriberParams*);
using UnsubscribeFn = Result(Subscriber);
using EnableCallbackFn = Result(std::uint32_t enable, Subscriber, Domain, std::uint32_t cbid);
using GetCallbackStateFn = Result(std::uint32_t* enable, Subscriber, Domain, std::uint32_t cbid);
using GetCallbackNameFn = Result(Domain, std::uint32_t cbid, const char** name);
using GetVersionFn = Result(std::uint32_t* version);
using GetResultStringFn = Result(Result, const char** text);
using GetDeviceIdFn = Result(void* context, std::uint32_t* device);

}  // namespace ringmain::cuda::abi
