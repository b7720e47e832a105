// How do the arguments of a call of CUDA's lie in the struct that CUPTI hands over? Calls whose
// arguments lie alike have one shape; adapters/sources/cuda/cuda_arguments.hpp reads them.
//
// "@8" is the place of an argument in bytes, on 64-bit Linux; "out" a pointer to where the call
// puts its answer.
#pragma once
#include <cstdint>

namespace ringmain::cuda {

enum class CallShape : std::uint8_t {
  none,    // no argument, so that there is no struct either
  unread,  // arguments that no header describes

  handle,      // the handle or pointer @0
  handle_32,   // the same with 32 bits: the driver's calls from before CUDA 3.2
  out_handle,  // out @0
  stream,      // the stream @0

  event_made,         // out @0, flags @8
  stream_made,        // out @0
  stream_flags,       // out @0, flags @8
  stream_priority,    // out @0, flags @8, priority @12
  stream_of_context,  // out @0, the context @8, flags @16, priority @20

  record,         // the event @0, the stream @8
  record_flags,   // and flags @16
  wait,           // the stream @0, the event @8, flags @16
  context_event,  // a context @0, the event @8: recorded or waited for on all of its streams

  memory,            // out @0, bytes @8
  memory_32,         // both with 32 bits, but for the pointer `out` itself
  host_memory_32,    // out @0, 32 bits of bytes @8
  memory_on_stream,  // out @0, bytes @8, the stream @16
  memory_from_pool,  // out @0, bytes @8, a pool @16, the stream @24
  memory_buffer,     // out @0, what is mapped @8, a pointer to {offset, bytes} @16
  range,             // the pointer @0, bytes @8
  free_on_stream,    // the pointer @0, the stream @8

  pitched,             // out @0, out of the pitch @8, width in bytes @16, height @24
  pitched_32,          // the same with 32 bits: width @16, height @20
  pitched_3d,          // out {pointer, pitch, …} @0, {width in bytes, height, depth} @8
  array,               // out @0, a pointer to {bits of each channel} @8, width @16, height @24
  array_3d,            // out @0, the same pointer @8, {width, height, depth} @16
  array_described,     // out @0, a pointer to {width, height, format, channels} @8
  array_3d_described,  // out @0, a pointer to {width, height, depth, format, channels} @8

  context_made,          // out @0, flags @8, the device @12
  context_affine,        // out @0, two arguments of the affinity, flags @20, the device @24
  context_parametrized,  // out @0, a pointer @8, flags @16, the device @20
  context_green,         // out @0, its resources @8, the device @16, flags @20
  device,                // the device @0

  capture_into,    // the stream @0, the graph @8
  recapture_into,  // the stream @0, a mode @8, the graph @16
  capture_end,     // the stream @0, out of the graph @8
  graph_launch     // the executable graph @0, the stream @8
};

}  // namespace ringmain::cuda
