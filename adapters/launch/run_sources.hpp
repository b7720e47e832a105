// Which sources does a run hear in this process, and which could not attach?
#pragma once
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "bus/bus.hpp"
#include "bus/rank.hpp"

#include "adapters/registry.hpp"

namespace ringmain::run {

/// The sources of a run, on one bus. Threads: any.
class RunSources {
 public:
  RunSources(Bus& bus, const RankIdentity& me, const std::vector<std::string>& asked)
      : bus_(bus), me_(me), asked_(asked) {}

  /// Opens a source that lives in the process; others have libraries of their own, which call
  /// join(). What is wrong is said.
  void open(const std::string& source);
  /// False: the run did not ask for it.
  [[nodiscard]] bool join(std::string_view name);
  /// Says that a source could not attach.
  void miss(std::string_view source, std::string_view why);
  /// Called once by end().
  void at_end(std::function<void(nanoseconds limit)> say_last);
  /// Lets those that joined say their last within the limit, each, and ends the sources that were
  /// opened here. A source may call this object while it ends.
  void end(nanoseconds limit);
  /// By name, for the sources that came: "" or why they could not attach.
  [[nodiscard]] std::map<std::string, std::string> attached() const;

 private:
  void open_here(const std::string& source);

  Bus& bus_;
  const RankIdentity& me_;
  const std::vector<std::string>& asked_;
  std::mutex opened_mutex_;  // of what is opened here, and of at_end_
  std::vector<registry::Opened<registry::Source>> opened_;
  std::vector<std::function<void(nanoseconds)>> at_end_;
  mutable std::mutex attached_mutex_;
  std::map<std::string, std::string> attached_;
};

}  // namespace ringmain::run
