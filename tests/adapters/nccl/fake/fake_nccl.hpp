// What stands in for NCCL in tests: a libnccl.so.2 without CUDA. What it does, and what a test may
// make it do.
//
// Rules, as facts of NCCL 2.28.9 to 2.32.3 that a wrapper depends on:
// - A thread has a depth of groups. In a group a call answers 0, and operations are launched by the
//   outermost ncclGroupEnd; one that was refused makes that answer with its code. An unmatched end
//   answers 5. ncclGroupSimulateEnd launches nothing.
// - A communicator that is not blocking (config.blocking 0) answers 7, and ncclCommGetAsyncError
//   says 7, until settle().
// - A communicator of nullptr is 4 for operations and queries, 0 for ends.
// - Handles are taken from a few places, so that one is given again soon.
// - ncclBcast calls ncclBroadcast, and operations call ncclCommGetAsyncError, by their symbols, as
//   the real library does: a preload sees these calls.
// - An initialisation that fails in a group leaves the depth one too large, where
//   leave_depth(true) was said: 2.28.9 does.
// It checks no argument that NCCL would ask CUDA about, and moves nothing.
#pragma once
#include <cstddef>
#include <cstdint>

namespace ringmain::fake_nccl {

struct Seen {
  char name[32];  // "ncclAllReduce"
  const void* comm;
  const void* stream;
  std::size_t count;
  std::uint64_t tag;  // of its configuration
  std::int32_t thread;
  std::int32_t depth;  // of the thread's groups, when it was called
  bool configured;
};

extern "C" {
/// Forgets what was seen and what it was made to do. Communicators stay.
void fake_nccl_reset();
/// How many calls of that name there were; nullptr: of all.
std::size_t fake_nccl_seen(const char* name);
/// The last of that name. False: there was none.
bool fake_nccl_last(const char* name, Seen* last);
/// The `at`-th of all, from 0.
bool fake_nccl_at(std::size_t at, Seen* one);
/// How many operations were launched.
std::size_t fake_nccl_launched();
/// The next call of that name answers `result`, and does nothing.
void fake_nccl_fail(const char* name, int result);
void fake_nccl_leave_depth(bool leaves);
/// A communicator that is in progress is not any more: ncclCommGetAsyncError says `result`.
void fake_nccl_settle(void* comm, int result);
/// Is called inside of each operation, as a profiler plugin is; nullptr: nothing is.
void fake_nccl_inside(void (*call)(const char* name, const void* comm));
/// Communicators that exist.
std::size_t fake_nccl_communicators();
/// How many calls are not logged any more, so that a benchmark measures the call alone.
void fake_nccl_quiet(bool quiet);
}

}  // namespace ringmain::fake_nccl
