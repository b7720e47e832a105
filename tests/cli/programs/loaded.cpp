// A library that publishes, for the program loader.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "bus/bus.hpp"

namespace {
struct Loaded {
  std::uint64_t number;
};
constexpr auto describe(ringmain::EventOf<Loaded>) {
  return ringmain::event("program.loaded", ringmain::field<&Loaded::number>("number"));
}
}  // namespace

extern "C" [[gnu::visibility("default")]] int publish_loaded(int count) {
  for (int i = 0; i < count; ++i)
    ringmain::Bus::process().channel<Loaded>().post({static_cast<std::uint64_t>(i)});
  (void)ringmain::Bus::process().flush(std::chrono::seconds(30));
  return 40 + 2;
}
