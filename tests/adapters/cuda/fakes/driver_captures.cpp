// The fake libcuda.so.1: which streams there are beside those that a program makes, and who may ask
// what while a stream captures.
#include <functional>
#include <thread>

#include "tests/adapters/cuda/fakes/driver_world.hpp"

namespace ringmain::fake {
namespace {
thread_local CUstreamCaptureMode own_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
}

CUstreamCaptureMode& capture_mode() {
  return own_mode;
}

std::uint64_t default_stream(std::uint64_t stream) {
  constexpr std::uint64_t kPerThread = std::uint64_t{1} << 63;
  if (stream != 2) return 1;
  return kPerThread | std::hash<std::thread::id>{}(std::this_thread::get_id());
}

std::shared_ptr<Work> work_of(std::uint64_t stream) {
  if (stream > 2) {
    const Stream* own = world().streams.find(stream);
    return own == nullptr ? nullptr : own->work;
  }
  std::shared_ptr<Work>& work = world().default_works[default_stream(stream)];
  const Context* const now = current_context();
  if (work == nullptr || work->context != now) {
    work = std::make_shared<Work>();
    work->context = now;
  }
  return work;
}

bool spoils_captures() {
  bool spoils = false;
  world().streams.for_each([&](Stream& stream) {
    if (!stream.capturing || stream.mode == CU_STREAM_CAPTURE_MODE_RELAXED) return;
    const bool own = stream.by == std::this_thread::get_id();
    const bool forbidden = own ? own_mode != CU_STREAM_CAPTURE_MODE_RELAXED
                               : own_mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
                                     stream.mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
    if (!forbidden) return;
    stream.invalidated = true;
    spoils = true;
  });
  return spoils;
}

}  // namespace ringmain::fake
