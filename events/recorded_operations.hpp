// Which collectives are open? The rules by which the flight recorder keeps its table of operations
// that were issued and have not ended.
//
//   auto flight = bus.record("collective.>", {.operations = collective::recorded_operations()});
#pragma once
#include <cstring>
#include <vector>

#include "../engine/flight/open_operations.hpp"

#include "../bus/recording.hpp"

#include "collective.hpp"

namespace ringmain::collective {
namespace detail {

/// `event` need not lie as an E must.
template <class E>
void read_recorded(const void* event, engine::flight::OpenOperation& operation) noexcept {
  E of;
  std::memcpy(static_cast<void*>(&of), event, sizeof of);
  operation.id = of.op_id;
  operation.kind = of.op.id();
  operation.group = of.group.id();
  operation.sequence = of.sequence;
  operation.bytes = of.bytes;
}

template <class E>
OperationRule rule_of(bool ends) {
  return {schema<E>().hash, ends, &read_recorded<E>};
}

}  // namespace detail

/// `collective.issued` opens one, `collective.completed` and `collective.failed` end it. In the
/// file an operation's kind is the id of the Name of what it does, its group that of the group's.
[[nodiscard]] inline std::vector<OperationRule> recorded_operations() {
  return {detail::rule_of<Issued>(false), detail::rule_of<Completed>(true),
          detail::rule_of<Failed>(true)};
}

}  // namespace ringmain::collective
