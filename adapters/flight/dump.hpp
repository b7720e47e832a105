// What did one rank's recorder hold? A dump of PyTorch or torchcomms with every field that the two
// write, its texts and shapes kept once for all ranks of a job.
//
// Times are nanoseconds of the time of day, 0 where a dump does not say. Frames keep the innermost
// one.
#pragma once
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "bus/result.hpp"

#include "adapters/flight/document.hpp"

namespace ringmain::flight {

/// Texts by number, each kept once; "" is 0.
class Texts {
 public:
  Texts() { (void)number(""); }
  [[nodiscard]] std::uint32_t number(std::string_view text);
  [[nodiscard]] std::string_view of(std::uint32_t number) const noexcept { return all_[number]; }

 private:
  std::deque<std::string> all_;
  std::unordered_map<std::string_view, std::uint32_t> numbers_;
};

/// The tensors of one side of an operation: "[[3,4],[5]]", "Float,Long".
struct Tensors {
  std::uint32_t sizes = 0;
  std::uint32_t types = 0;
  friend bool operator==(const Tensors&, const Tensors&) = default;
};

enum class EntryState : std::uint8_t { scheduled, started, completed };
[[nodiscard]] std::string_view to_string(EntryState state) noexcept;

struct Entry {
  std::int64_t record_id = 0;
  std::int64_t pg_id = -1;
  std::int64_t collective_seq = 0;
  std::int64_t p2p_seq = 0;
  std::int64_t op_id = -1;
  std::int64_t created_ns = 0;
  std::int64_t started_ns = 0;    // when that was discovered
  std::int64_t completed_ns = 0;  // the same
  std::int64_t timeout_ms = 0;
  double duration_ms = -1;    // -1: not known
  std::uint32_t group = 0;    // of Dump::groups
  std::uint32_t name = 0;     // "all_reduce", "send"
  std::uint32_t backend = 0;  // "nccl"
  std::int32_t from = -1;     // of a send or receive: ranks within the group, -1: not said
  std::int32_t to = -1;
  Tensors inputs;
  Tensors outputs;
  std::uint32_t thread = 0;  // "name (id)"
  std::uint32_t where = 0;   // "train.py:88 forward"
  EntryState state = EntryState::scheduled;
  bool retired = false;
  bool is_p2p = false;
  bool of_two = false;  // it lay in a group of its two ranks (transfer_group.hpp)
};

/// A process group as one dump has it.
struct DumpGroup {
  std::uint32_t name = 0;
  std::uint32_t desc = 0;
  std::uint32_t members = 0;  // of Job::members; 0: the dump does not say who they are
};

/// What a group of one rank last enqueued, started and completed; -1: none.
struct GroupStatus {
  std::string pg_id;
  std::int64_t enqueued = -1;
  std::int64_t started = -1;
  std::int64_t completed = -1;
};

struct Dump {
  std::string file;
  std::int64_t rank = -1;
  std::int64_t file_time_ns = 0;  // when the file was last written; 0: not known
  std::string version;
  std::string library_version;
  std::vector<DumpGroup> groups;
  std::vector<GroupStatus> status;
  std::vector<Entry> entries;  // oldest first
  std::int64_t left_out = 0;   // operations that a pickle of ours has no name for

  /// The newest stamp that it holds.
  [[nodiscard]] std::int64_t newest_ns() const noexcept;
};

/// Lists of ranks, each kept once; 0 is the empty one.
class MemberLists {
 public:
  MemberLists() { (void)number({}); }
  [[nodiscard]] std::uint32_t number(std::vector<std::int64_t> ranks);
  /// Of a text such as "[0, 1, 2]"; nullopt if it is none.
  [[nodiscard]] std::optional<std::uint32_t> read(std::string_view text);
  [[nodiscard]] const std::vector<std::int64_t>& of(std::uint32_t number) const noexcept {
    return all_[number];
  }

 private:
  std::deque<std::vector<std::int64_t>> all_;
  std::unordered_map<std::string, std::uint32_t> by_text_;
};

/// What the dumps of a job share.
struct Kept {
  Texts texts;
  MemberLists members;
};

/// Makes a Dump of what a file says. The rank is the document's, or -1. An Error: one sentence that
/// names the entry and the field. Progress: allocates.
[[nodiscard]] Result<Dump> read_dump(const Document& document, Kept& kept);

}  // namespace ringmain::flight
