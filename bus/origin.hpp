// Which process of a job says this, by which clock? And which of its operations is meant?
//
// Ranks, launchers and the programs that a program becomes by exec may share a file, a pid and a
// rank. An origin is none of these: it is drawn by chance for each process, so that origin and
// publisher name a series of events in a job, and origin and op_id an operation.
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
  // (CLOCK_MONOTONIC) into times of day. It changes only when somebody sets the time.
  std::int64_t monotonic_ns = 0;
  std::int64_t realtime_ns = 0;

  /// This process, at this moment. The id is the same at each call, and another one after a fork or
  /// an exec. Threads: any, but it reads the environment.
  [[nodiscard]] static Origin here();
  /// Sets both clocks to now. Threads: any.
  void read_clocks() noexcept;
};

/// The first of `count` numbers in a row that are given to nobody else in this process; never 0.
/// Threads: any. Progress: wait-free.
[[nodiscard]] std::uint64_t new_op_ids(std::uint64_t count) noexcept;
/// One number that is given to nobody else in this process; those of a thread grow. Threads: any.
/// Progress: wait-free; a thread takes them 2^16 at a time, so that threads do not meet.
[[nodiscard]] std::uint64_t new_op_id() noexcept;

}  // namespace ringmain
