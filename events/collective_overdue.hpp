// Which operation is open for longer than it was given? Said by a watchdog, and no end.
#pragma once
#include <cstdint>

#include "../bus/event.hpp"

#include "collective.hpp"

namespace ringmain::collective {

enum class OverdueSince : std::uint8_t {
  issued,  // it was called for, and nobody has said that it began
  started  // its work began: it hangs in that
};

/// `collective.overdue`: once for each operation and kind of deadline.
struct OverdueOperation {
  std::uint64_t op_id = 0;
  std::int64_t waited_ns = 0;    // since it was issued; where it has begun, since it began
  std::int64_t deadline_ns = 0;  // that it was given for that
  std::uint64_t look = 0;        // of the watchdog: how many it had made, this one included
  Name op;
  Name group;
  std::int32_t rank = kNoRank;
  OverdueSince since = OverdueSince::issued;
};

constexpr auto describe(EventOf<OverdueOperation>) {
  using E = OverdueOperation;
  return event(
      "collective.overdue", field<&E::op>("op"), field<&E::group>("group"),
      field<&E::op_id>("op_id", Unit::id), field<&E::rank>("rank", Unit::id),
      field<&E::since>("since", "issued,started"), field<&E::waited_ns>("waited_ns", Unit::ns),
      field<&E::deadline_ns>("deadline_ns", Unit::ns), field<&E::look>("look", Unit::count));
}

}  // namespace ringmain::collective
