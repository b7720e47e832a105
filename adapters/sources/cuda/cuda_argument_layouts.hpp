// Where in CUPTI's parameter structs does each argument lie? The beginnings of those structs, as
// far as they are read, for each CallShape; without NVIDIA's headers.
//
// tests/adapters/cuda/arguments_test.cpp fills NVIDIA's own structs, where they are, and reads them
// by these. Pointers to where a call puts its answer are addresses here: they are the caller's, and
// may be null.
#pragma once
#include <cstddef>
#include <cstdint>

namespace ringmain::cuda::layout {

using Address = std::uint64_t;  // also a handle, and a pointer in the caller's memory

struct Handle {
  Address handle;
};
struct Handle32 {
  std::uint32_t handle;
};
struct EventMade {
  Address out;
  std::uint32_t flags;
};
struct StreamMade {
  Address out;
};
struct StreamFlags {
  Address out;
  std::uint32_t flags;
};
struct StreamPriority {
  Address out;
  std::uint32_t flags;
  std::int32_t priority;
};
struct StreamOfContext {
  Address out, context;
  std::uint32_t flags;
  std::int32_t priority;
};
struct Record {
  Address event, stream;
};
struct RecordFlags {
  Address event, stream;
  std::uint32_t flags;
};
struct Wait {
  Address stream, event;
  std::uint32_t flags;
};
struct ContextEvent {
  Address context, event;
};
struct Memory {
  Address out;
  std::uint64_t bytes;
};
struct Memory32 {
  Address out;
  std::uint32_t bytes;
};
struct MemoryOnStream {
  Address out;
  std::uint64_t bytes;
  Address stream;
};
struct MemoryFromPool {
  Address out;
  std::uint64_t bytes;
  Address pool, stream;
};
struct MemoryBuffer {
  Address out, mapped, described;
};
struct Range {
  Address address;
  std::uint64_t bytes;
};
struct FreeOnStream {
  Address address, stream;
};
struct Pitched {
  Address out, pitch;
  std::uint64_t width, height;
};
struct Pitched32 {
  Address out, pitch;
  std::uint32_t width, height;
};
struct Extent {
  std::uint64_t width, height, depth;
};
struct Pitched3d {
  Address out;
  Extent extent;
};
struct Array {
  Address out, channels;
  std::uint64_t width, height;
};
struct Array3d {
  Address out, channels;
  Extent extent;
};
struct ArrayDescribed {
  Address out, described;
};
struct ContextMade {
  Address out;
  std::uint32_t flags;
  std::int32_t device;
};
struct ContextAffine {
  Address out, affinities;
  std::int32_t count;
  std::uint32_t flags;
  std::int32_t device;
};
struct ContextParametrized {
  Address out, parameters;
  std::uint32_t flags;
  std::int32_t device;
};
struct ContextGreen {
  Address out, resources;
  std::int32_t device;
  std::uint32_t flags;
};
struct Device {
  std::int32_t device;
};
struct CaptureInto {
  Address stream, graph;
};
struct RecaptureInto {
  Address stream;
  std::int32_t mode;
  Address graph;
};
struct CaptureEnd {
  Address stream, out;
};
struct GraphLaunch {
  Address graph, stream;
};

// What arguments point at.

/// CUDA_EXTERNAL_MEMORY_BUFFER_DESC, cudaExternalMemoryBufferDesc.
struct BufferDescription {
  std::uint64_t offset, bytes;
};
/// cudaPitchedPtr, which is an answer.
struct PitchedPointer {
  Address address;
  std::uint64_t pitch;
};
/// cudaChannelFormatDesc: bits of each channel.
struct ChannelBits {
  std::int32_t x, y, z, w;
};
/// CUDA_ARRAY_DESCRIPTOR.
struct ArrayDescription {
  std::uint64_t width, height;
  std::uint32_t format, channels;
};
/// CUDA_ARRAY3D_DESCRIPTOR.
struct Array3dDescription {
  std::uint64_t width, height, depth;
  std::uint32_t format, channels;
};

}  // namespace ringmain::cuda::layout
