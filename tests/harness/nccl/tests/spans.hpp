// What should a span's event say, and what does it say? Both as one line of text: the handle by
// which the plugin took it, its parent's, its communicator, and what NCCL said of it.
#pragma once
#include <string>
#include <vector>

#include "bus/bus.hpp"

#include "events/nccl.hpp"

#include "tests/harness/nccl/call_log.hpp"

namespace ringmain::nccl_conformance {

/// The lines of what was told to a plugin of this ABI version.
std::vector<std::string> lines_of(const CallLog& log, int version);

// The line of an event.
std::string line_of(const nccl::Api& event);
std::string line_of(const nccl::Operation& event);
std::string line_of(const nccl::Group& event);
std::string line_of(const nccl::Launch& event);
std::string line_of(const nccl::ProxyOp& event);
std::string line_of(const nccl::ProxyStep& event);
std::string line_of(const nccl::ProxyControl& event);
std::string line_of(const nccl::KernelChannel& event);
std::string line_of(const nccl::KernelPhase& event);
std::string line_of(const nccl::CopyEngine& event);
std::string line_of(const nccl::Net& event);

}  // namespace ringmain::nccl_conformance
