// How does the source of NCCL's events fare, how is an operation's end known, and what hangs?
#pragma once
#include <cstdint>

#include "../bus/event.hpp"

#include "nccl.hpp"

namespace ringmain::nccl {

/// What is counted since the process began, whether anybody listened or not.
///
/// started = stopped + open + stale + aborted. Of what NCCL offered beyond that each has its
/// reason: filtered, no_room, unknown_types, no_context.
struct Counts {
  std::uint64_t started = 0;         // spans with a handle
  std::uint64_t stopped = 0;         // that NCCL ended
  std::uint64_t stale = 0;           // that NCCL began anew without an end
  std::uint64_t aborted = 0;         // that were open when their communicator was finalized
  std::uint64_t published = 0;       // events that the bus accepted
  std::uint64_t refused = 0;         // events that it did not: full, no_memory, closed, vetoed
  std::uint64_t filtered = 0;        // starts that nobody needs: NCCL adds the parents of a kind
  std::uint64_t no_room = 0;         // starts without a handle: too many open, or no memory
  std::uint64_t no_context = 0;      // starts in no communicator that is known; untold ones, too
  std::uint64_t unknown_types = 0;   // starts of a type that is not known
  std::uint64_t unknown_states = 0;  // states that are not known
  std::uint64_t stale_stops = 0;     // ends of what had ended, or for which there was no memory
  std::uint64_t stale_states = 0;    // states likewise
  std::uint64_t detached = 0;        // proxy operations that another process asked for
  std::uint64_t lost_starts = 0;     // NCCL channels of ended operations that no kernel was seen on
  std::uint64_t suspect = 0;         // GPU spans whose stamps cannot be right
  std::uint64_t unfollowed = 0;      // operations whose end nobody can know

