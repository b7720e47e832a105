// Whom does everybody wait for? Who waits for a rank that waits for another is explained by that
// one; at the end of the way are ranks that are waited for and wait for nobody.
//
// What is said must be so. Doors are not asked at one moment, and a job may run meanwhile: an
// operation counts only if nothing was heard of it for a second, and a rank has not called what
// another has only if NCCL was asked there when the other called, and it was asked a second later
// or more.
#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "cli/door_stalled.hpp"

namespace ringmain::cli {
namespace {

constexpr std::int64_t kSecondNs = 1'000'000'000;
constexpr std::size_t kNamedMax = 8;

/// A rank of a communicator.
struct Member {
  std::uint64_t communicator = 0;
  std::int64_t rank = -1;
  friend auto operator<=>(const Member&, const Member&) = default;
};
struct Seat {
  const StalledProcess* process = nullptr;
  const StalledGroup* group = nullptr;
};

/// Whom one waits for, and in what.
struct Wait {
  Member member;
  std::string group;
  std::string lacks;  // what that one has not called; "": it may have
};

bool waits_for_peer(const std::string& reading) {
  return reading == "peer_has_no_room" || reading == "network" || reading == "peer_or_network";
}
bool waits_for_itself(const std::string& reading) {
  return reading == "own_gpu_late" || reading == "own_gpu_not_taking" || reading == "local_pci";
}

class Waits {
 public:
  Waits(const std::vector<StalledProcess>& all, bool some_are_silent)
      : all_(all), some_are_silent_(some_are_silent) {
    for (const StalledProcess& process : all) {
      for (const StalledGroup& group : process.groups) {
        const Member member{group.communicator, group.rank};
        is_told_apart_ &= seats_.try_emplace(member, Seat{&process, &group}).second;
      }
    }
  }

  [[nodiscard]] std::string sentence() {
    if (!is_told_apart_) return "";  // of two jobs, perhaps: nobody can know who is meant
    for (const StalledProcess& one : all_) of_[&one] = waits_of(one);
    std::vector<std::string> named;
    for (const StalledProcess& one : all_) {
      for (const Wait& wait : of_[&one]) name(wait, named);
    }
    if (named.empty()) return "";
    std::string text = "They wait for ";
    for (std::size_t i = 0; i < std::min(named.size(), kNamedMax); ++i)
      text += (i == 0 ? "" : "; and for ") + named[i];
    if (named.size() > kNamedMax)
      text += "; and for " + std::to_string(named.size() - kNamedMax) + " more";
    return text + ".";
  }

 private:
  /// The operation that began first: the communicator's others come after it.
  static const StalledOperation* front_of(const StalledProcess& process, Member member) {
    for (const StalledOperation& one : process.operations) {
      if (one.communicator == member.communicator && one.rank == member.rank) return &one;
    }
    return nullptr;
  }

  std::vector<Wait> waits_of(const StalledProcess& process) const {
    std::vector<Wait> waits;
    for (const StalledGroup& group : process.groups) {
      const StalledOperation* const front = front_of(process, {group.communicator, group.rank});
      if (front != nullptr) {
        if (front->waited_ns >= kSecondNs) add_waits(process, group, *front, waits);
      } else if (group.unseen != 0 && group.last) {
        add_lacking(process, group, group.last->func, group.last->number, group.last->since_ns,
                    waits);
      }
    }
    return waits;
  }
  void add_waits(const StalledProcess& process, const StalledGroup& group,
                 const StalledOperation& front, std::vector<Wait>& waits) const {
    const std::string reading = front.reading.value_or("");
    if (waits_for_itself(reading) || reading == "not_begun") return;
    const bool is_of_peer = waits_for_peer(reading) || front.is_point_to_point();
    if (!is_of_peer)
      return add_lacking(process, group, front.func, front.sequence, front.since_ns, waits);
    if (!front.peer || *front.peer == group.rank) return;
    const Member member{group.communicator, *front.peer};
    const auto seat = seats_.find(member);
    std::string lacks;
    if (seat != seats_.end() && !front.is_point_to_point() &&
        has_not_called(seat->second, process, front.func, front.sequence, front.since_ns))
      lacks = name_of(front);
    waits.push_back({member, group.group, lacks});
  }
  /// All that have not called what this one has.
  void add_lacking(const StalledProcess& process, const StalledGroup& group,
                   const std::string& func, std::uint64_t sequence, std::int64_t since_ns,
                   std::vector<Wait>& waits) const {
    const std::string name =
        func + " " + std::to_string(sequence) + (group.group.empty() ? "" : " of " + group.group);
    for (auto at = seats_.lower_bound({group.communicator, 0});
         at != seats_.end() && at->first.communicator == group.communicator; ++at) {
      if (at->first.rank == group.rank) continue;
      if (has_not_called(at->second, process, func, sequence, since_ns))
        waits.push_back({at->first, group.group, name});
    }
  }
  static bool has_not_called(const Seat& seat, const StalledProcess& caller,
                             const std::string& func, std::uint64_t sequence,
                             std::int64_t since_ns) {
    const StalledProcess& other = *seat.process;
    if (!other.asked_for_ns || other.masked || other.no_room != 0) return false;
    const std::int64_t called_ns = caller.monotonic_ns - since_ns;
    if (other.monotonic_ns - *other.asked_for_ns > called_ns) return false;
    if (other.monotonic_ns < called_ns + kSecondNs) return false;
    const auto newest = seat.group->sequences.find(func);
    return newest == seat.group->sequences.end() || newest->second < sequence;
  }

  /// Adds the one that is waited for, if it waits for nobody itself and it is known why.
  void name(const Wait& wait, std::vector<std::string>& named) const {
    const std::string member = "rank " + std::to_string(wait.member.rank) +
                               (wait.group.empty() ? "" : " of " + wait.group);
    std::string text;
    if (const auto seat = seats_.find(wait.member); seat == seats_.end()) {
      text = member + ", which has no door here" + (some_are_silent_ ? " that answered" : "");
    } else {
      const StalledProcess& process = *seat->second.process;
      if (!of_.at(&process).empty()) return;
      const std::string why = why_it_is_waited_for(wait, process);
      if (why.empty()) return;
      text = member + " (process " + std::to_string(process.pid) + "), which " + why;
    }
    if (std::find(named.begin(), named.end(), text) == named.end()) named.push_back(text);
  }
  static std::string why_it_is_waited_for(const Wait& wait, const StalledProcess& process) {
    if (!wait.lacks.empty()) return "has not called " + wait.lacks;
    const StalledOperation* const front = front_of(process, wait.member);
    if (front == nullptr || front->waited_ns < kSecondNs || !front->reading) return "";
    if (*front->reading == "not_begun") return "has not begun " + name_of(*front);
    if (*front->reading == "local_pci") return "waits for its own PCI bus in " + name_of(*front);
    if (waits_for_itself(*front->reading)) return "waits for its own GPU in " + name_of(*front);
    return "";
  }

  const std::vector<StalledProcess>& all_;
  const bool some_are_silent_;
  std::map<Member, Seat> seats_;
  bool is_told_apart_ = true;
  std::map<const StalledProcess*, std::vector<Wait>> of_;
};

}  // namespace

std::string whom_they_wait_for(const std::vector<StalledProcess>& processes, bool some_are_silent) {
  return Waits(processes, some_are_silent).sentence();
}

}  // namespace ringmain::cli
