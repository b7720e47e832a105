// What in a program's use of CUDA deserves a look? Four causes, each with the step, the call and
// the thread that it is about.
//
// A field that does not apply to the kind reads 0, but for stream (kNoStream), device and step
// (-1).
#pragma once
#include <cstdint>

#include "../bus/event.hpp"

#include "cuda.hpp"

namespace ringmain::cuda {

constexpr std::int64_t kNoStep = -1;

enum class AlarmKind : std::uint8_t {
  synchronization,  // a thread waits for the GPU inside a training step
  leaked_events,    // made and not deleted by the end: the first of `count`
  leaked_streams,
  growth,  // live device memory rose from step to step: `bytes` since before the first rise
  race     // two streams use one buffer, one of them writes, and nothing orders them
};

/// `cuda.alarm`. Of one cause the first is published at once, with `count` 1. At the end a cause
/// that came again is published once more, with how often it came in all.
struct Alarm {
  std::uint64_t address = 0;  // the event, or the buffer's first byte that both touch
  std::uint64_t bytes = 0;    // growth: of live memory; race: that both touch
  std::uint64_t stream = kNoStream;
  std::uint64_t other_stream = kNoStream;  // race: of the earlier use
  std::int64_t step = kNoStep;             // in which it was called; kNoStep: in none
  std::int64_t other_step = kNoStep;
  std::uint64_t count = 0;
  std::uint32_t generation = 0;
  std::int32_t device = kNoDevice;
  std::uint32_t context = 0;
  std::int32_t thread = 0;
  std::int32_t other_thread = 0;
  Name api;        // the call, or what uses the buffer
  Name other_api;  // race: of the earlier use
  Name phase;      // of the step; "": the step itself, or none
  AlarmKind kind = AlarmKind::synchronization;
};
constexpr auto describe(EventOf<Alarm>) {
  using E = Alarm;
  return event("cuda.alarm",
               field<&E::kind>("kind", "synchronization,leaked_events,leaked_streams,growth,race"),
               field<&E::count>("count", Unit::count), field<&E::step>("step", Unit::id),
               field<&E::phase>("step_phase"), field<&E::api>("api"),
               field<&E::thread>("thread", Unit::id), field<&E::stream>("stream", Unit::stream),
               field<&E::address>("address", Unit::address), field<&E::bytes>("bytes", Unit::bytes),
               field<&E::generation>("generation", Unit::count),
               field<&E::device>("device", Unit::device), field<&E::context>("context", Unit::id),
               field<&E::other_step>("other_step"), field<&E::other_api>("other_api"),
               field<&E::other_thread>("other_thread", Unit::id),
               field<&E::other_stream>("other_stream", Unit::stream));
}

}  // namespace ringmain::cuda
