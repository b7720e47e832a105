// Is there a file that makes the reading of a dump crash, hang, or contradict itself?
//
// A libFuzzer target, built with clang and -DRINGMAIN_BUILD_FUZZERS=ON:
//   flight_dumps_fuzz -max_total_time=60 -dict=flight_dumps_fuzz.dict NEW_INPUTS corpus
#include <cstddef>
#include <cstdint>

#include "tests/adapters/flight/flight_hostile.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  (void)ringmain::flight::try_bytes({reinterpret_cast<const char*>(bytes), size});
  return 0;
}
