// What does a run say to its processes? A few variables, which `ringmain run` sets and the library
// in each process reads.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ringmain::run {

/// What was asked for; in the environment of every process of the command.
struct Plan {
  std::vector<std::string> sources;  // "name:argument"
  std::vector<std::string> sinks;
  std::vector<std::string> except;  // names of commands that take no part, nor what they start
  std::string flight;               // patterns of channels to record: "collective.>,train.*"
  std::vector<std::string> flight_marks;  // where processes that record say so (flight_mark.hpp)
  bool at_start = false;                  // do not wait for the first join()
  bool at_use = false;                    // begin at the first use of the process's bus, too
  bool summary = false;                   // a line at the end of each process
  std::int32_t process = 0;               // that becomes the command; 0: not said
  std::string unused;                     // with a summary: what that one says if it joined no run
  std::string unused_by_launcher;         // what it says instead where it has started others
  std::int64_t started_ns = 0;

  /// The plan as environment variables. No word in it may have a line end.
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> variables() const;
  /// nullopt where this process belongs to no run, or takes no part in it (part.hpp).
  static std::optional<Plan> from_environment();
};

}  // namespace ringmain::run
