// What else of a CUDA program must a consumer know who follows its handles? When streams and
// contexts end, and what is recorded into graphs instead of being done.
//
// The fields that say which call it was are those of cuda.hpp.
#pragma once
#include <cstdint>

#include "cuda.hpp"

namespace ringmain::cuda {

/// `cuda.stream_deletion`: published before CUDA takes the handle back.
struct StreamDeletion {
  std::uint64_t stream = kNoStream;
  std::uint64_t correlation = 0;
  std::int64_t duration_ns = 0;
  std::uint32_t generation = 0;
  std::int32_t device = kNoDevice;
  std::int32_t result = kNoResult;
  std::uint32_t context = 0;
  std::int32_t thread = 0;
  Name api;
  std::uint16_t cbid = 0;
  Phase phase = Phase::instant;
  Layer layer = Layer::unknown;
};

enum class ContextChange : std::uint8_t {
  made,
  destroyed,  // with it go all handles and all memory of the context, without further events
  reset       // of the device, with all its contexts
};
/// `cuda.context`.
struct ContextEvent {
  std::uint64_t handle = 0;  // CUcontext; 0: not known
  std::uint64_t correlation = 0;
  std::int64_t duration_ns = 0;
  std::int32_t device = kNoDevice;
  std::int32_t result = kNoResult;
  std::uint32_t context = 0;
  std::int32_t thread = 0;
  Name api;
  std::uint16_t cbid = 0;
  Phase phase = Phase::instant;
  Layer layer = Layer::unknown;
  ContextChange change = ContextChange::made;
};

enum class CaptureStep : std::uint8_t {
  begin,        // from here on calls on the stream become nodes of a graph
  end,          // graph: what was captured
  graph_launch  // graph: the executable one; its nodes are not told one by one
};
/// `cuda.capture`.
struct Capture {
  std::uint64_t stream = kNoStream;
  std::uint64_t graph = 0;  // cudaGraph_t, cudaGraphExec_t at a launch; 0: none yet
  std::uint64_t correlation = 0;
  std::int64_t duration_ns = 0;
  std::int32_t device = kNoDevice;
  std::int32_t result = kNoResult;
  std::uint32_t context = 0;
  std::int32_t thread = 0;
  Name api;
  std::uint16_t cbid = 0;
  Phase phase = Phase::instant;
  Layer layer = Layer::unknown;
  CaptureStep step = CaptureStep::begin;
};

constexpr auto describe(EventOf<StreamDeletion>) {
  using E = StreamDeletion;
  return detail::call<E>("cuda.stream_deletion", field<&E::stream>("stream", Unit::stream),
                         field<&E::generation>("generation", Unit::count));
}
constexpr auto describe(EventOf<ContextEvent>) {
  using E = ContextEvent;
  return detail::call<E>("cuda.context", field<&E::change>("change", "made,destroyed,reset"),
                         field<&E::handle>("handle", Unit::address));
}
constexpr auto describe(EventOf<Capture>) {
  using E = Capture;
  return detail::call<E>("cuda.capture", field<&E::step>("step", "begin,end,graph_launch"),
                         field<&E::stream>("stream", Unit::stream),
                         field<&E::graph>("graph", Unit::address));
}

}  // namespace ringmain::cuda
