#include "adapters/sources/cuda/cupti_library.hpp"

#include <array>
#include <cstddef>
#include <dlfcn.h>
#include <mutex>
#include <utility>

#include "adapters/sources/cuda/cupti_places.hpp"

namespace ringmain::cuda {
namespace {

constexpr const char* kDriver = "libcuda.so.1";
constexpr int kStubLibrary = 34;              // CUDA_ERROR_STUB_LIBRARY
constexpr std::uint32_t kOldestVersion = 18;  // CUDA 12.0: what libcupti.so.12 began with
constexpr std::array kSonames = {"libcupti.so.13", "libcupti.so.12"};

std::string reason() {
  const char* why = ::dlerror();
  return why == nullptr ? "the loader does not say why" : why;
}

Error not_found(std::string message) {
  return {Error::Code::not_found, std::move(message)};
}
Error refused(std::string message) {
  return {Error::Code::refused, std::move(message)};
}

}  // namespace

std::string why_no_driver() {
  void* driver = ::dlopen(kDriver, RTLD_LAZY | RTLD_NOLOAD);
  if (driver == nullptr) driver = ::dlopen(kDriver, RTLD_LAZY);
  if (driver == nullptr) {
    return "CUDA is not heard, as there is no NVIDIA driver here: install it, or let the container "
           "have it (" +
           reason() + ")";
  }
  // The toolkit's stub, which is there to link with, answers whatever it is asked with 34. This
  // question starts nothing; cuInit would.
  using VersionFn = int(int*);
  auto* version = reinterpret_cast<VersionFn*>(::dlsym(driver, "cuDriverGetVersion"));
  int number = 0;
  if (version != nullptr && version(&number) == kStubLibrary) {
    return "CUDA is not heard, as the libcuda.so.1 that is loaded, " + path_of(driver) +
           ", is the toolkit's stub: take its folder out of LD_LIBRARY_PATH";
  }
  return "";
}

namespace {

struct Opened {
  void* library = nullptr;
  std::string warning;
};

void* loaded_already() {
  for (const char* soname : kSonames) {
    if (void* library = ::dlopen(soname, RTLD_LAZY | RTLD_NOLOAD)) return library;
  }
  return nullptr;
}

Result<Opened> open_any(const std::string& wanted) {
  Opened opened;
  if ((opened.library = loaded_already()) != nullptr) {
    const std::string path = path_of(opened.library);
    if (!wanted.empty() && !same_file(path, wanted)) {
      opened.warning = "cupti=" + wanted + " is not used, as the process has " + path +
                       " already and two copies of CUPTI collide: leave cupti= out";
    }
    return opened;
  }
  if (!wanted.empty()) {
    opened.library = ::dlopen(wanted.c_str(), RTLD_LAZY);
    if (opened.library != nullptr) return opened;
    return not_found("CUDA is not heard, as cupti=" + wanted +
                     " cannot be loaded: name the file libcupti.so.13 of a CUDA toolkit (" +
                     reason() + ")");
  }
  for (const char* soname : kSonames) {
    if ((opened.library = ::dlopen(soname, RTLD_LAZY)) != nullptr) return opened;
  }
  for (const std::string& path : beside_the_runtime()) {
    if ((opened.library = ::dlopen(path.c_str(), RTLD_LAZY)) != nullptr) return opened;
  }
  return not_found(
      "CUDA is not heard, as there is no CUPTI (libcupti.so.13 or .12) on the loader's way or "
      "beside libcudart: install it with the CUDA toolkit or the Python package "
      "nvidia-cuda-cupti, and name its file with cupti=PATH or its folder in LD_LIBRARY_PATH");
}

template <class F>
bool find(void* library, const char* name, F*& function, std::string& lacks) {
  function = reinterpret_cast<F*>(::dlsym(library, name));
  if (function == nullptr && lacks.empty()) lacks = name;
  return function != nullptr;
}

/// Fills in the functions; the name of the first that is not there, or nothing.
std::string find_all(void* library, Cupti& cupti, abi::GetVersionFn*& version) {
  std::string lacks, optional;
  find(library, "cuptiGetVersion", version, lacks);
  find(library, "cuptiSubscribe", cupti.subscribe_v1, lacks);
  find(library, "cuptiUnsubscribe", cupti.unsubscribe, lacks);
  find(library, "cuptiEnableCallback", cupti.enable_callback, lacks);
  find(library, "cuptiGetCallbackState", cupti.callback_state, lacks);
  find(library, "cuptiGetCallbackName", cupti.callback_name, lacks);
  find(library, "cuptiGetDeviceId", cupti.device_id, lacks);
  find(library, "cuptiGetResultString", cupti.result_string, lacks);
  find(library, "cuptiSubscribe_v2", cupti.subscribe_v2, optional);  // from CUDA 13.0 on
  return lacks;
}

Result<Cupti> find_cupti(const std::string& wanted) {
  if (is_static_program()) {
    return refused(
        "CUDA is not heard, as this program is linked statically and nothing can be loaded into "
        "it: link it with the shared C library");
  }
  if (std::string why = why_no_driver(); !why.empty()) return not_found(std::move(why));
  Result<Opened> opened = open_any(wanted);
  if (!opened) return std::move(opened.error());
  Cupti cupti;
  cupti.path = path_of(opened.value().library);
  cupti.warning = std::move(opened.value().warning);
  abi::GetVersionFn* version = nullptr;
  if (const std::string lacks = find_all(opened.value().library, cupti, version); !lacks.empty()) {
    return refused("CUDA is not heard, as " + cupti.path + " lacks " + lacks +
                   ": take the CUPTI of CUDA 12.0 or later");
  }
  if (const abi::Result result = version(&cupti.version); result != abi::kSuccess) {
    return Error{Error::Code::system, "CUDA is not heard, as " + cupti.path +
                                          " does not start: " + cupti.text_of(result) +
                                          "; look whether nvidia-smi finds the driver"};
  }
  if (cupti.version < kOldestVersion) {
    return refused("CUDA is not heard, as " + cupti.path + " is too old (its version is " +
                   std::to_string(cupti.version) + "): take the CUPTI of CUDA 12.0 or later");
  }
  return cupti;
}

/// "CUPTI for NAME" is how CUPTI hands out the names that it was given.
std::string without_prefix(std::string_view name) {
  constexpr std::string_view kPrefix = "CUPTI for ";
  if (name.substr(0, kPrefix.size()) == kPrefix) name.remove_prefix(kPrefix.size());
  return std::string(name);
}

Error why_not_subscribed(const Cupti& cupti, abi::Result result, const std::string& owner) {
  switch (result) {
    case abi::kMultipleSubscribers:
      return {Error::Code::conflict,
              "CUDA is not heard, as CUPTI has one place for a subscriber "
              "and " +
                  (owner.empty() ? "another tool" : owner) +
                  " has it: run without that, or attach after it has ended"};
    case abi::kInsufficientPrivileges:
      return {Error::Code::refused,
              "CUDA is not heard, as the driver lets administrators only use CUPTI: let its "
              "administrator set NVreg_RestrictProfilingToAdminUsers=0 (" +
                  cupti.text_of(result) + ")"};
    default:
      return {Error::Code::system,
              "CUDA is not heard, as CUPTI takes no subscriber: " + cupti.text_of(result) +
                  "; look whether nvidia-smi finds the driver and a device"};
  }
}

}  // namespace

Result<const Cupti*> Cupti::open(std::string_view wanted) {
  static std::mutex finding;
  static const Cupti* found = nullptr;  // immortal, as the library is
  const std::lock_guard lock(finding);
  if (found == nullptr) {
    Result<Cupti> now = find_cupti(std::string(wanted));
    if (!now) return std::move(now.error());
    found = new Cupti(std::move(now.value()));
  }
  return found;
}

Result<abi::Subscriber> Cupti::subscribe(abi::Callback callback, void* user_data,
                                         std::string* owner, abi::Result* code) const {
  abi::Subscriber subscriber = nullptr;
  std::array<char, abi::kOldNameBytesMin + 1> old_name{};  // the last 0 stays, whoever writes
  abi::SubscriberParamsSeveral params{};
  params.name = kOwnName;
  params.old_name = old_name.data();
  params.old_name_bytes = abi::kOldNameBytesMin;
  abi::Result result = abi::kInvalidParameter;
  if (subscribe_v2 != nullptr && version >= abi::kSeveralSince) {
    params.struct_bytes = sizeof(abi::SubscriberParamsSeveral);
    params.several = 1;
    result = subscribe_v2(&subscriber, callback, user_data, &params);
  }
  // Beside one that wants to be alone, or over an older driver, several are refused, with 39 in
  // both cases: alone it may still be taken.
  if (subscribe_v2 != nullptr && result != abi::kSuccess) {
    params.struct_bytes = sizeof(abi::SubscriberParams);
    params.several = 0;
    result = subscribe_v2(&subscriber, callback, user_data, &params);
  }
  // A library that knows neither struct, or none of them at all.
  if (result == abi::kInvalidParameter) result = subscribe_v1(&subscriber, callback, user_data);
  if (code != nullptr) *code = result;
  if (result == abi::kSuccess) return subscriber;
  const std::string name = without_prefix(old_name.data());
  if (owner != nullptr && result == abi::kMultipleSubscribers) *owner = name;
  return why_not_subscribed(*this, result, name);
}

std::string Cupti::text_of(abi::Result result) const {
  const char* text = nullptr;
  const bool known =
      result_string != nullptr && result_string(result, &text) == abi::kSuccess && text != nullptr;
  return (known ? text : "CUPTI's error") + (" (" + std::to_string(result) + ")");
}

}  // namespace ringmain::cuda
