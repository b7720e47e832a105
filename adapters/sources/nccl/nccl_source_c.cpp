// The source for callers of C: Python calls these functions by ctypes (bindings/python/ringmain/
// _nccl_library.py).
//
// A function that can fail gives a code, and a sentence of at most `why_bytes` with its zero, if
// `why` is not null. What else is null has its answer, too: a source that is null is detached.
// Threads: any; of one source one at a time for release(). Nothing is thrown.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>

#include "adapters/launch/c_answers.hpp"
#include "adapters/sources/nccl/nccl_source.hpp"

using ringmain::nccl::Counts;
using ringmain::nccl::Options;
using ringmain::nccl::Source;

#pragma GCC visibility push(default)
extern "C" {

/// `options`: as nccl_options.hpp reads them; null: the defaults. `*made` belongs to the caller,
/// until release(). Without a bus, or a place for `made`: kWrongOptions.
int ringmain_nccl_attach(void* bus, const char* options, void** made, char* why,
                         std::size_t why_bytes) noexcept {
  return ringmain::c_answers::attach<Source, Options>(bus, options, made, why, why_bytes);
}
/// Detaches, and ends it.
void ringmain_nccl_release(void* source) noexcept {
  delete static_cast<Source*>(source);
}
/// ringmain::Detached.
int ringmain_nccl_detach(void* source) noexcept {
  Source none;
  return static_cast<int>((source == nullptr ? none : *static_cast<Source*>(source)).detach());
}
/// How many operations are under way, of this source or, if it is null, of the process's.
std::uint32_t ringmain_nccl_tell_stalled(void* source) noexcept {
  return source == nullptr ? Source::tell_stalled_in_process()
                           : static_cast<Source*>(source)->tell_stalled();
}
/// `figures`: those of Counts, in its order, the first `how_many`; null: nothing is written.
void ringmain_nccl_counts(std::uint64_t* figures, std::size_t how_many) noexcept {
  if (figures == nullptr) return;
  const Counts now = Source::counts();
  const std::uint64_t all[] = {
      now.started,        now.stopped,     now.stale,        now.aborted,    now.published,
      now.refused,        now.filtered,    now.no_room,      now.no_context, now.unknown_types,
      now.unknown_states, now.stale_stops, now.stale_states, now.detached,   now.lost_starts,
      now.suspect,        now.unfollowed};
  static_assert(sizeof all == sizeof(Counts), "each of them is told");
  std::copy_n(all, std::min(how_many, std::size(all)), figures);
}

}  // extern "C"
#pragma GCC visibility pop
