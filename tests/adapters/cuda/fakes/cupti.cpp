// The fake libcupti.so.13: CUPTI's functions at its C interface, and their rules (README.md).
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "adapters/sources/cuda/cupti_abi.hpp"

#include "tests/adapters/cuda/fakes/cupti_subscribers.hpp"

namespace ringmain::fake {

Cupti& cupti() {
  static auto* const cupti = new Cupti;
  return *cupti;
}

namespace {
namespace abi = ringmain::cuda::abi;

struct Answer {
  int result = 0;
  unsigned times = 0;
  std::string owner;
};

/// What is asked and told seldom, under one mutex that no callback is made under.
struct Told {
  std::mutex mutex;
  std::uint32_t version = 130001;
  std::map<std::string, Answer, std::less<>> answers;
  std::vector<std::unique_ptr<Subscriber>> all;
  bool driver_found = false;
};

void read_variables(Told& told) {
  if (const char* version = std::getenv("FAKE_CUPTI_VERSION")) {
    told.version = static_cast<std::uint32_t>(std::atoi(version));
  }
  if (const char* subscribe = std::getenv("FAKE_CUPTI_SUBSCRIBE")) {  // "39:Nsight"
    const char* owner = std::strchr(subscribe, ':');
    const Answer answer{std::atoi(subscribe), ~0U, owner == nullptr ? "" : owner + 1};
    told.answers["cuptiSubscribe"] = told.answers["cuptiSubscribe_v2"] = answer;
  }
  if (const char* modes = std::getenv("FAKE_CUPTI_HOSTILE")) {
    cupti().hostile = static_cast<unsigned>(std::atoi(modes));
  }
}

Told& told() {
  static Told* const told = [] {
    auto* made = new Told;
    read_variables(*made);
    return made;
  }();
  return *told;
}

/// Looks for the driver, as CUPTI does when it is first called, and looks on at its calls.
bool has_driver(Told& t) {
  if (t.driver_found) return true;
  void* driver = ::dlopen("libcuda.so.1", RTLD_LAZY);
  if (driver == nullptr) return false;
  auto* look_on =
      reinterpret_cast<decltype(&fake_cuda_look_on)>(::dlsym(driver, "fake_cuda_look_on"));
  if (look_on == nullptr) return false;
  look_on(&kOnlooker);
  return t.driver_found = true;
}

/// Under its mutex. What a test told it to answer, or success.
abi::Result told_answer(Told& t, const char* function, std::string* owner) {
  const auto found = t.answers.find(std::string_view(function));  // allocates nothing
  if (found == t.answers.end() || found->second.times == 0) return abi::kSuccess;
  --found->second.times;
  if (owner != nullptr) *owner = found->second.owner;
  return found->second.result;
}

/// Every function begins so, but for cuptiGetResultString(): what must it answer before it does
/// anything? Success: nothing.
abi::Result before(const char* function, bool needs_driver, std::string* owner = nullptr) {
  ++cupti().asked;
  in_the_middle(function);
  if (const int answer = scripted(function); answer != 0) return answer;
  Told& t = told();
  const std::lock_guard lock(t.mutex);
  const bool driver = has_driver(t);
  if (!driver && t.version / 100 == 1302) {
    std::fprintf(stderr, "fake CUPTI: %s was called without a driver, where 13.2 dies\n", function);
    std::abort();
  }
  if (!driver && (needs_driver || t.version >= 130300)) return abi::kUnknown;
  const std::string_view called = function;
  if (called.substr(0, 14) == "cuptiSubscribe") cupti().finalized = false;  // it starts anew
  if (cupti().finalized && called != "cuptiGetVersion") {
    if (called == "cuptiUnsubscribe" || called == "cuptiEnableCallback") ++cupti().dead_handles;
    return abi::kNotInitialized;
  }
  return told_answer(t, function, owner);
}

/// Who holds this handle now, or null. A question may be asked with a dead one, and no more.
Subscriber* subscriber_of(CUpti_SubscriberHandle handle, bool asks = false) {
  for (auto& place : cupti().places) {
    Subscriber* s = place;
    if (s != nullptr && static_cast<const void*>(s) == static_cast<const void*>(handle)) return s;
  }
  if (asks) return nullptr;
  for (const auto& each : told().all) {
    if (each->dead && static_cast<void*>(each.get()) == static_cast<void*>(handle))
      ++cupti().dead_handles;
  }
  return nullptr;
}

struct Wish {
  CUpti_CallbackFunc callback;
  void* user_data;
  std::string name;
  bool several;
};

/// 39 and the name of who is there, or the subscriber.
abi::Result add(Told& t, const Wish& wish, Subscriber*& made, std::string& owner) {
  const std::lock_guard lock(t.mutex);
  std::size_t free = kSubscribersMax;
  for (std::size_t i = kSubscribersMax; i-- > 0;) {
    const Subscriber* other = cupti().places[i];
    if (other == nullptr) {
      free = i;
    } else if (!wish.several || !other->several) {
      owner = other->name;
      return abi::kMultipleSubscribers;
    }
  }
  if (free == kSubscribersMax) return abi::kMultipleSubscribers;
  made = t.all.emplace_back(std::make_unique<Subscriber>()).get();
  made->callback = wish.callback;
  made->user_data = wish.user_data;
  made->name = wish.name;
  made->several = wish.several;
  made->place = free;
  cupti().places[free] = made;
  return abi::kSuccess;
}

abi::Result subscribe(const char* function, CUpti_SubscriberHandle* handle, const Wish& wish,
                      std::string& owner) {
  const OwnLock own;
  if (const abi::Result result = before(function, true, &owner); result != abi::kSuccess) {
    return result;
  }
  if (handle == nullptr || wish.callback == nullptr) return abi::kInvalidParameter;
  Subscriber* made = nullptr;
  const abi::Result result = add(told(), wish, made, owner);
  if (result == abi::kSuccess) *handle = reinterpret_cast<CUpti_SubscriberHandle>(made);
  return result;
}

[[maybe_unused]] abi::Result subscribe_by_struct(CUpti_SubscriberHandle* handle,
                                                 CUpti_CallbackFunc callback, void* user_data,
                                                 const abi::SubscriberParams* params) {
  Wish wish{callback, user_data, "CUPTI for (unnamed)", false};
  std::string owner;
  if (params != nullptr) {
    const std::size_t bytes = params->struct_bytes;
    const bool larger = bytes == sizeof(abi::SubscriberParamsSeveral) && told().version >= 130200;
    if (bytes != sizeof *params && !larger) return abi::kInvalidParameter;
    if (params->name != nullptr) {
      wish.name = "CUPTI for " + std::string(params->name).substr(0, abi::kNameBytesMax);
    }
    wish.several = larger && told().version >= abi::kSeveralSince &&
                   static_cast<const abi::SubscriberParamsSeveral*>(params)->several == 1;
  }
  const abi::Result result = subscribe("cuptiSubscribe_v2", handle, wish, owner);
  if (result == abi::kMultipleSubscribers && params != nullptr && params->old_name != nullptr &&
      params->old_name_bytes > 0) {
    const std::size_t size = std::min(owner.size(), params->old_name_bytes - 1);
    std::memcpy(params->old_name, owner.data(), size);
    params->old_name[size] = '\0';
  }
  return result;
}

/// One thread at a time may change a subscriber, by its own care.
class Alone {
 public:
  explicit Alone(Subscriber& of) : of_(of) {
    if (of_.inside.fetch_add(1) != 0) ++cupti().overlaps;
  }
  Alone(const Alone&) = delete;
  Alone& operator=(const Alone&) = delete;
  ~Alone() { --of_.inside; }

