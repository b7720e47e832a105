// Where do the events of a process go that belongs to a run, and which of them did not arrive?
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "bus/bus.hpp"
#include "bus/rank.hpp"

#include "adapters/launch/files.hpp"
#include "adapters/registry.hpp"

namespace ringmain::run {

/// The sinks of a run, on one bus. They are opened by one thread before any other call; then any
/// thread may call. What goes wrong is said.
class RunSinks {
 public:
  /// `files`: of the sinks whose files were looked at when the process began.
  RunSinks(Bus& bus, const RankIdentity& me, std::vector<FileAtStart> files)
      : bus_(bus), me_(me), files_(std::move(files)) {}

  void open(const std::string& sink);
  /// Without a subscriber nothing is counted: where no sink is open, one that keeps nothing.
  void open_one_that_counts();
  [[nodiscard]] bool none_is_open() const noexcept { return sinks_.empty(); }
  [[nodiscard]] bool all_are_open() const noexcept { return unopened_.empty(); }

  /// Waits for a sink that writes.
  void flush();
  /// As flush(), and closes all. Returns the events that were lost; says whose they were, unless
  /// somebody else has said the end, `over`, by then.
  std::uint64_t close(const std::atomic<bool>& over);
  /// Waits for nobody: lets all go that have not closed. Returns the events that did not arrive,
  /// and says whose they were.
  std::uint64_t give_up(nanoseconds limit);
  /// Returns what those that could not open have lost, and says it.
  [[nodiscard]] std::uint64_t say_unopened() const;
  /// Events that sinks have written, or taken where they do not say so.
  [[nodiscard]] std::uint64_t arrived() const noexcept;

 private:
  void open_now(const std::string& sink);
  void could_not_open(const std::string& sink, const std::string& why);
  void attach(registry::SinkHandle sink);
  [[nodiscard]] std::map<std::string, std::uint64_t> missing() const;

  Bus& bus_;
  const RankIdentity& me_;
  const std::vector<FileAtStart> files_;
  std::mutex mutex_;  // of threads that flush or close; held while a sink writes
  std::vector<registry::SinkHandle> sinks_;  // as it was opened
  std::vector<std::string> unopened_;        // the names of those that were not
  std::atomic<std::size_t> closed_{0};       // of the sinks, in their order
};

}  // namespace ringmain::run
