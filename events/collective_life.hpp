// What else happens around collectives? Groups come and go, callers wait, and somebody gives up.
//
// They are beside the four events of collective.hpp, and joined to them by op_id and group.
#pragma once
#include <cstdint>

#include "../bus/event.hpp"

#include "collective.hpp"

namespace ringmain::collective {

enum class GroupChange : std::uint8_t {
  made,   // from here on operations name it; of a source that is not told, its first use
  split,  // `parent` was split in parts; `group` is this process's, Name{} if it got none
  ended   // no operation will name it
};
/// `collective.group`: of process groups, communicators.
struct Group {
  std::uint64_t operations = 0;  // ended: how many this process called for; else 0
  Name group;
  Name description;  // what its maker calls it: "tensor parallel"; Name{}: nothing
  Name backend;
  Name parent;  // from which it was split; Name{}: from none
  Name source;
  std::int32_t rank = kNoRank;  // of this process in the group; kNoRank: it is not a member
  std::int32_t group_size = 0;
  std::uint32_t hooks = 0;  // that it has from its parent
  std::int32_t thread = 0;
  GroupChange change = GroupChange::made;
  /// Of its members, in the world: "0-3,8" is 0 1 2 3 8, "0-12/4" is 0 4 8 12. In their order.
  Text<256> ranks;
};

enum class Edge : std::uint8_t { begin, end };

/// `collective.wait`: a thread waits for operations that go on. Both edges come from it.
struct Wait {
  std::uint64_t op_id = 0;       // 0: it waits for several
  std::int64_t duration_ns = 0;  // end: how long it has waited; begin: 0
  Name op;
  Name group;
  Name source;
  std::int32_t rank = kNoRank;
  std::int32_t thread = 0;
  std::uint32_t operations = 0;  // for how many it waits
  Edge edge = Edge::begin;
};

/// `collective.abort`: a group is given up. All that happens between begin and end is one incident,
/// however many ask for it.
struct Abort {
  std::uint64_t incident = 0;    // unique in the process
  std::int64_t duration_ns = 0;  // end: since begin; begin: 0
  Name group;
  Name asked_by;  // application, watchdog, backend …
  Name reason;
  Name source;
  std::uint32_t hooks = 0;       // end: that were called
  std::uint32_t stuck = 0;       // end: of those, that had not returned by the deadline
  std::uint32_t operations = 0;  // end: that failed with it
  std::int32_t rank = kNoRank;
  std::int32_t thread = 0;
  Edge edge = Edge::begin;
};

constexpr auto describe(EventOf<Group>) {
  using E = Group;
  return event("collective.group", field<&E::change>("change", "made,split,ended"),
               field<&E::group>("group"), field<&E::description>("description"),
               field<&E::backend>("backend"), field<&E::parent>("parent"),
               field<&E::rank>("rank", Unit::id), field<&E::group_size>("group_size", Unit::count),
               field<&E::ranks>("ranks"), field<&E::hooks>("hooks", Unit::count),
               field<&E::operations>("operations", Unit::count), field<&E::source>("source"),
               field<&E::thread>("thread", Unit::id));
}
constexpr auto describe(EventOf<Wait>) {
  using E = Wait;
  return event("collective.wait", field<&E::edge>("edge", "begin,end"), field<&E::op>("op"),
               field<&E::group>("group"), field<&E::op_id>("op_id", Unit::id),
               field<&E::operations>("operations", Unit::count),
               field<&E::duration_ns>("duration_ns", Unit::ns), field<&E::rank>("rank", Unit::id),
               field<&E::source>("source"), field<&E::thread>("thread", Unit::id));
}
constexpr auto describe(EventOf<Abort>) {
  using E = Abort;
  return event("collective.abort", field<&E::edge>("edge", "begin,end"), field<&E::group>("group"),
               field<&E::incident>("incident", Unit::id), field<&E::reason>("reason"),
               field<&E::asked_by>("asked_by"), field<&E::duration_ns>("duration_ns", Unit::ns),
               field<&E::hooks>("hooks", Unit::count), field<&E::stuck>("stuck", Unit::count),
               field<&E::operations>("operations", Unit::count), field<&E::rank>("rank", Unit::id),
               field<&E::source>("source"), field<&E::thread>("thread", Unit::id));
}

}  // namespace ringmain::collective
