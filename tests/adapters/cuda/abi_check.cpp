// Do our own declarations of CUPTI's interface agree with its headers? They do if this compiles.
#include <cstddef>
#include <type_traits>

#include <cupti.h>

#include "events/terms/cuda_call_table.hpp"

#include "adapters/sources/cuda/cupti_abi.hpp"

namespace ringmain::cuda::abi {

constexpr bool same(auto ours, auto theirs) {
  return static_cast<long long>(ours) == static_cast<long long>(theirs);
}
template <class T>
constexpr std::size_t size_of() {
  if constexpr (std::is_void_v<T>) {
    return 0;
  } else {
    return sizeof(T);
  }
}
/// Functions that are called through pointers of ours: each argument and the result are as large as
/// theirs, and pointers where theirs are.
template <class Ours, class Theirs>
constexpr bool alike =
    size_of<Ours>() == size_of<Theirs>() && std::is_pointer_v<Ours> == std::is_pointer_v<Theirs>;
template <class Ours, class Theirs>
struct Callable : std::false_type {};
template <class R, class... A, class S, class... B>
requires(sizeof...(A) == sizeof...(B)) struct Callable<R(A...), S(B...)>
    : std::bool_constant<alike<R, S> && (alike<A, B> && ...)> {
};

static_assert(same(kSuccess, CUPTI_SUCCESS) &&
              same(kInvalidParameter, CUPTI_ERROR_INVALID_PARAMETER) &&
              same(kNotInitialized, CUPTI_ERROR_NOT_INITIALIZED) &&
              same(kInsufficientPrivileges, CUPTI_ERROR_INSUFFICIENT_PRIVILEGES) &&
              same(kMultipleSubscribers, CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED) &&
              same(kUnknown, CUPTI_ERROR_UNKNOWN));
static_assert(sizeof(Result) == sizeof(CUptiResult) &&
              sizeof(Domain) == sizeof(CUpti_CallbackDomain) &&
              sizeof(std::uint32_t) == sizeof(CUpti_CallbackId));
static_assert(same(kDriver, CUPTI_CB_DOMAIN_DRIVER_API) &&
              same(kRuntime, CUPTI_CB_DOMAIN_RUNTIME_API) &&
              same(kResource, CUPTI_CB_DOMAIN_RESOURCE) && same(kState, CUPTI_CB_DOMAIN_STATE));
static_assert(same(CallDomain::driver, CUPTI_CB_DOMAIN_DRIVER_API) &&
              same(CallDomain::runtime, CUPTI_CB_DOMAIN_RUNTIME_API));
static_assert(same(kContextCreated, CUPTI_CBID_RESOURCE_CONTEXT_CREATED) &&
              same(kContextDestroyStarting, CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING));
static_assert(same(kFatalError, CUPTI_CBID_STATE_FATAL_ERROR) &&
              same(kError, CUPTI_CBID_STATE_ERROR) && same(kWarning, CUPTI_CBID_STATE_WARNING));
static_assert(same(kEnter, CUPTI_API_ENTER) && same(kExit, CUPTI_API_EXIT));

static_assert(sizeof(CallData) == sizeof(CUpti_CallbackData) &&
              offsetof(CallData, site) == offsetof(CUpti_CallbackData, callbackSite) &&
              offsetof(CallData, function) == offsetof(CUpti_CallbackData, functionName) &&
              offsetof(CallData, params) == offsetof(CUpti_CallbackData, functionParams) &&
              offsetof(CallData, result) == offsetof(CUpti_CallbackData, functionReturnValue) &&
              offsetof(CallData, symbol) == offsetof(CUpti_CallbackData, symbolName) &&
              offsetof(CallData, context) == offsetof(CUpti_CallbackData, context) &&
              offsetof(CallData, context_uid) == offsetof(CUpti_CallbackData, contextUid) &&
              offsetof(CallData, correlation_data) ==
                  offsetof(CUpti_CallbackData, correlationData) &&
              offsetof(CallData, correlation_id) == offsetof(CUpti_CallbackData, correlationId));
static_assert(sizeof(ResourceData) == sizeof(CUpti_ResourceData) &&
              offsetof(ResourceData, context) == offsetof(CUpti_ResourceData, context) &&
              offsetof(ResourceData, stream) == offsetof(CUpti_ResourceData, resourceHandle) &&
              offsetof(ResourceData, descriptor) ==
                  offsetof(CUpti_ResourceData, resourceDescriptor));
// A notification of theirs is a union whose members all begin alike.
static_assert(sizeof(StateData) == sizeof(CUpti_StateData) &&
              offsetof(StateData, result) == offsetof(CUpti_StateData, notification.result) &&
              offsetof(StateData, message) == offsetof(CUpti_StateData, notification.message));

static_assert(
    offsetof(SubscriberParams, struct_bytes) == offsetof(CUpti_SubscriberParams, structSize) &&
    offsetof(SubscriberParams, name) == offsetof(CUpti_SubscriberParams, subscriberName) &&
    offsetof(SubscriberParams, old_name) == offsetof(CUpti_SubscriberParams, oldSubscriberName) &&
    offsetof(SubscriberParams, old_name_bytes) ==
        offsetof(CUpti_SubscriberParams, oldSubscriberSize));
#if CUPTI_API_VERSION >= 130200
static_assert(sizeof(SubscriberParamsSeveral) == sizeof(CUpti_SubscriberParams) &&
              sizeof(SubscriberParams) ==
                  offsetof(CUpti_SubscriberParams, allowMultipleSubscribers) &&
              sizeof(SubscriberParamsSeveral::several) ==
                  sizeof(CUpti_SubscriberParams::allowMultipleSubscribers));
#else
static_assert(sizeof(SubscriberParams) == sizeof(CUpti_SubscriberParams));
#endif

static_assert(sizeof(Subscriber) == sizeof(CUpti_SubscriberHandle) &&
              std::is_pointer_v<CUpti_SubscriberHandle>);
static_assert(
    Callable<std::remove_pointer_t<Callback>, std::remove_pointer_t<CUpti_CallbackFunc>>());
static_assert(Callable<SubscribeFn, decltype(cuptiSubscribe)>());
static_assert(Callable<SubscribeV2Fn, decltype(cuptiSubscribe_v2)>());
static_assert(Callable<UnsubscribeFn, decltype(cuptiUnsubscribe)>());
static_assert(Callable<EnableCallbackFn, decltype(cuptiEnableCallback)>());
static_assert(Callable<GetCallbackStateFn, decltype(cuptiGetCallbackState)>());
static_assert(Callable<GetCallbackNameFn, decltype(cuptiGetCallbackName)>());
static_assert(Callable<GetVersionFn, decltype(cuptiGetVersion)>());
static_assert(Callable<GetResultStringFn, decltype(cuptiGetResultString)>());
static_assert(Callable<GetDeviceIdFn, decltype(cuptiGetDeviceId)>());

}  // namespace ringmain::cuda::abi
