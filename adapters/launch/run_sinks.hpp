// Where do the events of a process in a run go, and which of them did not arrive?
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

/// The sinks of a run, on one bus. One thread opens them before any other call; after that any
/// thread may call. What goes wrong is said.
class RunSinks {
 public:
  /// `files`: those that were checked when the process began.
  RunSinks(Bus& bus, const RankIdentity& me, std::vector<FileAtStart> files)
      : bus_(bus), me_(me), files_(std::move(files)) {}

  void open(const std::string& sink);
  /// Where no sink is open: opens one that keeps nothing, since without a subscriber events are not
  /// counted.
  void open_one_that_counts();
  [[nodiscard]] bool none_is_open() const noexcept { return sinks_.empty(); }
  [[nodiscard]] bool all_are_open() const noexcept { return unopened_.empty(); }

  /// Hands what was published to the sinks. Waits while a sink writes.
  void flush();
  /// As flush(), and closes all sinks. Returns how many events were lost; says which sinks lost
  /// them, unless another thread has set `over` by then.
  std::uint64_t close(const std::atomic<bool>& over);
  /// Gives up all sinks that have not closed; does not wait. Returns how many events did not
  /// arrive, and says which sinks lost them.
  std::uint64_t give_up(nanoseconds limit);
  /// Returns how many events the sinks that could not open have lost, and says it.
  [[nodiscard]] std::uint64_t say_unopened() const;
  /// How many events the sinks have written, or heard where they do not say what is written.
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
