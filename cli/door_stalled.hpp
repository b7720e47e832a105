// What does `ringmain door stalled` show? What each process says that its operations wait for, and,
// of several, whom they all wait for.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace ringmain::cli {

/// An operation that is under way; as nccl::Stalled, and what is open of its proxies.
struct StalledOperation {
  struct Proxy {
    std::int64_t nccl_channel = -1, peer = -1;
    bool send = false;
  };
  std::string func, group;
  std::optional<std::string> reading, last;  // nullopt: nobody can know
  std::optional<std::int64_t> peer, nccl_channel, step, begun_channels;
  std::int64_t rank = -1, waited_ns = 0, since_ns = 0, nccl_channels = 0, open_proxies = 0;
  std::uint64_t sequence = 0, communicator = 0;
  std::vector<Proxy> proxies;

  [[nodiscard]] bool is_point_to_point() const { return func == "Send" || func == "Recv"; }
};

/// A communicator that the process has open.
struct StalledGroup {
  struct Last {
    std::string func;
    std::uint64_t number = 0;  // of the sequence, or the peer
    std::int64_t since_ns = 0;
  };
  std::string group;
  std::uint64_t communicator = 0;
  std::int64_t rank = -1, ranks = 0;
  std::int64_t waiting = 0, unseen = 0;  // unseen: operations whose end nothing shows
  std::optional<Last> last, last_point_to_point;
  std::map<std::string, std::uint64_t> sequences;  // the newest of each function
};

/// What a process answers, of its NCCL.
struct StalledProcess {
  std::int64_t pid = 0;
  std::string program;
  std::optional<std::int64_t> rank, world_size;
  std::int64_t monotonic_ns = 0;
  std::vector<std::string> asked_for, not_asked_for;
  std::optional<std::int64_t> asked_for_ns;  // how long NCCL has been asked for operations
  bool masked = false;                       // another has changed what NCCL is asked for
  std::int64_t no_room = 0, left_out = 0;
  std::vector<StalledGroup> groups;
  std::vector<StalledOperation> operations;  // the one that began first comes first
};

/// nullopt: that is no such answer.
[[nodiscard]] std::optional<StalledProcess> read_stalled(const std::string& answer);
/// A few lines; what others wrote is as it came.
[[nodiscard]] std::string in_words(const StalledProcess& process);
/// "AllReduce 42 of dp"
[[nodiscard]] std::string name_of(const StalledOperation& operation);

/// One sentence on those that others wait for and that wait for nobody themselves; "" where the
/// answers do not show it, as where a job is not hanging. They are of one host, whose clock they
/// share. Where `some_are_silent`, a door gave no answer: any rank that is missing may be its.
[[nodiscard]] std::string whom_they_wait_for(const std::vector<StalledProcess>& processes,
                                             bool some_are_silent);

}  // namespace ringmain::cli
