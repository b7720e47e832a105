// How do I describe an event with units, an enumeration and text?
#include <chrono>
#include <cstdint>
#include <string_view>

#include <ringmain/adapters/registry.hpp>

#include "step.hpp"

enum class Phase : std::uint8_t { forward, backward };
struct Transfer {
  std::uint64_t bytes;
  Phase phase;
  ringmain::Name layer;     // interned: the same texts again and again
  ringmain::Text<32> note;  // in place: a different text each time
};
constexpr auto describe(ringmain::EventOf<Transfer>) {
  using ringmain::field;
  return ringmain::event("train.transfer", field<&Transfer::bytes>("bytes", ringmain::Unit::bytes),
                         field<&Transfer::phase>("phase", "forward,backward"),
                         field<&Transfer::layer>("layer"), field<&Transfer::note>("note"));
}

int main() {
  using namespace std::string_view_literals;
  ringmain::Bus bus;
  auto lines = ringmain::registry::attach_sink(bus, "json_lines:-", "train.*");
  if (!lines) return 1;
  const ringmain::Name layer{"head"};  // before publishing: a new name takes a lock
  if (!bus.channel<Transfer>().publish({4096, Phase::backward, layer, "first"sv})) return 1;
  if (!bus.flush(std::chrono::seconds(10))) return 1;  // what nobody has heard yet, the sink hears
  return lines.value().close() ? 0 : 1;
}
