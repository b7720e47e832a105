// What deserves an alarm? As a struct in C++, and as the words after the colon of
// `--sink alarms:allow=cudaEventSynchronize,warmup=20`.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "../../../bus/result.hpp"

namespace ringmain::cuda {

struct AlarmOptions {
  static constexpr std::uint64_t kStepsMax = 1'000'000'000;
  static constexpr std::uint64_t kBytesMax = std::uint64_t{1} << 50;

  bool synchronization = true;
  bool leaks = true;
  bool growth = true;
  /// Needs to hear records, waits and captures as well, which CUPTI is not asked for without it.
  bool races = true;
  /// Calls, such as cudaEventSynchronize, and phases of a step whose synchronizations are no alarm.
  std::vector<std::string> allowed{};
  /// So many steps come before live memory is looked at, at least 0; and in so many after one
  /// another, at least 1, it must rise, by so many bytes in all, at least 1, to be an alarm.
  std::uint64_t warmup_steps = 10;
  std::uint64_t rising_steps = 5;
  std::uint64_t rising_bytes = 1 << 20;
  /// For the sink alone: where sentences go, with its whole path; "": to standard error. %r, %p,
  /// %h and %j stand for rank, process, host and job.
  std::string file{};

  /// Reads words divided by commas: allow=NAME (as often as wanted), warmup=STEPS, rises=STEPS,
  /// bytes=BYTES, without=synchronization, leaks, growth or races (as often as wanted), file=PATH;
  /// "" gives the defaults. An Error (`refused`) is one sentence. Throws std::bad_alloc. Threads:
  /// any.
  [[nodiscard]] static Result<AlarmOptions> read(std::string_view written);

  /// The first number that is outside of its limits, or that no alarm is left, as an Error
  /// (`refused`): one sentence. Throws std::bad_alloc. Threads: any.
  [[nodiscard]] std::optional<Error> fault() const;
};

}  // namespace ringmain::cuda
