#include "tests/harness/nccl/tests/spans.hpp"

#include <cinttypes>
#include <cstdio>
#include <map>
#include <set>

namespace ringmain::nccl_conformance {
namespace {

namespace abi = ringmain::nccl::abi;

template <class... Arguments>
std::string text(const char* format, Arguments... arguments) {
  char line[400];
  (void)std::snprintf(line, sizeof(line), format, arguments...);
  return line;
}
/// As events have it: without what tells the table's handles from others.
std::uint64_t bits(const void* handle) {
  return reinterpret_cast<std::uintptr_t>(handle) & ((std::uint64_t{1} << 46) - 1);
}
std::string of(const Name& name) {
  return std::string(name.view());
}

/// What every line begins with.
std::string head(const char* kind, std::uint64_t id, std::uint64_t parent,
                 std::uint64_t communicator, int rank, bool stopped) {
  return text("%s %016" PRIx64 " under %016" PRIx64 " in %" PRIx64 "/%d %s", kind, id, parent,
              communicator, rank, stopped ? "stopped" : "given up");
}
template <class E>
std::string head(const char* kind, const E& event) {
  return head(kind, event.id, event.parent, event.communicator, event.rank,
              event.ending == nccl::Ending::stopped);
}

std::string api_line(std::uint64_t count, const std::string& func, const std::string& dtype,
                     std::uint64_t stream, bool captured, std::uint64_t tag) {
  return text(" %s %" PRIu64 " %s stream %" PRIx64 "%s tag %" PRIu64, func.c_str(), count,
              dtype.c_str(), stream, captured ? " captured" : "", tag);
}
std::string operation_line(const std::string& func, std::uint64_t sequence, std::uint64_t count,
                           const std::string& dtype, int root_or_peer, unsigned channels,
                           std::uint64_t plan, std::uint64_t tag) {
  return text(" %s #%" PRIu64 " %" PRIu64 " %s %d over %u plan %" PRIx64 " tag %" PRIu64,
              func.c_str(), sequence, count, dtype.c_str(), root_or_peer, channels, plan, tag);
}

/// What is known of a begin besides its descriptor.
struct Context {
  const CallLog& log;
  int version;
  const std::set<void*>& stopped;
  const std::map<void*, const CallLog::Begin*>& begins;
  const std::set<void*>& sending;  // proxy operations of which a step sends
};

/// Whose is it? Steps and requests come with the context of the process that asked for the
/// operation, so it is what they belong to that says it.
const CallLog::Begin& owner_of(const CallLog::Begin& begin, const Context& in) {
  const CallLog::Begin* owner = &begin;
  while ((owner->descriptor.type & (abi::kProxyStep | abi::kNetPlugin)) != 0) {
    const auto above = in.begins.find(owner->descriptor.parent);
    if (above == in.begins.end()) break;
    owner = above->second;
  }
  return *owner;
}

std::string told_head(const char* kind, const CallLog::Begin& begin, const Context& in,
                      std::uint64_t parent) {
  const CallLog::Begin& owner = owner_of(begin, in);
  const auto who = in.log.communicators().find(owner.context);
  // Of a step whose operation was not taken nothing but its own rank is known.
  const bool alone = (owner.descriptor.type & (abi::kProxyStep | abi::kNetPlugin)) != 0;
  const bool known = who != in.log.communicators().end() && !owner.foreign && !alone;
  return head(kind, bits(begin.handle), begin.foreign ? 0 : parent, known ? who->second.id : 0,
              known ? who->second.rank : begin.descriptor.rank, in.stopped.contains(begin.handle));
}

std::string told_operation(const CallLog::Begin& begin, const Context& in) {
  const abi::DescriptorV7& d = begin.descriptor;
  const bool p2p = d.type == abi::kP2p;
  const bool old = in.version == 4;
  const std::uint64_t group = bits(p2p ? d.p2p.parent_group : d.coll.parent_group);
  const std::uint64_t tag = in.version < 7 ? 0 : p2p ? d.p2p.user_tag : d.coll.user_tag;
  std::string line = told_head("operation", begin, in, old ? group : bits(d.parent));
  if (p2p) {
    return line + operation_line(d.p2p.func, 0, d.p2p.count, d.p2p.datatype, d.p2p.peer,
                                 old ? 0 : d.p2p.n_channels, group, tag);
  }
  return line + operation_line(d.coll.func, d.coll.seq_number, d.coll.count, d.coll.datatype,
                               d.coll.root, d.coll.n_channels, group, tag);
}

std::string told_api(const CallLog::Begin& begin, const Context& in) {
  const abi::DescriptorV7& d = begin.descriptor;
  std::string line = told_head("api", begin, in, bits(d.parent));
  const bool newest = in.version == 7;
  if (d.type == abi::kGroupApi) {
    return line + text(" group depth %d%s", d.group_api.group_depth,
                       d.group_api.graph_captured ? " captured" : "");
  }
  const auto of_call = [&](const auto& part) {
    return api_line(part.count, part.func, part.datatype, bits(part.stream), part.graph_captured,
                    newest ? part.user_tag : 0);
  };
  return line + (d.type == abi::kCollApi ? of_call(d.coll_api) : of_call(d.p2p_api));
}

std::string told_line(const CallLog::Begin& begin, const Context& in) {
  const abi::DescriptorV7& d = begin.descriptor;
  const std::uint64_t parent = bits(d.parent);
  switch (d.type) {
    case abi::kGroupApi:
    case abi::kCollApi:
    case abi::kP2pApi:
      return told_api(begin, in);
    case abi::kColl:
    case abi::kP2p:
      return told_operation(begin, in);
    case abi::kGroup:
      return told_head("group", begin, in, parent);
    case abi::kKernelLaunch:
      return told_head("launch", begin, in, parent) +
             text(" %" PRIx64, bits(d.kernel_launch.stream));
    case abi::kProxyOp:
      return told_head("proxy_op", begin, in, parent) +
             text(" channel %u peer %d steps %d send %d detached %d", d.proxy_op.channel_id,
                  d.proxy_op.peer, d.proxy_op.n_steps,
                  d.proxy_op.is_send != 0 || in.sending.contains(begin.handle), begin.foreign);
    case abi::kProxyStep:
      return told_head("proxy_step", begin, in, parent) + text(" %d", d.proxy_step.step);
    case abi::kProxyCtrl:
      return told_head("proxy_control", begin, in, parent);
    case abi::kKernelCh:
      return told_head("kernel_channel", begin, in, parent) +
             text(" channel %u at %" PRIu64, d.kernel_ch.channel_id, d.kernel_ch.p_timer);
    case abi::kKernelPhase:
      return told_head("kernel_phase", begin, in, parent) +
             text(" %u %s channel %u at %" PRIu64, d.kernel_phase.phase_id,
                  d.kernel_phase.phase_name, d.kernel_phase.channel_id, d.kernel_phase.p_timer);
    case abi::kNetPlugin:
      return told_head("net", begin, in, parent);
    default:
      return told_head("copy_engine", begin, in, parent);
  }
}

}  // namespace

std::vector<std::string> lines_of(const CallLog& log, int version) {
  const std::vector<CallLog::Begin> begins = log.begins();
  const std::vector<void*> ends = log.ends();
  const std::set<void*> stopped(ends.begin(), ends.end());
  std::map<void*, const CallLog::Begin*> by_handle;
  for (const CallLog::Begin& begin : begins) by_handle[begin.handle] = &begin;
  std::set<void*> sending;
  for (void* const step : log.sends()) {
    if (const auto found = by_handle.find(step); found != by_handle.end())
      sending.insert(found->second->descriptor.parent);
  }
  const Context in{log, version, stopped, by_handle, sending};
  std::vector<std::string> lines;
  for (const CallLog::Begin& begin : begins) {
    if (begin.handle != nullptr) lines.push_back(told_line(begin, in));
  }
  return lines;
}

std::string line_of(const nccl::Api& event) {
  if (event.kind == nccl::ApiKind::group) {
    return head("api", event) +
           text(" group depth %d%s", event.depth, event.captured ? " captured" : "");
  }
  return head("api", event) + api_line(event.count, of(event.func), of(event.dtype), event.stream,
                                       event.captured, event.user_tag);
}
std::string line_of(const nccl::Operation& event) {
  return head("operation", event) + operation_line(of(event.func), event.sequence, event.count,
                                                   of(event.dtype),
                                                   event.point_to_point ? event.peer : event.root,
                                                   event.nccl_channels, event.plan, event.user_tag);
}
std::string line_of(const nccl::Group& event) {
  return head("group", event);
}
std::string line_of(const nccl::Launch& event) {
  return head("launch", event) + text(" %" PRIx64, event.stream);
}
std::string line_of(const nccl::ProxyOp& event) {
  return head("proxy_op", event) + text(" channel %u peer %d steps %u send %d detached %d",
                                        event.nccl_channel, event.peer, event.steps, event.send,
                                        event.detached);
}
std::string line_of(const nccl::ProxyStep& event) {
  return head("proxy_step", event) + text(" %d", event.step);
}
std::string line_of(const nccl::ProxyControl& event) {
  return head("proxy_control", event);
}
std::string line_of(const nccl::KernelChannel& event) {
  return head("kernel_channel", event) +
         text(" channel %u at %" PRIu64, event.nccl_channel, event.gpu_began);
}
std::string line_of(const nccl::KernelPhase& event) {
  return head("kernel_phase", event) + text(" %u %s channel %u at %" PRIu64, event.phase,
                                            std::string(event.name.view()).c_str(),
                                            event.nccl_channel, event.gpu_began);
}
std::string line_of(const nccl::CopyEngine& event) {
  return head("copy_engine", event);
}
std::string line_of(const nccl::Net& event) {
  return head("net", event);
}

}  // namespace ringmain::nccl_conformance
