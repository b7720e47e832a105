// The fake libcuda.so.1: how it begins, its devices and its contexts.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>

#include "tests/adapters/cuda/fakes/driver_world.hpp"

namespace ringmain::fake {
namespace {

constexpr std::uint32_t kContextCreated = 1, kContextDestroyStarting = 2, kInitFinished = 5;
constexpr std::uint32_t kContextSynchronized = 2;
thread_local Context* current = nullptr;

bool is_stub() {
  const char* asked = std::getenv("FAKE_CUDA_STUB");
  return asked != nullptr && std::strcmp(asked, "1") == 0;
}

/// As the driver does when it begins: the one library that the environment names is loaded into the
/// process and told to begin. Whether that worked is nothing to the program.
void load_injected() {
  const char* path = std::getenv("CUDA_INJECTION64_PATH");
  if (path == nullptr || *path == '\0') return;
  void* library = ::dlopen(path, RTLD_LAZY);
  if (library == nullptr) return;
  using BeginFn = int();
  if (auto* begin = reinterpret_cast<BeginFn*>(::dlsym(library, "InitializeInjection"))) begin();
}

CUresult begin() {
  if (world().devices < 1) return CUDA_ERROR_NO_DEVICE;
  static const bool once =
      (load_injected(), raise_notice(kResources, kInitFinished, nullptr, nullptr), true);
  const std::lock_guard lock(world().mutex);
  world().initialized = once;
  return CUDA_SUCCESS;
}

Context* make_context(CUdevice device, bool primary) {
  Context* made = nullptr;
  {
    World& w = world();
    const std::lock_guard lock(w.mutex);
    made = &w.contexts.emplace_back();
    made->uid = static_cast<std::uint32_t>(w.contexts.size());
    made->device = device;
    made->live = true;
    made->primary = primary;
    if (primary) w.primary = made;
  }
  raise_notice(kResources, kContextCreated, made, nullptr);
  return made;
}

void end_context(Context* context) {
  raise_notice(kResources, kContextDestroyStarting, context, nullptr);
  World& w = world();
  const std::lock_guard lock(w.mutex);
  context->live = false;
  drop_work_of(context);
  w.events.give_back_of(context);
  w.streams.give_back_of(context);
  w.arrays.give_back_of(context);
  for (auto block = w.memory.begin(); block != w.memory.end();) {
    const MemoryClass kind = block->second.kind;
    const bool goes = block->second.context == context &&
                      (kind == MemoryClass::device || kind == MemoryClass::registered);
    if (!goes) {
      ++block;
      continue;
    }
    w.used_bytes -= block->second.bytes;
    if (kind == MemoryClass::device)
      w.free_memory[{kind, block->second.bytes}].push_back(block->first);
    block = w.memory.erase(block);
  }
  if (w.primary == context) w.primary = nullptr, w.primary_users = 0;
}

Context* context_of(CUcontext handle) {
  World& w = world();
  const std::lock_guard lock(w.mutex);
  // The newest first: there may be very many dead ones.
  const auto found = std::find_if(
      w.contexts.rbegin(), w.contexts.rend(),
      [handle](const Context& each) { return number(handle) == number(&each) && each.live; });
  return found == w.contexts.rend() ? nullptr : &*found;
}

CUresult need_begun() {
  if (is_stub()) return CUDA_ERROR_STUB_LIBRARY;
  World& w = world();
  const std::lock_guard lock(w.mutex);
  return w.initialized ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

/// A call that needs no context.
template <class Served, class Body>
CUresult early_call(typename Served::Params params, Body body) {
  return static_cast<CUresult>(serve<Served>(params, [&](Deed& deed) -> CUresult {
    const CUresult why_not = need_begun();
    return why_not != CUDA_SUCCESS ? why_not : body(deed);
  }));
}

bool is_device(CUdevice device) {
  return device >= 0 && device < world().devices;
}

CUresult synchronize(Context* context) {
  {
    std::unique_lock lock(world().mutex);
    works().moved.wait(lock, [&] { return all_over(context); });
  }
  if (const int why_not = context->broken; why_not != 0) return static_cast<CUresult>(why_not);
  raise_notice(kSynchronizations, kContextSynchronized, context, nullptr);
  return CUDA_SUCCESS;
}

CUresult retain_primary(CUcontext* context, CUdevice device) {
  if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  Context* primary = nullptr;
  {
    const std::lock_guard lock(world().mutex);
    primary = world().primary;
    ++world().primary_users;
  }
  if (primary == nullptr) primary = make_context(device, true);
  *context = handle_of<CUcontext>(number(primary));
  return CUDA_SUCCESS;
}

}  // namespace

World& world() {
  static World* const world = [] {
    auto* made = new World;
    if (const char* devices = std::getenv("FAKE_CUDA_DEVICES")) made->devices = std::atoi(devices);
    return made;
  }();
  return *world;
}

int attribute_of(int attribute) {
  constexpr int kCan64BitStreamMemOps = 122, kHostRegisterSupported = 99;
  const std::lock_guard lock(world().mutex);
  const auto told = world().attributes.find(attribute);
  if (told != world().attributes.end()) return told->second;
  return attribute == kCan64BitStreamMemOps || attribute == kHostRegisterSupported ? 1 : 0;
}

Context* current_context() {
  return current != nullptr && current->live ? current : nullptr;
}
void set_current_context(Context* context) {
  current = context;
}

CUresult usable() {
  const CUresult begun = need_begun();
  if (begun != CUDA_SUCCESS) return begun;
  const Context* now = current_context();
  return now == nullptr ? CUDA_ERROR_INVALID_CONTEXT : static_cast<CUresult>(now->broken.load());
}

}  // namespace ringmain::fake

using namespace ringmain::fake;  // NOLINT: the functions below are at C's level

extern "C" {

void fake_cuda_attribute(int attribute, int value) {
  const std::lock_guard lock(world().mutex);
  world().attributes[attribute] = value;
}

bool fake_cuda_device_of(void* context, std::uint32_t* device) {
  const Context* known = context_of(static_cast<CUcontext>(context));
  if (known != nullptr) *device = static_cast<std::uint32_t>(known->device);
  return known != nullptr;
}

CUresult cuInit(unsigned int flags) {
  const bool begun = need_begun() == CUDA_SUCCESS;  // the one that begins is not told
  return static_cast<CUresult>(serve<cuInit_call>(
      {flags}, [](Deed&) { return is_stub() ? CUDA_ERROR_STUB_LIBRARY : begin(); }, begun));
}

CUresult cuDriverGetVersion(int* version) {
  return static_cast<CUresult>(serve<cuDriverGetVersion_call>({version}, [&](Deed&) {
    if (is_stub()) return CUDA_ERROR_STUB_LIBRARY;
    if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const char* asked = std::getenv("FAKE_CUDA_VERSION");
    *version = asked == nullptr ? 13000 : std::atoi(asked);
    return CUDA_SUCCESS;
  }));
}

CUresult cuDeviceGetCount(int* count) {
  return early_call<cuDeviceGetCount_call>({count}, [&](Deed&) {
    *count = world().devices;
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  return early_call<cuDeviceGet_call>({device, ordinal}, [&](Deed&) {
    if (!is_device(ordinal)) return CUDA_ERROR_INVALID_DEVICE;
    *device = ordinal;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxCreate_v4(CUcontext* context, CUctxCreateParams* how, unsigned int flags,
                        CUdevice device) {
  return early_call<cuCtxCreate_v4_call>({context, how, flags, device}, [&](Deed&) {
    if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    Context* made = make_context(device, false);
    set_current_context(made);
    *context = handle_of<CUcontext>(number(made));
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxDestroy_v2(CUcontext context) {
  return early_call<cuCtxDestroy_v2_call>({context}, [&](Deed&) {
    Context* known = context_of(context);
    if (known == nullptr || known->primary) return CUDA_ERROR_INVALID_CONTEXT;
    end_context(known);
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxSetCurrent(CUcontext context) {
  return early_call<cuCtxSetCurrent_call>({context}, [&](Deed&) {
    Context* known = context_of(context);
    if (known == nullptr && context != nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    set_current_context(known);
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxGetCurrent(CUcontext* context) {
  return early_call<cuCtxGetCurrent_call>({context}, [&](Deed&) {
    *context = handle_of<CUcontext>(number(current_context()));
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxGetDevice(CUdevice* device) {
  return driver_call<cuCtxGetDevice_call>({device}, [&](Deed&) {
    *device = current_context()->device;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxGetDevice_v2(CUdevice* device, CUcontext context) {
  return early_call<cuCtxGetDevice_v2_call>({device, context}, [&](Deed&) {
    const Context* known = context_of(context);
    if (known == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    *device = known->device;
    return CUDA_SUCCESS;
  });
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  return early_call<cuDevicePrimaryCtxRetain_call>(
      {context, device}, [&](Deed&) { return retain_primary(context, device); });
}

CUresult fake_cuda_take_primary(CUcontext* context, CUdevice device) {
  return early_call<cuDevicePrimaryCtxRetain_call>({context, device}, [&](Deed&) {
    const CUresult result = retain_primary(context, device);
    if (result == CUDA_SUCCESS) set_current_context(context_of(*context));
    return result;
  });
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  return early_call<cuDevicePrimaryCtxRelease_v2_call>({device}, [&](Deed&) {
    Context* last = nullptr;
    {
      const std::lock_guard lock(world().mutex);
      if (world().primary_users == 0) return CUDA_ERROR_INVALID_CONTEXT;
      if (--world().primary_users == 0) last = world().primary;
    }
    if (last != nullptr) end_context(last);
    return CUDA_SUCCESS;
  });
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) {
  return early_call<cuDevicePrimaryCtxReset_v2_call>({device}, [&](Deed&) {
    Context* primary = nullptr;
    {
      const std::lock_guard lock(world().mutex);
      primary = world().primary;
    }
    if (primary != nullptr) end_context(primary);
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxSynchronize() {
  return driver_call<cuCtxSynchronize_call>({},
                                            [&](Deed&) { return synchronize(current_context()); });
}

CUresult cuCtxSynchronize_v2(CUcontext context) {
  return driver_call<cuCtxSynchronize_v2_call>({context}, [&](Deed&) {
    Context* known = context_of(context);
    return known == nullptr ? CUDA_ERROR_INVALID_CONTEXT : synchronize(known);
  });
}

CUresult cuCtxGetId(CUcontext context, unsigned long long* id) {
  return early_call<cuCtxGetId_call>({context, id}, [&](Deed&) {
    const Context* known = context == nullptr ? current_context() : context_of(context);
    if (known == nullptr) {
      return context == nullptr ? CUDA_ERROR_INVALID_CONTEXT : CUDA_ERROR_CONTEXT_IS_DESTROYED;
    }
    *id = known->uid;
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  return early_call<cuDeviceGetAttribute_call>({value, attribute, device}, [&](Deed&) {
    if (value == nullptr || attribute < 1) return CUDA_ERROR_INVALID_VALUE;
    if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    *value = attribute_of(static_cast<int>(attribute));
    return CUDA_SUCCESS;
  });
}

}  // extern "C"