  friend bool operator==(const Counts&, const Counts&) = default;
};

enum class PluginState : std::uint8_t {
  attached,  // NCCL's events are published; the mask is what is listened to
  masked,    // NCCL's mask was changed by another, such as its RAS: `mask` is what it is
  limited,   // something is left out, or goes wrong, and why is said in `reason`
  slow,      // a chained plugin takes long: which, and how long, is said in `reason`
  opened,    // a communicator was initialized
  closed,    // a communicator was finalized
  detached   // the source has left; the counts are final but for what is open
};

/// `nccl.plugin`.
struct PluginNotice : Counts {
  std::uint64_t open = 0;
  std::uint64_t communicator = 0;   // opened, closed
  std::uint32_t communicators = 0;  // that are open
  std::uint32_t mask = 0;           // what NCCL is asked for, a bit for each of its types
  std::int32_t rank = kNoRank;
  std::int32_t ranks = 0;
  std::int32_t nodes = 0;
  std::int32_t abi = 0;  // of the plugin table that NCCL took: 4 to 7
  PluginState state = PluginState::attached;
  Name group;
  Text<224> reason;
};

/// How an end is known.
enum class EvidenceKind : std::uint8_t {
  kernel_channels,  // the kernel ended on each of its NCCL channels
  proxies,          // the proxies of each of its NCCL channels are done
  proxies_quiet,    // those proxies that there were are done, and none came for a second
  later_operation,  // a later plan of the communicator ended: plans end in order
  none              // nobody can know
};
/// `nccl.evidence`: once for each operation whose end was waited for.
struct Evidence {
  std::uint64_t op_id = 0;
  std::uint64_t id = 0;  // of the nccl.operation
  std::uint64_t communicator = 0;
  std::int64_t began_ns = 0;  // when the work began, CLOCK_MONOTONIC; 0: not seen
  std::int64_t ended_ns = 0;  // when its end was seen
  Name group;
  Name func;
  std::int32_t rank = kNoRank;
  std::uint16_t nccl_channels = 0;  // as NCCL said: it may be too many
  std::uint16_t ended_channels = 0;
  EvidenceKind kind = EvidenceKind::none;
};

enum class StallReading : std::uint8_t {
  not_begun,          // enqueued; nothing of it was seen on GPU or network
  kernel_running,     // its kernel runs, and no step of a proxy is open
  own_gpu_late,       // send_gpu_wait
  peer_has_no_room,   // send_peer_wait
  network,            // send_wait
  peer_or_network,    // recv_wait
  local_pci,          // recv_flush_wait
  own_gpu_not_taking  // recv_gpu_wait
};
/// `nccl.stalled`: once a stall, and for whoever asks.
struct Stalled {
  std::uint64_t op_id = 0;
  std::uint64_t id = 0;  // of the operation; 0: another process's
  std::uint64_t communicator = 0;
  std::uint64_t sequence = 0;
  std::uint64_t count = 0;
  std::int64_t waited_ns = 0;  // since anything of it was heard last
  std::int64_t since_ns = 0;   // since it was enqueued
  Name group;
  Name func;
  Name dtype;
  std::int32_t rank = kNoRank;
  std::int32_t peer = kNoRank;
  std::int32_t step = -1;  // of the proxy's step that waits; -1: none is open
  std::int32_t nccl_channel = -1;
  std::uint16_t nccl_channels = 0;
  std::uint16_t begun_channels = 0;  // on which a kernel was seen to begin
  std::uint16_t ended_channels = 0;
  std::uint16_t open_steps = 0;
  StepState last = StepState::begun;
  StallReading reading = StallReading::not_begun;
  bool asked = false;  // somebody asked; else it has just been noticed
};

constexpr auto describe(EventOf<PluginNotice>) {
  using E = PluginNotice;
  return event(
      "nccl.plugin",
      field<&E::state>("state", "attached,masked,limited,slow,opened,closed,detached"),
      field<&E::reason>("reason"), field<&E::group>("group"), field<&E::rank>("rank", Unit::id),
      field<&E::ranks>("ranks", Unit::count), field<&E::nodes>("nodes", Unit::count),
      field<&E::communicator>("communicator", Unit::id),
      field<&E::communicators>("communicators", Unit::count), field<&E::abi>("abi"),
      field<&E::mask>("mask"), field<&E::started>("started", Unit::count),
      field<&E::stopped>("stopped", Unit::count), field<&E::open>("open", Unit::count),
      field<&E::stale>("stale", Unit::count), field<&E::aborted>("aborted", Unit::count),
      field<&E::published>("published", Unit::count), field<&E::refused>("refused", Unit::count),
      field<&E::filtered>("filtered", Unit::count), field<&E::no_room>("no_room", Unit::count),
      field<&E::no_context>("no_context", Unit::count),
      field<&E::unknown_types>("unknown_types", Unit::count),
      field<&E::unknown_states>("unknown_states", Unit::count),
      field<&E::stale_stops>("stale_stops", Unit::count),
      field<&E::stale_states>("stale_states", Unit::count),
      field<&E::detached>("detached", Unit::count),
      field<&E::lost_starts>("lost_starts", Unit::count),
      field<&E::suspect>("suspect", Unit::count), field<&E::unfollowed>("unfollowed", Unit::count));
}
constexpr auto describe(EventOf<Evidence>) {
  using E = Evidence;
  return event(
      "nccl.evidence", field<&E::op_id>("op_id", Unit::id), field<&E::func>("func"),
      field<&E::kind>("kind", "kernel_channels,proxies,proxies_quiet,later_operation,none"),
      field<&E::group>("group"), field<&E::rank>("rank", Unit::id), field<&E::id>("id", Unit::id),
      field<&E::communicator>("communicator", Unit::id), field<&E::began_ns>("began_ns", Unit::ns),
      field<&E::ended_ns>("ended_ns", Unit::ns),
      field<&E::nccl_channels>("nccl_channels", Unit::count),
      field<&E::ended_channels>("ended_channels", Unit::count));
}
constexpr auto describe(EventOf<Stalled>) {
  using E = Stalled;
  return event(
      "nccl.stalled", field<&E::func>("func"), field<&E::group>("group"),
      field<&E::rank>("rank", Unit::id),
      field<&E::reading>("reading",
                         "not_begun,kernel_running,own_gpu_late,peer_has_no_room,network,"
                         "peer_or_network,local_pci,own_gpu_not_taking"),
      field<&E::last>("last",
                      "begun,send_gpu_wait,send_peer_wait,send_wait,recv_wait,recv_flush_wait,"
                      "recv_gpu_wait"),
      field<&E::peer>("peer", Unit::id), field<&E::nccl_channel>("nccl_channel", Unit::id),
      field<&E::step>("step", Unit::count), field<&E::waited_ns>("waited_ns", Unit::ns),
      field<&E::since_ns>("since_ns", Unit::ns), field<&E::op_id>("op_id", Unit::id),
      field<&E::sequence>("sequence", Unit::count), field<&E::count>("count", Unit::count),
      field<&E::dtype>("dtype"), field<&E::nccl_channels>("nccl_channels", Unit::count),
      field<&E::begun_channels>("begun_channels", Unit::count),
      field<&E::ended_channels>("ended_channels", Unit::count),
      field<&E::open_steps>("open_steps", Unit::count), field<&E::id>("id", Unit::id),
      field<&E::communicator>("communicator", Unit::id), field<&E::asked>("asked"));
}

}  // namespace ringmain::nccl
