// Handles that are dead, parents that are missing, states again and again, types and states that no
// version has: each by itself, for each type that the plugin's version knows.
#include <unistd.h>

#include "tests/harness/nccl/play.hpp"
#include "tests/harness/nccl/rules.hpp"
#include "tests/harness/nccl/scenarios.hpp"

namespace ringmain::nccl_conformance {
namespace {

/// A descriptor of a type, with texts where it has any.
abi::DescriptorV7 some(std::uint64_t type, void* parent) {
  abi::DescriptorV7 made{};
  made.type = type;
  made.parent = parent;
  const auto texts = [](auto& part) {
    part.func = "AllReduce";
    part.datatype = "ncclFloat32";
  };
  if (type == abi::kCollApi) texts(made.coll_api);
  if (type == abi::kP2pApi) texts(made.p2p_api);
  if (type == abi::kP2p) texts(made.p2p);
  if (type == abi::kColl) {
    texts(made.coll);
    made.coll.algo = "RING";
    made.coll.proto = "LL";
    made.coll.parent_group = parent;
  }
  if (type == abi::kCeColl) {
    texts(made.ce_coll);
    made.ce_coll.sync_strategy = "UC";
  }
  if (type == abi::kKernelPhase) made.kernel_phase.phase_name = "compute";
  if (type == abi::kProxyOp) made.proxy_op.pid = ::getpid();
  return made;
}

int state_of(std::uint64_t type) {
  switch (type) {
    case abi::kGroupApi:
      return abi::kGroupStartApiStop;
    case abi::kProxyOp:
      return abi::kProxyOpInProgress;
    case abi::kProxyStep:
      return abi::kSendPeerWait;
    case abi::kProxyCtrl:
      return abi::kCtrlAppendEnd;
    case abi::kKernelCh:
      return abi::kKernelChStop;
    case abi::kNetPlugin:
      return abi::kNetPluginUpdate;
    default:
      return abi::kKernelPhaseStop;
  }
}

void* begin(Stage& stage, PluginView& plugin, void* context, std::uint64_t type, void* parent,
            const char* rule) {
  const Driving driving(stage, rule);
  void* handle = nullptr;
  abi::DescriptorV7 descriptor = some(type, parent);
  plugin.start(context, &handle, descriptor);
  return handle;
}

/// A type's event with a parent, its states many times, its end, and then everything once more.
void live_and_after(Stage& stage, PluginView& plugin, void* context, std::uint64_t type) {
  void* const parent = begin(stage, plugin, context, abi::kGroup, nullptr, nullptr);
  void* const child = begin(stage, plugin, context, type, parent, nullptr);
  void* const orphan = begin(stage, plugin, context, type, nullptr, rules::kNullParent);
  const abi::StateArgs args{};
  const bool api = type == abi::kGroupApi;
  for (void* const handle : {child, orphan}) {
    if (handle == nullptr) continue;
    const Driving driving(stage, api ? rules::kNullArgs : rules::kRepeated);
    for (int i = 0; i < 100; ++i) plugin.record(handle, state_of(type), api ? nullptr : &args);
  }
  for (void* const handle : {parent, child, orphan}) {
    if (handle != nullptr) plugin.stop(handle);
  }
  for (void* const handle : {parent, child, orphan}) {
    if (handle == nullptr) continue;
    {
      const Driving driving(stage, rules::kRecordDead);
      plugin.record(handle, state_of(type), api ? nullptr : &args);
    }
    const Driving driving(stage, rules::kStopDead);
    plugin.stop(handle);
  }
  if (parent == nullptr) return;
  void* const late = begin(stage, plugin, context, type, parent, rules::kDeadParent);
  if (late != nullptr) plugin.stop(late);
}

}  // namespace

void dead_and_missing(Stage& stage) {
  Model* const model = stage.model();
  Communicator communicator = stage.communicator();
  stage.open(communicator);
  if (model == nullptr || !model->loaded()) return;
  PluginView& plugin = model->plugin();
  for (std::uint64_t type = 1; type <= abi::all_types(plugin.version()); type <<= 1) {
    for (int i = 0; i < 3; ++i) live_and_after(stage, plugin, communicator.context, type);
  }
  // A descriptor that somebody kept is looked at no later than here.
  const Driving driving(stage, rules::kKept);
  stage.front.finalize(communicator);
}

void unknown_words(Stage& stage) {
  Model* const model = stage.model();
  Communicator communicator = stage.communicator();
  stage.open(communicator);
  if (model == nullptr || !model->loaded()) return;
  PluginView& plugin = model->plugin();
  // A front end of the same version with further types, as RCCL has one.
  for (const std::uint64_t type : {std::uint64_t{1} << 20, std::uint64_t{1} << 16}) {
    if (plugin.version() < 7) break;  // NCCL's own conversions keep them back
    void* const handle =
        begin(stage, plugin, communicator.context, type, nullptr, rules::kUnknownType);
    if (handle != nullptr) plugin.stop(handle);
  }
  void* const known = begin(stage, plugin, communicator.context, abi::kProxyOp, nullptr, nullptr);
  if (known != nullptr) {
    const Driving driving(stage, rules::kUnknownState);
    const abi::StateArgs args{};
    for (const int state : {0, 7, 12, 18, 32, 99}) plugin.record(known, state, &args);
    plugin.stop(known);
  }
  const Driving driving(stage, rules::kUnknownType);
  stage.front.finalize(communicator);
}

}  // namespace ringmain::nccl_conformance
