// Loading and calls of the API; real_front_end_events.cpp has the rest.
#include "tests/harness/nccl/tests/real_front_end.hpp"

#include <cstdlib>
#include <dlfcn.h>
#include <stdexcept>

#include "tests/harness/nccl/plugin_view.hpp"
#include "tests/harness/nccl/tests/real_calls.hpp"

namespace ringmain::nccl_conformance {
namespace {

constexpr char kState[] = "ncclProfilerApiState";

}  // namespace

RealFrontEnd::RealFrontEnd(const std::string& library, const Layout& layout) : layout_(layout) {
  void* const opened = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr) throw std::runtime_error(::dlerror());
  Dl_info where{};
  if (::dladdr(::dlsym(opened, "ncclGetVersion"), &where) == 0) {
    throw std::runtime_error(library + " has no ncclGetVersion");
  }
  base_ = static_cast<std::byte*>(where.dli_fbase);
  if (::dlinfo(opened, RTLD_DI_TLS_MODID, &tls_module_) != 0) {
    throw std::runtime_error(::dlerror());
  }
}

bool RealFrontEnd::kernels_have_works() const noexcept {
  return layout_.symbol("_Z30ncclProfilerStartKernelChEventP18ncclProfilerWorkOpm").has_value();
}

void* RealFrontEnd::symbol(const char* name) const {
  const auto offset = layout_.symbol(name);
  if (!offset) throw std::runtime_error(std::string("this NCCL has no symbol ") + name);
  return base_ + *offset;
}

std::byte* RealFrontEnd::thread_local_of(const char* name) const {
  ThreadLocalPlace place{tls_module_, layout_.thread(name)};
  return static_cast<std::byte*>(__tls_get_addr(&place));
}

template <class T>
T& RealFrontEnd::of_thread(const char* member) const {
  return *reinterpret_cast<T*>(thread_local_of(kState) +
                               layout_.member(std::string(kState) + "." + member));
}

int RealFrontEnd::function_of(Function function) const {
  const std::string name = std::string("ncclFunc") + text_of(function);
  return static_cast<int>(layout_.value(name));
}

int number_of(Datatype type) noexcept {
  switch (type) {  // ncclDataType_t, of nccl.h
    case Datatype::int8:
      return 0;
    case Datatype::float16:
      return 6;
    case Datatype::float32:
      return 7;
    case Datatype::bfloat16:
      return 9;
  }
  return -1;
}

void RealFrontEnd::init(Communicator& communicator) {
  const std::size_t size = layout_.size("ncclComm");
  communicator.native = Native(new std::byte[size]());
  std::byte* const native = communicator.native.get();
  const auto set = [&](const char* member, auto value) {
    std::memcpy(native + layout_.member(std::string("ncclComm.") + member), &value, sizeof(value));
  };
  set("commHash", communicator.id);
  set("rank", communicator.rank);
  set("nRanks", communicator.ranks);
  set("nNodes", communicator.nodes);
  set("config.commName", communicator.named ? communicator.name.c_str() : nullptr);
  call("_Z22ncclProfilerPluginInitP8ncclComm", static_cast<void*>(native));
  std::memcpy(&communicator.context, native + layout_.member("ncclComm.profilerContext"),
              sizeof(void*));
}

void RealFrontEnd::finalize(Communicator& communicator) {
  call("_Z26ncclProfilerPluginFinalizeP8ncclComm", static_cast<void*>(communicator.native.get()));
}

bool RealFrontEnd::loaded() const {
  return call<bool>("_Z24ncclProfilerPluginLoadedv");
}

int RealFrontEnd::mask() const {
  return __atomic_load_n(static_cast<int*>(symbol("ncclProfilerEventMask")), __ATOMIC_RELAXED);
}

void RealFrontEnd::set_mask(int mask) {
  __atomic_store_n(static_cast<int*>(symbol("ncclProfilerEventMask")), mask, __ATOMIC_RELAXED);
}

// The depths are what ncclGroupStart() and ncclGroupEnd() change; the functions that look at them
// are NCCL's.

void RealFrontEnd::group_start(bool of_user) {
  ++*reinterpret_cast<int*>(thread_local_of("ncclGroupDepth"));
  if (int& depth = of_thread<int>("profilerGroupDepth"); depth > 0) ++depth;
  group_of_user = of_user;
}

void RealFrontEnd::group_end_begins() {
  if (int& depth = of_thread<int>("profilerGroupDepth"); depth > 0) --depth;
  --*reinterpret_cast<int*>(thread_local_of("ncclGroupDepth"));
  call("_Z36ncclProfilerRecordGroupApiEventState24ncclProfilerEventState_t",
       int{abi::kGroupEndApiStart});
}

void RealFrontEnd::group_end() {
  call("_Z29ncclProfilerStopGroupApiEventv");
}

Task RealFrontEnd::append(const Call& made) {
  const bool nested = group_of_user;
  if (nested) {
    ++*reinterpret_cast<int*>(thread_local_of("ncclGroupDepth"));
    if (int& depth = of_thread<int>("profilerGroupDepth"); depth > 0) ++depth;
  }
  Structure info(layout_, "ncclInfo");
  info.set("coll", function_of(made.function));
  info.set("count", made.count);
  info.set("datatype", number_of(made.datatype));
  info.set("root", made.peer);
  info.set("comm", made.communicator->native.get());
  info.set("stream", made.stream);
  info.set_if_there("collConfig.userProfilerTag", made.tag);
  call("_Z30ncclProfilerStartGroupApiEventP8ncclInfob", info.address(), made.captured);
  call("_Z36ncclProfilerRecordGroupApiEventState24ncclProfilerEventState_t",
       int{abi::kGroupStartApiStop});
  const bool p2p = made.point_to_point();
  call(p2p ? "_Z28ncclProfilerStartP2pApiEventP8ncclInfob"
           : "_Z29ncclProfilerStartCollApiEventP8ncclInfob",
       info.address(), made.captured);
  Task task = task_of(made);
  task.mask = of_thread<int>("eActivationMask");
  task.group_api = of_thread<void*>("groupApiEventHandle");
  task.api = of_thread<void*>(p2p ? "p2pApiEventHandle" : "collApiEventHandle");
  call(p2p ? "_Z27ncclProfilerStopP2pApiEventv" : "_Z28ncclProfilerStopCollApiEventv");
  if (nested) {
    --*reinterpret_cast<int*>(thread_local_of("ncclGroupDepth"));
    if (int& depth = of_thread<int>("profilerGroupDepth"); depth > 0) --depth;
  }
  return task;
}

}  // namespace ringmain::nccl_conformance