 private:
  Subscriber& of_;
};

std::atomic<bool>* switch_of(Subscriber* of, int domain, std::uint32_t cbid) {
  if (of == nullptr || domain < 1 || domain >= kDomains || cbid >= kNumbers) return nullptr;
  return &of->enabled[static_cast<std::size_t>(domain)][cbid];
}

void forget_subscribers() {
  for (auto& place : cupti().places) place = nullptr;
}

}  // namespace
}  // namespace ringmain::fake

using namespace ringmain::fake;  // NOLINT: the functions below are at C's level
namespace abi = ringmain::cuda::abi;

extern "C" {

#define FAKE_RESULT(result) static_cast<CUptiResult>(result)

CUptiResult cuptiGetVersion(std::uint32_t* version) {
  if (const auto result = before("cuptiGetVersion", false); result != 0) return FAKE_RESULT(result);
  if (version == nullptr) return FAKE_RESULT(abi::kInvalidParameter);
  *version = told().version;
  return FAKE_RESULT(abi::kSuccess);
}

CUptiResult cuptiGetResultString(CUptiResult result, const char** text) {
  if (const int answer = scripted("cuptiGetResultString"); answer != 0) return FAKE_RESULT(answer);
  {
    const std::lock_guard lock(told().mutex);
    if (const auto answer = told_answer(told(), "cuptiGetResultString", nullptr); answer != 0)
      return FAKE_RESULT(answer);
  }
  if (text == nullptr) return FAKE_RESULT(abi::kInvalidParameter);
  switch (static_cast<int>(result)) {
    case abi::kSuccess:
      *text = "CUPTI_SUCCESS";
      break;
    case abi::kInvalidParameter:
      *text = "CUPTI_ERROR_INVALID_PARAMETER";
      break;
    case abi::kNotInitialized:
      *text = "CUPTI_ERROR_NOT_INITIALIZED";
      break;
    case abi::kInsufficientPrivileges:
      *text = "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES";
      break;
    case abi::kMultipleSubscribers:
      *text = "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED";
      break;
    case abi::kUnknown:
      *text = "CUPTI_ERROR_UNKNOWN";
      break;
    default:
      return FAKE_RESULT(abi::kInvalidParameter);
  }
  return FAKE_RESULT(abi::kSuccess);
}

CUptiResult cuptiSubscribe(CUpti_SubscriberHandle* handle, CUpti_CallbackFunc callback,
                           void* user_data) {
  std::string owner;
  return FAKE_RESULT(
      subscribe("cuptiSubscribe", handle, {callback, user_data, "CUPTI", false}, owner));
}

#ifndef FAKE_CUPTI_OLD
CUptiResult cuptiSubscribe_v2(CUpti_SubscriberHandle* handle, CUpti_CallbackFunc callback,
                              void* user_data, CUpti_SubscriberParams* params) {
  return FAKE_RESULT(subscribe_by_struct(handle, callback, user_data,
                                         reinterpret_cast<abi::SubscriberParams*>(params)));
}
#endif

CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle handle) {
  const OwnLock own;
  if (const auto result = before("cuptiUnsubscribe", false); result != 0) {
    return FAKE_RESULT(result);
  }
  const std::lock_guard lock(told().mutex);
  Subscriber* left = subscriber_of(handle);
  if (left == nullptr) return FAKE_RESULT(abi::kInvalidParameter);
  left->there = false;
  cupti().places[left->place] = nullptr;
  cupti().left = left;
  return FAKE_RESULT(abi::kSuccess);
}

