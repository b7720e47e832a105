// A communicator, as NCCL 2.30 shows itself to a profiler plugin: it opens what
// NCCL_PROFILER_PLUGIN names, takes the newest table that it knows, and tells of collectives.
#pragma once
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>

#include "adapters/sources/nccl/nccl_profiler_abi.hpp"

namespace ringmain::nccl {

inline abi::DescriptorV6 descriptor(abi::Type type, void* parent) {
  abi::DescriptorV6 made;
  std::memset(&made, 0, sizeof made);
  made.type = type;
  made.parent = parent;
  return made;
}

class FrontEnd {
 public:
  bool open() {
    const char* const named = std::getenv("NCCL_PROFILER_PLUGIN");
    library_ = named == nullptr ? nullptr : ::dlopen(named, RTLD_NOW | RTLD_LOCAL);
    table_ = library_ == nullptr ? nullptr
                                 : static_cast<abi::TableV6*>(::dlsym(library_, abi::symbol_of(6)));
    return table_ != nullptr && table_->init(&context_, 0xabc, &mask_, "0:default_pg", 1, 2, 1,
                                             nullptr) == abi::kSuccess;
  }
  /// With its kernel, or so that nothing shows its end.
  void collective(std::uint64_t sequence, bool has_kernel = true) {
    auto d = descriptor(abi::kCollApi, nullptr);
    d.coll_api.func = "AllReduce";
    d.coll_api.datatype = "ncclFloat32";
    void* const call = start(d);
    stop(call);
    d = descriptor(abi::kColl, call);
    d.coll.seq_number = sequence;
    d.coll.func = "AllReduce";
    d.coll.count = 256;
    d.coll.datatype = "ncclFloat32";
    d.coll.n_channels = 1;
    void* const operation = start(d);
    stop(operation);
    if (!has_kernel) return;
    d = descriptor(abi::kKernelCh, operation);
    d.kernel_ch.p_timer = sequence * 100 + 1;
    void* const kernel = start(d);
    abi::StateArgs args{};
    args.kernel_ch.p_timer = sequence * 100 + 50;
    if (kernel != nullptr) (void)table_->record_event_state(kernel, abi::kKernelChStop, &args);
    stop(kernel);
  }
  void close() {
    if (context_ != nullptr) (void)table_->finalize(context_);
    (void)::dlclose(library_);
  }
  [[nodiscard]] int mask() const { return mask_; }

 private:
  void* start(abi::DescriptorV6& what) {
    void* handle = reinterpret_cast<void*>(0xdead);
    if ((mask_ & static_cast<int>(what.type)) == 0 && what.type != abi::kCollApi) return nullptr;
    (void)table_->start_event(context_, &handle, &what);
    return handle;
  }
  void stop(void* handle) {
    if (handle != nullptr) (void)table_->stop_event(handle);
  }

  void* library_ = nullptr;
  abi::TableV6* table_ = nullptr;
  void* context_ = nullptr;
  int mask_ = 0;
};

}  // namespace ringmain::nccl
