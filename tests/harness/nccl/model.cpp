// Loading and calls of the API; model_events.cpp has the rest.
#include "tests/harness/nccl/model.hpp"

#include <unistd.h>

#include "tests/harness/nccl/model_thread.hpp"
#include "tests/harness/nccl/rules.hpp"

namespace ringmain::nccl_conformance {
namespace {

constexpr int kAfterCollApi = abi::kColl | abi::kProxyOp | abi::kProxyStep | abi::kKernelCh |
                              abi::kNetPlugin | abi::kCeColl | abi::kCeSync | abi::kCeBatch;
constexpr int kAfterP2pApi =
    abi::kP2p | abi::kProxyOp | abi::kProxyStep | abi::kKernelCh | abi::kNetPlugin;
constexpr int kAfterGroupApi =
    abi::kP2pApi | abi::kCollApi | abi::kKernelLaunch | abi::kGroup | kAfterCollApi | kAfterP2pApi;

thread_local ApiThread api_thread;

}  // namespace

ApiThread& this_api_thread() noexcept {
  return api_thread;
}

const char* text_of(Function function) noexcept {
  switch (function) {
    case Function::all_gather:
      return "AllGather";
    case Function::all_reduce:
      return "AllReduce";
    case Function::reduce_scatter:
      return "ReduceScatter";
    case Function::send:
      return "Send";
    case Function::recv:
      return "Recv";
  }
  return "Invalid";
}

const char* text_of(Datatype type) noexcept {
  switch (type) {
    case Datatype::int8:
      return "ncclInt8";
    case Datatype::float16:
      return "ncclFloat16";
    case Datatype::float32:
      return "ncclFloat32";
    case Datatype::bfloat16:
      return "ncclBfloat16";
  }
  return "Unknown";
}

std::size_t size_of(Datatype type) noexcept {
  return type == Datatype::int8 ? 1 : type == Datatype::float32 ? 4 : 2;
}

Task task_of(const Call& call) {
  Task task;
  task.call = call;
  const bool bytes = call.function == Function::all_gather;
  task.count = bytes ? call.count * size_of(call.datatype) : call.count;
  task.datatype = bytes ? Datatype::int8 : call.datatype;
  return task;
}

Model::Model(std::string path, int version, Release release, Board& board)
    : path_(std::move(path)), wanted_version_(version), release_(release), board_(board) {}

Model::~Model() = default;

void Model::load() {
  const std::lock_guard lock(loading_);
  if (failed_) return;  // a failed load is not tried again
  if (plugin_ == nullptr) {
    plugin_ = PluginView::open(path_, wanted_version_, native_version(release_), board_, error_);
    failed_ = plugin_ == nullptr;
    if (failed_) {
      board_.found(rules::kOpens, "%s", error_.c_str());
      return;
    }
    opened_ = plugin_->version();
    plugin_->write_down(log_);
  }
  ++references_;
}

void Model::unload() {
  const std::lock_guard lock(loading_);
  if (references_ == 0 || --references_ > 0) return;
  plugin_.reset();
}

void Model::init(Communicator& communicator) {
  load();
  if (plugin_ == nullptr) return;
  const abi::Result result =
      plugin_->init(&communicator.context, communicator.id, &mask_,
                    communicator.named ? communicator.name.c_str() : nullptr, communicator.nodes,
                    communicator.ranks, communicator.rank, others_);
  if (result != abi::kSuccess) unload();  // and finalize does it once more
}

void Model::finalize(Communicator& communicator) {
  if (plugin_ != nullptr && communicator.context != nullptr) {
    plugin_->finalize(communicator.context);
  }
  unload();
}

void Model::group_start(bool of_user) {
  ++api_thread.depth;
  api_thread.group_of_user = of_user;
  if (api_thread.profiled_depth > 0) ++api_thread.profiled_depth;
}

void Model::group_end_begins() {
  if (api_thread.profiled_depth > 0) --api_thread.profiled_depth;
  --api_thread.depth;
  if (plugin_ != nullptr && api_thread.group_api != nullptr &&
      api_thread.state == ApiThread::State::start_stopped) {
    plugin_->record(api_thread.group_api, abi::kGroupEndApiStart, nullptr);
  }
  if (api_thread.state == ApiThread::State::start_stopped) {
    api_thread.state = ApiThread::State::none;
  }
}

void Model::group_end() {
  if (plugin_ == nullptr || api_thread.group_api == nullptr || api_thread.profiled_depth != 0) {
    return;
  }
  plugin_->stop(api_thread.group_api);
  api_thread.group_api = nullptr;
}

void Model::start_api(const Call& call) {
  const bool p2p = call.point_to_point();
  abi::DescriptorV7 descriptor{};
  descriptor.type = p2p ? abi::kP2pApi : abi::kCollApi;
  descriptor.rank = has_ranks_in_calls(release_) ? call.communicator->rank : 0;
  descriptor.parent = api_thread.group_api;
  const auto fill = [&](auto& part) {
    part.func = text_of(call.function);
    part.count = call.count;
    part.datatype = text_of(call.datatype);
    part.stream = reinterpret_cast<void*>(call.stream);
    part.graph_captured = call.captured;
    part.user_tag = call.tag;
  };
  if (p2p) {
    fill(descriptor.p2p_api);
  } else {
    fill(descriptor.coll_api);
    descriptor.coll_api.root = call.peer;
  }
  const int wanted = p2p ? abi::kP2pApi | kAfterP2pApi : abi::kCollApi | kAfterCollApi;
  if ((api_thread.mask & wanted) != 0) {
    plugin_->start(call.communicator->context, p2p ? &api_thread.p2p_api : &api_thread.coll_api,
                   descriptor);
  }
}

Task Model::append(const Call& call) {
  if (api_thread.group_of_user) {  // NCCL makes a group around each call
    ++api_thread.depth;
    if (api_thread.profiled_depth > 0) ++api_thread.profiled_depth;
  }
  api_thread.mask = mask();
  if (plugin_ != nullptr) {
    if (any_of(api_thread.mask, abi::kGroupApi | kAfterGroupApi) &&
        api_thread.profiled_depth == 0) {
      abi::DescriptorV7 descriptor{};
      descriptor.type = abi::kGroupApi;
      descriptor.rank = has_ranks_in_calls(release_) ? call.communicator->rank : 0;
      descriptor.group_api = {call.captured, api_thread.depth};
      plugin_->start(call.communicator->context, &api_thread.group_api, descriptor);
      api_thread.profiled_depth = api_thread.depth;
      api_thread.state = ApiThread::State::started;
    }
    if (api_thread.state == ApiThread::State::started) {
      api_thread.state = ApiThread::State::start_stopped;
      if (api_thread.group_api != nullptr) {
        plugin_->record(api_thread.group_api, abi::kGroupStartApiStop, nullptr);
      }
    }
    start_api(call);
  }
  Task task = task_of(call);
  task.mask = api_thread.mask;
  task.group_api = api_thread.group_api;
  task.api = call.point_to_point() ? api_thread.p2p_api : api_thread.coll_api;
  if (plugin_ != nullptr && task.api != nullptr) {
    plugin_->stop(task.api);
    // Only the one of transfers is cleared: a collective call under a clear mask stops the last
    // one's handle again.
    if (call.point_to_point()) api_thread.p2p_api = nullptr;
  }
  if (api_thread.group_of_user) {
    --api_thread.depth;
    if (api_thread.profiled_depth > 0) --api_thread.profiled_depth;
  }
  return task;
}

}  // namespace ringmain::nccl_conformance
