// What becomes of a collective? Issued, started, and then completed or failed: four event types.
//
// `issued` is published in the thread that calls for it; `started` and `completed` when the work
// itself starts and completes (on a GPU: its kernels), so a collective that hangs is issued,
// perhaps started, and never completed. op_id joins the four: new_op_id() of bus/origin.hpp gives
// it. A source that cannot see the start publishes issued and completed. Several sources may see
// one operation, each a part of it: `source` says whose word an event is. A field that a source
// cannot know reads 0, but for ranks, peers and devices (-1) and streams. Groups, shapes, waiting
// and aborts are in collective_life.hpp.
#pragma once
#include <cstdint>

#include "../bus/event.hpp"

namespace ringmain::collective {

constexpr std::uint64_t kNoStream = ~std::uint64_t{0};  // 0 is CUDA's default stream
constexpr std::int32_t kNoRank = -1;
constexpr std::int32_t kNoDevice = -1;

/// Called for, not done. Point-to-point operations are published as this type, too.
struct Issued {
  std::uint64_t op_id = 0;     // unique in the process, whichever source gives it
  std::uint64_t sequence = 0;  // the group's own count of its collectives
  std::uint64_t bytes = 0;     // the larger of what this rank gives and gets
  std::uint64_t in_elements = 0;
  std::uint64_t out_elements = 0;
  std::uint64_t correlation = 0;  // the vendor's id of the call, or of its first kernel
  std::uint64_t stream = kNoStream;
  std::int64_t duration_ns = 0;  // how long the issuing call took
  Name op;                       // all_reduce, broadcast, send …
  Name group;                    // process group or communicator
  Name dtype;
  Name backend;                 // nccl, gloo …
  std::int32_t peer = kNoRank;  // send, recv: the other rank; rooted collectives: the root
  std::int32_t rank = kNoRank;  // of this process in the group
  std::int32_t group_size = 0;
  std::int32_t device = kNoDevice;
  std::int32_t thread = 0;
  bool asynchronous = false;  // the caller said that it will wait later
  /// After how many seconds its backend gives it up, rounded up; 65535: that or later. 0: never, or
  /// not known.
  std::uint16_t timeout_s = 0;
  Name source;  // mpi, replay … Name{}: not said
  /// Of sends, receives and batches of them: this rank's own count of those in the group, from 1
  /// on. 0: of a collective, or not counted.
  std::uint32_t p2p_sequence = 0;
};

/// The work has begun: the first kernel of it runs.
struct Started {
  std::uint64_t op_id = 0;
  std::uint64_t sequence = 0;
  std::uint64_t bytes = 0;
  std::uint64_t correlation = 0;
  std::uint64_t stream = kNoStream;
  std::int64_t queued_ns = 0;  // since it was issued
  Name op;
  Name group;
  Name backend;
  Name kernel;
  std::int32_t rank = kNoRank;
  std::int32_t group_size = 0;
  std::int32_t device = kNoDevice;
  Name source;
};

/// The work is done on this rank. Published once for each operation.
struct Completed {
  std::uint64_t op_id = 0;
  std::uint64_t sequence = 0;
  std::uint64_t bytes = 0;
  std::uint64_t correlation = 0;
  std::uint64_t stream = kNoStream;
  std::int64_t queued_ns = 0;    // issued → started
  std::int64_t duration_ns = 0;  // started → completed
  Name op;
  Name group;
  Name dtype;
  Name backend;
  Name kernel;
  std::int32_t rank = kNoRank;
  std::int32_t group_size = 0;
  std::int32_t device = kNoDevice;
  std::uint32_t kernels = 0;  // how many the operation took
  std::int32_t thread = 0;    // in which its end was noticed; 0: not said, or on a GPU
  Name source;
};

/// Why it will not complete.
enum class How : std::uint8_t {
  error,      // it, or the library that does it, failed: `result`, `reason`
  timed_out,  // it took longer than it was given
  aborted,    // its group was aborted
  vetoed,     // a hook refused it before it began: `reason` is the hook's
  cancelled,  // whoever called for it took it back, or its group ended before it did
  unknown     // nobody could follow it to its end: no room was left to remember it
};

/// It will not complete, or nobody will know whether it did.
struct Failed {
  std::uint64_t op_id = 0;
  std::uint64_t sequence = 0;
  std::uint64_t bytes = 0;
  std::uint64_t stream = kNoStream;
  std::int64_t elapsed_ns = 0;  // since it was issued
  Name op;
  Name group;
  Name backend;
  Name reason;
  std::int32_t peer = kNoRank;
  std::int32_t rank = kNoRank;
  std::int32_t group_size = 0;
  std::int32_t device = kNoDevice;
  std::int32_t result = 0;  // the vendor's code
  std::int32_t thread = 0;  // as completed
  Name source;
  How how = How::error;
};

constexpr auto describe(EventOf<Issued>) {
  using E = Issued;
  return event(
      "collective.issued", field<&E::op>("op"), field<&E::group>("group"),
      field<&E::sequence>("sequence", Unit::count), field<&E::op_id>("op_id", Unit::id),
      field<&E::bytes>("bytes", Unit::bytes), field<&E::in_elements>("in_elements", Unit::count),
      field<&E::out_elements>("out_elements", Unit::count), field<&E::dtype>("dtype"),
      field<&E::peer>("peer", Unit::id), field<&E::rank>("rank", Unit::id),
      field<&E::group_size>("group_size", Unit::count), field<&E::device>("device", Unit::device),
      field<&E::stream>("stream", Unit::stream), field<&E::duration_ns>("duration_ns", Unit::ns),
      field<&E::asynchronous>("asynchronous"), field<&E::backend>("backend"),
      field<&E::correlation>("correlation", Unit::id), field<&E::thread>("thread", Unit::id),
      field<&E::source>("source"), field<&E::timeout_s>("timeout_s"),
      field<&E::p2p_sequence>("p2p_sequence", Unit::count));
}
constexpr auto describe(EventOf<Started>) {
  using E = Started;
  return event("collective.started", field<&E::op>("op"), field<&E::group>("group"),
               field<&E::sequence>("sequence", Unit::count), field<&E::op_id>("op_id", Unit::id),
               field<&E::bytes>("bytes", Unit::bytes), field<&E::queued_ns>("queued_ns", Unit::ns),
               field<&E::rank>("rank", Unit::id), field<&E::group_size>("group_size", Unit::count),
               field<&E::device>("device", Unit::device), field<&E::stream>("stream", Unit::stream),
               field<&E::kernel>("kernel"), field<&E::backend>("backend"),
               field<&E::correlation>("correlation", Unit::id), field<&E::source>("source"));
}
constexpr auto describe(EventOf<Completed>) {
  using E = Completed;
  return event("collective.completed", field<&E::op>("op"), field<&E::group>("group"),
               field<&E::sequence>("sequence", Unit::count), field<&E::op_id>("op_id", Unit::id),
               field<&E::bytes>("bytes", Unit::bytes), field<&E::queued_ns>("queued_ns", Unit::ns),
               field<&E::duration_ns>("duration_ns", Unit::ns), field<&E::dtype>("dtype"),
               field<&E::rank>("rank", Unit::id), field<&E::group_size>("group_size", Unit::count),
               field<&E::device>("device", Unit::device), field<&E::stream>("stream", Unit::stream),
               field<&E::kernel>("kernel"), field<&E::kernels>("kernels", Unit::count),
               field<&E::backend>("backend"), field<&E::correlation>("correlation", Unit::id),
               field<&E::thread>("thread", Unit::id), field<&E::source>("source"));
}
constexpr auto describe(EventOf<Failed>) {
  using E = Failed;
  return event("collective.failed", field<&E::op>("op"), field<&E::group>("group"),
               field<&E::sequence>("sequence", Unit::count), field<&E::op_id>("op_id", Unit::id),
               field<&E::bytes>("bytes", Unit::bytes),
               field<&E::elapsed_ns>("elapsed_ns", Unit::ns), field<&E::reason>("reason"),
               field<&E::result>("result"), field<&E::peer>("peer", Unit::id),
               field<&E::rank>("rank", Unit::id), field<&E::group_size>("group_size", Unit::count),
               field<&E::device>("device", Unit::device), field<&E::stream>("stream", Unit::stream),
               field<&E::backend>("backend"), field<&E::thread>("thread", Unit::id),
               field<&E::source>("source"),
               field<&E::how>("how", "error,timed_out,aborted,vetoed,cancelled,unknown"));
}

static_assert(sizeof(Issued) <= 112 && sizeof(Completed) <= 112);  // fits the 128-byte slot

}  // namespace ringmain::collective
