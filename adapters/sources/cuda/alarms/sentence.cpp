// How is an alarm said in words?
#include <cstdint>
#include <cstdio>
#include <string>

#include "adapters/sources/cuda/cuda_alarms.hpp"

namespace ringmain::cuda {
namespace {

std::string number(std::uint64_t value) {
  return std::to_string(value);
}
std::string address_of(std::uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}
std::string stream_of(std::uint64_t stream) {
  if (stream == 0 || stream == 1) return "the legacy default stream";
  if (stream == 2) return "the thread's default stream";
  return "stream " + address_of(stream);
}
std::string step_of(std::int64_t step, std::string_view phase = {}) {
  if (step == kNoStep) return "outside of steps";
  std::string made = "in step " + std::to_string(step);
  if (!phase.empty()) made += " (" + std::string(phase) + ")";
  return made;
}
std::string named(Name name) {
  return name == Name{} ? "a use" : std::string(name.view());
}
std::string bytes_of(std::uint64_t bytes) {
  return number(bytes) + (bytes == 1 ? " byte" : " bytes");
}

std::string synchronization(const Alarm& alarm) {
  std::string made = named(alarm.api) + " waits for ";
  if (alarm.address != 0) {
    made += "event " + address_of(alarm.address);
  } else {
    made += alarm.stream == kNoStream ? "the whole device" : stream_of(alarm.stream);
  }
  made += " " + step_of(alarm.step, alarm.phase.view());
  return made + ", thread " + std::to_string(alarm.thread);
}

std::string leak(const Alarm& alarm, const char* one, const char* many, std::uint64_t handle) {
  std::string made = number(alarm.count) + " " + (alarm.count == 1 ? one : many) + " of " +
                     named(alarm.api) + (alarm.count == 1 ? " was" : " were") + " never deleted";
  made += (alarm.count == 1 ? ": " : ": the first is ") + address_of(handle);
  return made + ", made " + step_of(alarm.step) + " by thread " + std::to_string(alarm.thread);
}

std::string growth(const Alarm& alarm) {
  return "live memory has grown by " + bytes_of(alarm.bytes) + " up to step " +
         std::to_string(alarm.step) + ", in each of the last steps; the largest of it is by " +
         named(alarm.api) + ", thread " + std::to_string(alarm.thread);
}

std::string side(Name by, std::uint64_t stream, std::int64_t step, std::int32_t thread) {
  return named(by) + " on " + stream_of(stream) + " (" + step_of(step) + ", thread " +
         std::to_string(thread) + ")";
}
std::string race(const Alarm& alarm) {
  return "nothing orders " + side(alarm.api, alarm.stream, alarm.step, alarm.thread) + " after " +
         side(alarm.other_api, alarm.other_stream, alarm.other_step, alarm.other_thread) +
         "; both use " + bytes_of(alarm.bytes) + " at " + address_of(alarm.address);
}

std::string words_of(const Alarm& alarm) {
  switch (alarm.kind) {
    case AlarmKind::synchronization:
      return synchronization(alarm);
    case AlarmKind::leaked_events:
      return leak(alarm, "event", "events", alarm.address);
    case AlarmKind::leaked_streams:
      return leak(alarm, "stream", "streams", alarm.stream);
    case AlarmKind::growth:
      return growth(alarm);
    case AlarmKind::race:
      return race(alarm);
  }
  return "an alarm of a kind that is not known here";
}

}  // namespace

std::string sentence_of(const Alarm& alarm) {
  const bool leaked =
      alarm.kind == AlarmKind::leaked_events || alarm.kind == AlarmKind::leaked_streams;
  std::string made = words_of(alarm);
  if (!leaked && alarm.count > 1) made += "; " + number(alarm.count) + " times in all";
  return made;
}

}  // namespace ringmain::cuda
