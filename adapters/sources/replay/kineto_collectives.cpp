#include "adapters/sources/replay/kineto_collectives.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <numeric>
#include <tuple>

#include "events/terms/collective_names.hpp"

#include "adapters/sources/replay/kineto_terms.hpp"

namespace ringmain::replay {
namespace {

constexpr std::size_t kNestedMax = 64;            // annotations around one moment of one thread
constexpr std::int64_t kBesideNsMax = 1'000'000;  // between an annotation and an operator beside it
constexpr std::uint64_t kElementsMax = std::uint64_t{1} << 53;

std::uint64_t count_of(std::int64_t recorded) {
  if (recorded < 0) return 0;  // kAbsent is negative
  return std::min(static_cast<std::uint64_t>(recorded), kElementsMax);
}

constexpr std::string_view kWait = "wait";  // it is no operation

std::int32_t rank_of(std::int64_t recorded) {
  constexpr std::int64_t kMax = std::numeric_limits<std::int32_t>::max();
  return recorded >= 0 && recorded <= kMax ? static_cast<std::int32_t>(recorded) : -1;
}

template <class T>
std::uint64_t held_by(const std::vector<T>& v) {
  return v.capacity() * sizeof(T);
}

}  // namespace

std::uint64_t KinetoCollectives::bytes_held() const noexcept {
  return held_by(asked_) + held_by(comms_) + held_by(launches_) + held_by(kernels_) +
         held_by(externals_) + held_by(operations_) + held_by(roles_);
}

KinetoCollectives::Terms KinetoCollectives::terms_of(const KinetoArgs& args) {
  Terms terms;
  terms.in_elements = count_of(args.in_elements);
  terms.out_elements = count_of(args.out_elements);
  terms.sequence = count_of(args.sequence);
  if (args.collective != kWait) terms.op = collective::operation_name(args.collective);
  terms.group = Name(args.group);
  terms.dtype = Name(args.dtype);
  terms.group_size = std::max(rank_of(args.group_size), 0);
  terms.asynchronous = args.asynchronous;
  const std::string_view op = terms.op.view();
  const bool sends = op == collective::operation("send");
  if (sends || op == collective::operation("recv")) {  // "Rank" is the other side's, in the group
    terms.peer = rank_of(sends ? args.target_rank : args.source_rank);
    if (terms.peer < 0) terms.peer = rank_of(args.rank);
  } else if (collective::is_rooted(op)) {
    terms.peer = rank_of(args.rank);
  } else {
    terms.rank = rank_of(args.rank);
  }
  if (terms.in_elements == 0 && terms.out_elements == 0 && !args.input_dims.empty()) {
    terms.in_elements = elements_of_dims(args.input_dims);
    if (args.dtype.empty()) terms.dtype = Name(first_string(args.input_types));
  }
  return terms;
}

KinetoCollectives::Asked KinetoCollectives::asked_of(const KinetoRecord& record,
                                                     std::uint32_t thread) {
  Asked asked;
  asked.number = record.number;
  asked.start = record.ts_ns;
  asked.end = record.ts_ns + record.duration_ns;
  asked.external_id = record.args.external_id;
  asked.thread = thread;
  asked.thread_id = static_cast<std::int32_t>(record.thread.number);
  asked.terms = terms_of(record.args);
  return asked;
}

void KinetoCollectives::note(const KinetoRecord& record, KinetoSide side, std::uint32_t thread,
                             std::int32_t device) {
  if (record.phase != 'X') return;
  if (is_call(side)) {
    if (record.args.correlation != KinetoArgs::kAbsent && is_launch(record.name)) {
      launches_.push_back({record.args.correlation, record.ts_ns, thread});
    }
  } else if (side == KinetoSide::gpu) {
    if (!is_kernel(record.category) || !collective::is_nccl_kernel(record.name)) return;
    kernels_.push_back({record.number, record.ts_ns, record.ts_ns + record.duration_ns,
                        record.args.correlation, record.args.external_id, record.args.stream,
                        terms_of(record.args), Name(record.name), device});
    if (record.args.collective.empty()) {
      kernels_.back().terms.op = collective::operation_of_nccl_kernel(record.name);
    }
  } else if (record.name == "record_param_comms") {
    comms_.push_back(asked_of(record, thread));
    comms_.back().wait = record.args.collective == kWait;
    comms_.back().backend = Name(collective::kNccl);
  } else if (const AnnotationTerms said = annotation_terms(record.name); !said.backend.empty()) {
    Asked asked = asked_of(record, thread);
    asked.backend = Name(said.backend);
    asked.terms.op = said.operation;
    asked.terms.rank = said.rank;
    asked.terms.peer = said.peer;
    asked_.push_back(asked);
  }
}

bool KinetoCollectives::before(const Asked& a, const Asked& b) noexcept {
  return std::tie(a.thread, a.start, b.end, a.number) <
         std::tie(b.thread, b.start, a.end, b.number);
}

/// The latest that begins at `from` or before and ends at `to` or after, in that thread; its place
/// in `asked`, or asked.size().
std::size_t KinetoCollectives::innermost(const std::vector<Asked>& asked, std::uint32_t thread,
                                         std::int64_t from, std::int64_t to) {
  Asked key;
  key.thread = thread;
  key.start = from;
  key.end = std::numeric_limits<std::int64_t>::min();
  key.number = std::numeric_limits<std::uint64_t>::max();
  auto at = std::upper_bound(asked.begin(), asked.end(), key, before);
  for (std::size_t steps = 0; at != asked.begin() && steps < kNestedMax; ++steps) {
    --at;
    if (at->thread != thread) break;
    if (at->end >= to) return static_cast<std::size_t>(at - asked.begin());
  }
  return asked.size();
}

/// The record_param_comms around the annotation, or else inside it.
KinetoCollectives::Asked* KinetoCollectives::comms_around(const Asked& annotation) {
  const std::size_t around = innermost(comms_, annotation.thread, annotation.start, annotation.end);
  if (around < comms_.size() && !comms_[around].wait) return &comms_[around];
  auto at = std::lower_bound(comms_.begin(), comms_.end(), annotation, before);
  for (std::size_t steps = 0; at != comms_.end() && steps < kNestedMax; ++at, ++steps) {
    if (at->thread != annotation.thread || at->start > annotation.end) break;
    if (at->end <= annotation.end && !at->wait) return &*at;
  }
  return nullptr;
}

/// The nearer of the two that are next to the annotation and that no other annotation has claimed.
KinetoCollectives::Asked* KinetoCollectives::comms_beside(const Asked& annotation) {
  const auto usable = [&annotation](const Asked& comms) {
    return comms.thread == annotation.thread && !comms.wait && !comms.claimed;
  };
  Asked* nearest = nullptr;
  std::int64_t gap_max = kBesideNsMax;
  const auto later = std::lower_bound(comms_.begin(), comms_.end(), annotation, before);
  if (later != comms_.end() && usable(*later) && later->start >= annotation.end &&
      later->start - annotation.end <= gap_max) {
    nearest = &*later;
    gap_max = later->start - annotation.end;
  }
  if (later == comms_.begin()) return nearest;
  Asked& earlier = *std::prev(later);
  const bool fits = usable(earlier) && earlier.end <= annotation.start &&
                    annotation.start - earlier.end <= gap_max;
  return fits ? &earlier : nearest;
}

void KinetoCollectives::claim(Asked& annotation, Asked& comms) {
  comms.claimed = true;
  if (comms.external_id != KinetoArgs::kAbsent) {
    externals_.push_back(
        {comms.external_id, static_cast<std::uint32_t>(&annotation - asked_.data())});
  }
  const Terms own = annotation.terms;
  annotation.terms = comms.terms;
  annotation.terms.op = own.op;
  if (own.rank >= 0) annotation.terms.rank = own.rank;
  if (own.peer >= 0) annotation.terms.peer = own.peer;
  if (comms.terms.in_elements == 0 && comms.terms.out_elements == 0) {
    annotation.terms.in_elements = own.in_elements;
    annotation.terms.dtype = own.dtype;
  }
}

void KinetoCollectives::claim_comms() {
  std::vector<Asked*> without;
  for (Asked& annotation : asked_) {
    if (Asked* comms = comms_around(annotation))
      claim(annotation, *comms);
    else
      without.push_back(&annotation);
  }
  for (Asked* annotation : without) {
    if (Asked* comms = comms_beside(*annotation)) claim(*annotation, *comms);
  }
}

void KinetoCollectives::make_operation(const Terms& terms, const KinetoRanks& ranks,
                                       KinetoOperation& operation) {
  collective::Issued& issued = operation.issued;
  issued.op_id = operations_.size() + 1;
  issued.sequence = terms.sequence;
  issued.in_elements = terms.in_elements;
  issued.out_elements = terms.out_elements;
  issued.bytes = std::max(terms.in_elements, terms.out_elements) * dtype_bytes(terms.dtype.view());
  issued.op = terms.op;
  issued.group = terms.group;
  issued.dtype = terms.dtype;
  issued.peer = terms.peer;
  issued.rank = terms.rank >= 0 ? terms.rank : static_cast<std::int32_t>(ranks.rank);
  issued.group_size = terms.group_size;
  if (terms.group_size == 0 && ranks.groups == 1) {
    issued.group_size = static_cast<std::int32_t>(ranks.world_size);
  }
  issued.asynchronous = terms.asynchronous;
  operations_.push_back(operation);
}

/// One for each that was asked for, numbered in the order of asking.
void KinetoCollectives::make_operations(const KinetoRanks& ranks) {
  std::vector<std::uint32_t> order(asked_.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [this](std::uint32_t a, std::uint32_t b) {
    return asked_[a].start < asked_[b].start;
  });
  const Name source("replay");
  for (const std::uint32_t place : order) {
    Asked& asked = asked_[place];
    asked.operation = static_cast<std::uint32_t>(operations_.size());
    KinetoOperation operation;
    operation.issued_ns = asked.start;
    operation.issued.duration_ns = asked.end - asked.start;
    operation.issued.backend = asked.backend;
    operation.issued.source = source;
    operation.issued.thread = asked.thread_id;
    make_operation(asked.terms, ranks, operation);
    roles_.push_back({asked.number, asked.operation, true, false, false});
  }
}

void KinetoCollectives::match(const KinetoRanks& ranks) {
  std::sort(asked_.begin(), asked_.end(), before);
  std::sort(comms_.begin(), comms_.end(), before);
  if (!asked_.empty()) {
    claim_comms();
  } else {
    std::copy_if(comms_.begin(), comms_.end(), std::back_inserter(asked_),
                 [](const Asked& comms) { return !comms.wait; });
  }
  for (std::uint32_t place = 0; place < asked_.size(); ++place) {
    if (asked_[place].external_id != KinetoArgs::kAbsent) {
      externals_.push_back({asked_[place].external_id, place});
    }
  }
  std::stable_sort(externals_.begin(), externals_.end(),
                   [](const External& a, const External& b) { return a.id < b.id; });
  std::stable_sort(launches_.begin(), launches_.end(),
                   [](const Launch& a, const Launch& b) { return a.correlation < b.correlation; });
  make_operations(ranks);
  match_kernels(ranks);
  std::sort(roles_.begin(), roles_.end(),
            [](const RoleOf& a, const RoleOf& b) { return a.number < b.number; });
  launches_ = {};
  comms_ = {};
  externals_ = {};
}

/// By the launch with its correlation, in the annotation around that; else by the id that Kineto
/// gives to the operator and to the work that came of it.
std::uint32_t KinetoCollectives::operation_of(const Kernel& kernel) const {
  const auto launch = std::lower_bound(
      launches_.begin(), launches_.end(), kernel.correlation,
      [](const Launch& l, std::int64_t correlation) { return l.correlation < correlation; });
  if (launch != launches_.end() && launch->correlation == kernel.correlation) {
    const std::size_t place = innermost(asked_, launch->thread, launch->time, launch->time);
    if (place < asked_.size()) return asked_[place].operation;
  }
  // Older traces repeat the correlation there, which is no id of an operator.
  if (kernel.external_id == kernel.correlation) return kNone;
  const auto external =
      std::lower_bound(externals_.begin(), externals_.end(), kernel.external_id,
                       [](const External& e, std::int64_t id) { return e.id < id; });
  const bool known = external != externals_.end() && external->id == kernel.external_id;
  return known ? asked_[external->place].operation : kNone;
}

void KinetoCollectives::match_kernels(const KinetoRanks& ranks) {
  std::vector<std::uint32_t> operation_of_kernel;
  operation_of_kernel.reserve(kernels_.size());
  for (const Kernel& kernel : kernels_) {
    std::uint32_t place = operation_of(kernel);
    if (place == kNone) {  // asked for before the recording began
      place = static_cast<std::uint32_t>(operations_.size());
      KinetoOperation operation;
      operation.issued_ns = kernel.start;
      operation.issued.backend = Name(collective::kNccl);
      operation.issued.source = Name("replay");
      make_operation(kernel.terms, ranks, operation);
    }
    add_kernel(kernel, operations_[place]);
    operation_of_kernel.push_back(place);
  }
  for (std::size_t i = 0; i < kernels_.size(); ++i) {
    KinetoOperation& operation = operations_[operation_of_kernel[i]];
    const std::uint64_t number = kernels_[i].number;
    roles_.push_back({number, operation_of_kernel[i], false, number == operation.first_kernel,
                      number == operation.last_kernel});
  }
}

/// Several kernels may do one collective: the first to begin starts it, the last to end completes
/// it.
void KinetoCollectives::add_kernel(const Kernel& kernel, KinetoOperation& operation) {
  collective::Issued& issued = operation.issued;
  if (operation.kernels == 0 || kernel.start < operation.started_ns) {
    operation.started_ns = kernel.start;
    operation.first_kernel = kernel.number;
    operation.kernel = kernel.name;
    issued.device = kernel.device;
    issued.correlation = static_cast<std::uint64_t>(std::max<std::int64_t>(kernel.correlation, 0));
    if (kernel.stream >= 0) issued.stream = static_cast<std::uint64_t>(kernel.stream);
  }
  if (operation.kernels == 0 || kernel.end >= operation.completed_ns) {
    operation.completed_ns = kernel.end;
    operation.last_kernel = kernel.number;
  }
  ++operation.kernels;
}

KinetoRole KinetoCollectives::role_of(std::uint64_t record_number) {
  if (cursor_ > 0 && roles_[cursor_ - 1].number >= record_number) cursor_ = 0;  // read again
  while (cursor_ < roles_.size() && roles_[cursor_].number < record_number) ++cursor_;
  if (cursor_ == roles_.size() || roles_[cursor_].number != record_number) return {};
  const RoleOf& role = roles_[cursor_];
  return {&operations_[role.operation], role.issues, role.starts, role.completes};
}

}  // namespace ringmain::replay
