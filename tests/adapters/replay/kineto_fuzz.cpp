// Is there an input that makes the reading of a trace crash, hang, or say something impossible?
//
// A libFuzzer target, built with clang and -DRINGMAIN_BUILD_FUZZERS=ON:
//   kineto_fuzz -max_total_time=60 -dict=kineto_fuzz.dict CORPUS
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <variant>

#include "tests/adapters/replay/kineto_support.hpp"

namespace ringmain::replay {
namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

void replay(std::string_view bytes) {
  const InMemory file(bytes);
  KinetoOptions options;
  options.memory_max = KinetoOptions::kMemoryMin;
  options.idle_bytes_max = 1 << 20;
  auto opened = KinetoTrace::open(file.path(), options);
  if (!opened) {
    require(!opened.error().message.empty());
    return;
  }
  KinetoTrace& trace = opened.value();
  KinetoMapped mapped;
  std::uint64_t events_before = 0;
  for (int loop = 0; loop < 2; ++loop) {
    std::uint64_t events = 0;
    for (;;) {
      const auto more = trace.next(mapped);
      if (!more) require(more.error().message.size() > 20 && more.error().message.back() == '.');
      if (!more || !more.value()) break;
      ++events;
      require(mapped.lane < trace.lanes().size());
      std::visit(
          [](const auto& event) {
            if constexpr (requires { event.duration_ns; }) require(event.duration_ns >= 0);
            if constexpr (requires { event.queued_ns; }) require(event.queued_ns >= 0);
          },
          mapped.event);
    }
    require(trace.counts().read == trace.records());
    require(events >= trace.counts().read - trace.counts().skipped_total());
    require(loop == 0 || events == events_before);  // a second replay says the same
    events_before = events;
    trace.rewind();
  }
}

}  // namespace
}  // namespace ringmain::replay

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  ringmain::replay::replay({reinterpret_cast<const char*>(bytes), size});
  return 0;
}
