// Did the GPU get there? The end of something that was armed on a stream, and of its context.
#pragma once
#include <cstdint>

#include "cuda.hpp"

namespace ringmain::cuda {

enum class Outcome : std::uint8_t {
  completed,  // the stream has reached it
  failed,     // it never will: the context has met an error, or is gone (`result`)
  abandoned   // whoever asked has ended; the stream had not reached it
};
/// How it is known.
enum class Mechanism : std::uint8_t {
  memory_write,   // the stream wrote the ticket's number to memory that the host reads
  event_query,    // a CUDA event behind it was asked for
  host_function,  // the driver called a function behind it
  host_node       // of a graph: the driver called it at this launch
};

/// `cuda.completion`: exactly one for each ticket, in order for each lane.
struct Completion {
  std::uint64_t ticket = 0;          // as arm() gave it: no other of this Completions has it
  std::uint64_t tag = 0;             // the program's own
  std::uint64_t stream = kNoStream;  // its handle when it was armed; kNoStream: a graph's node
  std::int64_t armed_ns = 0;         // CLOCK_MONOTONIC; 0: a graph's node
  std::int64_t duration_ns = 0;      // from there until the end was seen; 0: a graph's node
  std::int32_t result = kNoResult;  // 0: completed. failed: what the driver answered. abandoned: -1
  std::int32_t device = kNoDevice;
  std::int32_t thread = 0;  // which armed it, or added the node
  std::uint32_t lane = 0;   // those of one lane end in the order in which they were armed
  Outcome outcome = Outcome::completed;
  Mechanism mechanism = Mechanism::memory_write;
};

constexpr auto describe(EventOf<Completion>) {
  using E = Completion;
  return event(
      "cuda.completion", field<&E::ticket>("ticket", Unit::id), field<&E::tag>("tag", Unit::id),
      field<&E::stream>("stream", Unit::stream),
      field<&E::outcome>("outcome", "completed,failed,abandoned"), field<&E::result>("result"),
      field<&E::device>("device", Unit::device), field<&E::thread>("thread", Unit::id),
      field<&E::lane>("lane", Unit::id), field<&E::armed_ns>("armed_ns", Unit::ns),
      field<&E::duration_ns>("duration_ns", Unit::ns),
      field<&E::mechanism>("mechanism", "memory_write,event_query,host_function,host_node"));
}

static_assert(sizeof(Completion) <= 64);

/// `cuda.context_lost`: the context of a Completions has met an error, or is gone. Once, before
/// what is armed there fails; while nothing is armed, nobody asks the context.
struct ContextLost {
  std::uint64_t context = 0;        // its id, which no other of the process has (cuCtxGetId)
  std::uint64_t pending = 0;        // tickets that were armed: each has its own event, too
  std::int32_t result = kNoResult;  // what the driver answered; 709: destroyed, or a reset
  std::int32_t device = kNoDevice;
};

constexpr auto describe(EventOf<ContextLost>) {
  using E = ContextLost;
  return event("cuda.context_lost", field<&E::context>("context", Unit::id),
               field<&E::pending>("pending", Unit::count), field<&E::result>("result"),
               field<&E::device>("device", Unit::device));
}

}  // namespace ringmain::cuda