CUptiResult cuptiEnableCallback(std::uint32_t enable, CUpti_SubscriberHandle handle,
                                CUpti_CallbackDomain domain, std::uint32_t cbid) {
  const OwnLock own;
  if (const auto result = before("cuptiEnableCallback", false); result != 0) {
    return FAKE_RESULT(result);
  }
  Subscriber* subscriber = nullptr;
  {
    const std::lock_guard lock(told().mutex);
    subscriber = subscriber_of(handle);
  }
  std::atomic<bool>* enabled = switch_of(subscriber, static_cast<int>(domain), cbid);
  if (enabled == nullptr) return FAKE_RESULT(abi::kInvalidParameter);
  const Alone alone(*subscriber);
  *enabled = enable != 0;
  if (enable == 0) ++cupti().disabled;
  return FAKE_RESULT(abi::kSuccess);
}

CUptiResult cuptiGetCallbackState(std::uint32_t* enable, CUpti_SubscriberHandle handle,
                                  CUpti_CallbackDomain domain, std::uint32_t cbid) {
  const OwnLock own;
  if (const auto result = before("cuptiGetCallbackState", false); result != 0) {
    return FAKE_RESULT(result);
  }
  Subscriber* subscriber = subscriber_of(handle, true);
  const std::atomic<bool>* enabled = switch_of(subscriber, static_cast<int>(domain), cbid);
  if (enabled == nullptr || enable == nullptr) return FAKE_RESULT(abi::kInvalidParameter);
  const Alone alone(*subscriber);
  *enable = *enabled ? 1 : 0;
  return FAKE_RESULT(abi::kSuccess);
}

