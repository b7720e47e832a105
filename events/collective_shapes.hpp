// Of what sizes are the tensors of an operation? Beside collective.issued, and built only while
// somebody listens.
#pragma once
#include <cstdint>

#include "../bus/event.hpp"

#include "collective.hpp"

namespace ringmain::collective {

/// `collective.shapes`: published behind the operation's `collective.issued`, in the same thread.
struct Shapes {
  std::uint64_t op_id = 0;
  Name op;
  Name group;
  Name source;
  std::int32_t rank = kNoRank;
  std::uint32_t inputs = 0;   // tensors
  std::uint32_t outputs = 0;  // tensors
  std::uint32_t cut = 0;      // of both, those that the texts have no room for
  /// "float32[512,96] int64[]": their types and sizes, in the caller's order.
  Text<192> input;
  Text<192> output;
};

constexpr auto describe(EventOf<Shapes>) {
  using E = Shapes;
  return event("collective.shapes", field<&E::op>("op"), field<&E::group>("group"),
               field<&E::op_id>("op_id", Unit::id), field<&E::rank>("rank", Unit::id),
               field<&E::input>("input"), field<&E::output>("output"),
               field<&E::inputs>("inputs", Unit::count), field<&E::outputs>("outputs", Unit::count),
               field<&E::cut>("cut", Unit::count), field<&E::source>("source"));
}

}  // namespace ringmain::collective
