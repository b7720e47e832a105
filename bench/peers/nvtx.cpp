// Peer: NVTX marks while no tool has asked for them: a load of a pointer and a branch in the header
// that the program was built with. A tool is chosen when the process makes its first mark, and
// never after.
#include <cstdlib>

#include <nvtx3/nvToolsExt.h>

#include "bench/repetition.hpp"
#include "bench/time_each.hpp"

namespace ringmain::bench {
namespace {

bool has_tool(Repetition& repetition) {
  nvtxInitialize(nullptr);
  if (std::getenv("NVTX_INJECTION64_PATH") == nullptr) return false;
  repetition.fail("NVTX_INJECTION64_PATH names a tool, so marks are heard; unset it");
  return true;
}

void mark(Repetition& repetition) {
  if (has_tool(repetition)) return;
  repetition.value(time_each([] {
    nvtxMarkA("event");
    benchmark::ClobberMemory();
  }));
}

/// With a number, as an event has: its attributes are built whether or not somebody hears.
void mark_with_payload(Repetition& repetition) {
  if (has_tool(repetition)) return;
  std::uint64_t number = 0;
  repetition.value(time_each([&number] {
    nvtxEventAttributes_t attributes{};
    attributes.version = NVTX_VERSION;
    attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
    attributes.message.ascii = "event";
    attributes.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
    attributes.payload.ullValue = ++number;
    nvtxMarkEx(&attributes);
    benchmark::ClobberMemory();
  }));
}

[[maybe_unused]] const bool kAdded = add("unheard", "nvtx_mark", {}, mark) &&
                                     add("unheard", "nvtx_mark_payload", {}, mark_with_payload);

}  // namespace
}  // namespace ringmain::bench
