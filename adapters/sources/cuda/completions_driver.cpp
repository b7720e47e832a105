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
bool find(void* driver, const char* name, F*& function) {
  function = reinterpret_cast<F*>(::dlsym(driver, name));
  return function != nullptr;
}

/// False: one of them is not there.
bool find_all(void* driver, Driver& to) {
  return find(driver, "cuCtxGetCurrent", to.context_current) &&
         find(driver, "cuCtxSetCurrent", to.set_context) &&
         find(driver, "cuCtxGetId", to.context_id) &&
         find(driver, "cuCtxGetDevice", to.context_device) &&
         find(driver, "cuDeviceGetAttribute", to.attribute) &&
         find(driver, "cuStreamCreate", to.stream_create) &&
         find(driver, "cuStreamDestroy_v2", to.stream_destroy) &&
         find(driver, "cuStreamQuery", to.stream_query) &&
         find(driver, "cuStreamGetId", to.stream_id) &&
         find(driver, "cuStreamGetCtx", to.stream_context) &&
         find(driver, "cuStreamIsCapturing", to.is_capturing) &&
         find(driver, "cuThreadExchangeStreamCaptureMode", to.exchange_capture_mode) &&
         find(driver, "cuStreamWriteValue64_v2", to.write_value) &&
         find(driver, "cuLaunchHostFunc", to.launch_host) &&
         find(driver, "cuMemHostRegister_v2", to.host_register) &&
         find(driver, "cuMemHostUnregister", to.host_unregister) &&
         find(driver, "cuMemHostGetDevicePointer_v2", to.device_pointer) &&
         find(driver, "cuEventCreate", to.event_create) &&
         find(driver, "cuEventDestroy_v2", to.event_destroy) &&
         find(driver, "cuEventRecord", to.event_record) &&
         find(driver, "cuEventQuery", to.event_query) &&
         find(driver, "cuGraphLaunch", to.graph_launch) &&
         find(driver, "cuGraphAddHostNode", to.add_host_node);
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
  if (driver == nullptr || !find_all(driver, *made)) {
    return Error{Error::Code::not_found,
                 "completions cannot be armed, as this NVIDIA driver is older than CUDA 12.0's: "
                 "install a newer one"};
  }
  const Driver* there = nullptr;
  if (!found.compare_exchange_strong(there, made.get())) return there;  // another thread's
  return made.release();
}

}  // namespace ringmain::cuda
