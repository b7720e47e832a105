// How is what CUPTI said of a program written down? A line for each callback, columns divided by
// spaces; recorder.cpp writes it, replay_recording.cpp reads it.
//
//   site         enter, exit, or notice (of domains 3, resources, and 4, synchronizations)
//   thread       1, 2, …, as they first appear
//   depth        1: called by the program; 2: within that; 0: an exit whose entry was not heard
//   domain cbid  CUPTI's numbers
//   name         what was called, as CUPTI names it; - of notices
//   result       at an exit
//   handle       CLASS:NUMBER, or 0; - where it has none. Numbers stand for addresses, as they
//   first appear stream       0 default, 1 legacy, 2 of each thread, stream:NUMBER; - where it has
//   none bytes flags priority correlation context   as they were
//
// Lines that begin with # say what it was recorded with.
#pragma once
#include "events/terms/cuda_call_table.hpp"

#include "adapters/sources/cuda/cuda_arguments.hpp"

namespace gpu {

constexpr const char* kFirstLine = "# recording of CUDA's callbacks, 1";
enum Site : std::uint32_t { kEnter, kExit, kNotice };
constexpr const char* kSites[] = {"enter", "exit", "notice"};
constexpr const char* kClasses[] = {"event", "stream", "memory", "host",
                                    "array", "graph",  "context"};

/// What its handle is, of which addresses are unlike those of the others. "": it has none.
inline const char* class_of(const ringmain::cuda::CallRow& row) {
  using ringmain::cuda::CallKind;
  using ringmain::cuda::MemoryClass;
  switch (row.call.kind) {
    case CallKind::event_creation:
    case CallKind::event_deletion:
    case CallKind::event_record:
    case CallKind::event_wait:
    case CallKind::event_synchronization:
      return "event";
    case CallKind::stream_creation:
    case CallKind::stream_deletion:
    case CallKind::stream_synchronization:
      return "stream";
    case CallKind::memory_allocation:
    case CallKind::memory_deallocation:
      if (row.call.memory == MemoryClass::array) return "array";
      return row.call.memory == MemoryClass::host_pinned ||
                     row.call.memory == MemoryClass::host_registered
                 ? "host"
                 : "memory";
    case CallKind::context:
      return "context";
    case CallKind::capture:
      return "graph";
    default:
      return "";
  }
}

}  // namespace gpu