#ifndef FAKE_CUPTI_INCOMPLETE
CUptiResult cuptiGetCallbackName(CUpti_CallbackDomain domain, std::uint32_t cbid,
                                 const char** name) {
  if (const auto result = before("cuptiGetCallbackName", false); result != 0) {
    return FAKE_RESULT(result);
  }
  if (name == nullptr) return FAKE_RESULT(abi::kInvalidParameter);
  for (const Row& row : kRows) {
    if (row.domain != static_cast<int>(domain) || row.cbid != cbid) continue;
    *name = row.name;
    return FAKE_RESULT(abi::kSuccess);
  }
  return FAKE_RESULT(abi::kInvalidParameter);
}
#endif

CUptiResult cuptiGetDeviceId(CUcontext context, std::uint32_t* device) {
  errno = ENOENT;  // as any library's function may
  const OwnLock own;
  if (const auto result = before("cuptiGetDeviceId", true); result != 0) return FAKE_RESULT(result);
  static auto* const device_of = reinterpret_cast<decltype(&fake_cuda_device_of)>(
      ::dlsym(::dlopen("libcuda.so.1", RTLD_LAZY), "fake_cuda_device_of"));
  const bool known = device != nullptr && device_of(context, device);
  return FAKE_RESULT(known ? abi::kSuccess : abi::kInvalidParameter);
}

CUptiResult cuptiFinalize() {
  cupti().finalized = true;
  for (auto& place : cupti().places) {
    if (Subscriber* ended = place) ended->dead = true;
  }
  forget_subscribers();
  return FAKE_RESULT(abi::kSuccess);
}

// ---- What a test tells it ----

void fake_cupti_version(std::uint32_t version) {
  const std::lock_guard lock(told().mutex);
  told().version = version;
}

void fake_cupti_answer(const char* function, int result, unsigned times, const char* owner) {
  const std::lock_guard lock(told().mutex);
  told().answers[function] = {result, times, owner == nullptr ? "" : owner};
}

void fake_cupti_fatal(int result, const char* message) {
  deliver_state(abi::kFatalError, result, message);
  cuptiFinalize();
}

void fake_cupti_reset() {
  Told& t = told();
  const std::lock_guard lock(t.mutex);
  forget_subscribers();
  Cupti& c = cupti();
  c.left = nullptr;
  c.finalized = false;
  c.hostile = 0;
  c.locks = false;
  c.late = c.lose[0] = c.lose[1] = 0;
  c.delivered = c.overlaps = c.dead_handles = c.disabled = 0;
  t.answers.clear();
  t.version = 130001;
  read_variables(t);
}

}  // extern "C"
