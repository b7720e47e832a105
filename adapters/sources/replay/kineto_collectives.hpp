// Which kernels and which metadata belong to which collective of a trace?
//
// A trace shows a collective as up to four records, in any order: the annotation "nccl:all_reduce"
// in the calling thread, the operator record_param_comms around or beside it with the sizes, the
// call that launched the kernel, and the kernel, tied to its launch by their correlation. The first
// reading notes these; match() puts them together; the second reading asks for each record's role.
//
// Where a trace has no annotation at all, each record_param_comms that is not a wait is a
// collective. A kernel whose call is not in the recording makes a collective of its own.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "events/collective.hpp"

#include "adapters/sources/replay/kineto_calls.hpp"
#include "adapters/sources/replay/kineto_parse.hpp"
#include "adapters/sources/replay/kineto_record.hpp"

namespace ringmain::replay {

/// A collective as a trace shows it. Times as recorded.
struct KinetoOperation {
  collective::Issued issued;
  std::int64_t issued_ns = 0;
  std::int64_t started_ns = 0;
  std::int64_t completed_ns = 0;
  std::uint64_t first_kernel = 0;  // record numbers
  std::uint64_t last_kernel = 0;
  std::uint32_t kernels = 0;
  Name kernel;  // the first one's
};

/// What a record says of its collective.
struct KinetoRole {
  const KinetoOperation* operation = nullptr;  // nullptr: nothing
  bool issues = false;
  bool starts = false;
  bool completes = false;
};

/// Threads: one at a time. Memory: 24 bytes per launch, some 300 per collective.
class KinetoCollectives {
 public:
  /// The first reading, in order. `thread` is the record's number from KinetoLanes.
  void note(const KinetoRecord& record, KinetoSide side, std::uint32_t thread, std::int32_t device);
  [[nodiscard]] std::uint64_t bytes_held() const noexcept;
  /// Between the readings.
  void match(const KinetoRanks& ranks);
  /// The second reading; cheap while the numbers rise.
  [[nodiscard]] KinetoRole role_of(std::uint64_t record_number);

  [[nodiscard]] const std::vector<KinetoOperation>& operations() const noexcept {
    return operations_;
  }

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  /// What some record tells of sizes and ranks.
  struct Terms {
    std::uint64_t in_elements = 0;
    std::uint64_t out_elements = 0;
    std::uint64_t sequence = 0;
    Name op;
    Name group;
    Name dtype;
    std::int32_t rank = -1;
    std::int32_t peer = -1;
    std::int32_t group_size = 0;
    bool asynchronous = false;
  };
  /// An annotation, or a record_param_comms.
  struct Asked {
    std::uint64_t number = 0;
    std::int64_t start = 0;
    std::int64_t end = 0;
    std::int64_t external_id = KinetoArgs::kAbsent;
    Terms terms;
    Name backend;
    std::uint32_t thread = 0;
    std::int32_t thread_id = 0;
    std::uint32_t operation = kNone;  // of an annotation
    bool wait = false;
    bool claimed = false;  // a record_param_comms whose annotation is known
  };
  struct Launch {
    std::int64_t correlation = 0;
    std::int64_t time = 0;
    std::uint32_t thread = 0;
  };
  struct Kernel {
    std::uint64_t number = 0;
    std::int64_t start = 0;
    std::int64_t end = 0;
    std::int64_t correlation = KinetoArgs::kAbsent;
    std::int64_t external_id = KinetoArgs::kAbsent;
    std::int64_t stream = KinetoArgs::kAbsent;
    Terms terms;
    Name name;
    std::int32_t device = -1;
  };
  struct External {
    std::int64_t id = 0;
    std::uint32_t place = 0;  // in asked_
  };
  struct RoleOf {
    std::uint64_t number = 0;
    std::uint32_t operation = 0;
    bool issues = false;
    bool starts = false;
    bool completes = false;
  };

  static Terms terms_of(const KinetoArgs& args);
  static Asked asked_of(const KinetoRecord& record, std::uint32_t thread);
  static bool before(const Asked& a, const Asked& b) noexcept;
  static std::size_t innermost(const std::vector<Asked>& asked, std::uint32_t thread,
                               std::int64_t from, std::int64_t to);
  Asked* comms_around(const Asked& annotation);
  Asked* comms_beside(const Asked& annotation);
  void claim(Asked& annotation, Asked& comms);
  void claim_comms();
  void make_operations(const KinetoRanks& ranks);
  void make_operation(const Terms& terms, const KinetoRanks& ranks, KinetoOperation& operation);
  void match_kernels(const KinetoRanks& ranks);
  [[nodiscard]] std::uint32_t operation_of(const Kernel& kernel) const;
  static void add_kernel(const Kernel& kernel, KinetoOperation& operation);

  std::vector<Asked> asked_;  // annotations; after match() of a trace without any: comms_
  std::vector<Asked> comms_;
  std::vector<Launch> launches_;
  std::vector<Kernel> kernels_;
  std::vector<External> externals_;
  std::vector<KinetoOperation> operations_;
  std::vector<RoleOf> roles_;
  std::size_t cursor_ = 0;
};

}  // namespace ringmain::replay
