#include "adapters/sources/cuda/completions_driver.hpp"

#include <atomic>
#include <dlfcn.h>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "adapters/sources/cuda/cupti_library.hpp"

namespace ringmain::cuda {
namespace {

template <class F>
bool find(void* driver, const char* name, F*& function, std::string& lacks) {
  function = reinterpret_cast<F*>(::dlsym(driver, name));
  if (function == nullptr && lacks.empty()) lacks = name;
  return function != nullptr;
}

std::string find_all(void* driver, Driver& to) {
  std::string lacks;
  find(driver, "cuCtxGetCurrent", to.context_current, lacks);
  find(driver, "cuCtxSetCurrent", to.set_context, lacks);
  find(driver, "cuCtxGetId", to.context_id, lacks);
  find(driver, "cuCtxGetDevice", to.context_device, lacks);
  find(driver, "cuDeviceGetAttribute", to.attribute, lacks);
  find(driver, "cuStreamCreate", to.stream_create, lacks);
  find(driver, "cuStreamDestroy_v2", to.stream_destroy, lacks);
  find(driver, "cuStreamQuery", to.stream_query, lacks);
  find(driver, "cuStreamGetId", to.stream_id, lacks);
  find(driver, "cuStreamGetCtx", to.stream_context, lacks);
  find(driver, "cuStreamIsCapturing", to.is_capturing, lacks);
  find(driver, "cuThreadExchangeStreamCaptureMode", to.exchange_capture_mode, lacks);
  find(driver, "cuStreamWriteValue64_v2", to.write_value, lacks);
  find(driver, "cuLaunchHostFunc", to.launch_host, lacks);
  find(driver, "cuMemHostRegister_v2", to.host_register, lacks);
  find(driver, "cuMemHostUnregister", to.host_unregister, lacks);
  find(driver, "cuMemHostGetDevicePointer_v2", to.device_pointer, lacks);
  find(driver, "cuEventCreate", to.event_create, lacks);
  find(driver, "cuEventDestroy_v2", to.event_destroy, lacks);
  find(driver, "cuEventRecord", to.event_record, lacks);
  find(driver, "cuEventQuery", to.event_query, lacks);
  find(driver, "cuGraphLaunch", to.graph_launch, lacks);
  find(driver, "cuGraphAddHostNode", to.add_host_node, lacks);
  return lacks;
}

}  // namespace

Result<const Driver*> Driver::open() {
  std::string why = why_no_driver();
  constexpr std::string_view kHeard = "CUDA is not heard, as";
  if (!why.empty()) {
    if (why.rfind(kHeard, 0) == 0) {
      why.replace(0, kHeard.size(), "completions cannot be armed, as");
    }
    return Error{Error::Code::not_found, std::move(why)};
  }
  // Nothing guards it: a child that is forked meanwhile would wait for ever.
  static constinit std::atomic<const Driver*> found{nullptr};
  if (const Driver* there = found) return there;
  auto made = std::make_unique<Driver>();
  void* const driver = ::dlopen("libcuda.so.1", RTLD_LAZY);  // never closed
  if (driver == nullptr || !find_all(driver, *made).empty()) {
    return Error{Error::Code::not_found,
                 "completions cannot be armed, as this NVIDIA driver is older than CUDA 12.0's: "
                 "install a newer one"};
  }
  const Driver* there = nullptr;
  if (!found.compare_exchange_strong(there, made.get())) return there;  // another thread's
  return made.release();
}

}  // namespace ringmain::cuda
