// Which process of a job published an event, by which clock, and which of its operations is meant?
//
// Ranks, launchers, and the programs that a process becomes by exec may share a file, a pid and a
// rank. An origin is drawn at random for each process, so that origin and publisher name one series
// of events in a job, and origin and op_id one operation.
#pragma once
#include <cstdint>
#include <string>

#include "rank.hpp"

namespace ringmain {

struct Origin {
  std::string id;  // 16 digits of 0-9 and a-f
  RankIdentity process;
  std::string program;  // as it was called, without its folder
  // The same moment on both clocks: their difference turns the stamps of this process's publishers
  // (CLOCK_MONOTONIC) into times of day. It changes only when the time is set.
  std::int64_t monotonic_ns = 0;
  std::int64_t realtime_ns = 0;

  /// This process, at this moment. The id is the same at each call, and differs after a fork or an
  /// exec. Threads: any, but it reads the environment.
  [[nodiscard]] static Origin here();
  /// Sets both clocks to now. Threads: any.
  void read_clocks() noexcept;
};

/// The first of `count` consecutive numbers that no other call in this process gets; never 0.
/// Threads: any. Progress: wait-free.
[[nodiscard]] std::uint64_t new_op_ids(std::uint64_t count) noexcept;
/// A number that no other call in this process gets; those of one thread grow. Threads: any.
/// Progress: wait-free; a thread reserves 2^16 at a time, so that threads seldom share a cache
/// line.
[[nodiscard]] std::uint64_t new_op_id() noexcept;

}  // namespace ringmain
