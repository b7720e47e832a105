#include "adapters/sources/collective/flight_recorder_ring.hpp"

#include <algorithm>
#include <array>
#include <sys/prctl.h>
#include <time.h>

#include "engine/system/clock.hpp"

#include "adapters/launch/tid.hpp"
#include "adapters/sources/collective/communicator_core.hpp"

namespace ringmain::collective::detail {
namespace {

void add(FlightTensors& to, const Tensor& tensor) {
  // An output that only the root has.
  if (tensor.data == nullptr && tensor.bytes == 0 && tensor.dtype == Name()) return;
  to.sizes.emplace_back(tensor.sizes.begin(), tensor.sizes.end());
  to.dtypes.push_back(tensor.dtype);
}

std::int64_t time_of_day_ns() noexcept {
  timespec now{};
  (void)::clock_gettime(CLOCK_REALTIME, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

/// torchcomms' word where it has one: it tells all_gather from all_gather_single.
Name word_of(const PreHookArgs& args) noexcept {
  static const auto words = [] {
    std::array<Name, kOpNames> all;
    for (std::size_t i = 0; i < kOpNames; ++i) all[i] = Name(to_string(static_cast<OpName>(i)));
    return all;
  }();
  const auto number = static_cast<std::size_t>(args.name);
  return number < kOpNames ? words[number] : args.op;
}

std::string this_thread_name() {
  char name[16] = {};
  (void)::prctl(PR_GET_NAME, name);
  return name;
}

}  // namespace

void FlightRing::grow(std::size_t max_entries) {
  const std::lock_guard lock(mutex_);
  capacity_ = std::max(capacity_, max_entries);
}

std::size_t FlightRing::group_of(const CommunicatorCore& comm) {
  const std::uint64_t key =
      std::uint64_t{comm.name.id()} << 32 | static_cast<std::uint32_t>(comm.rank);
  const auto found = group_by_name_.find(key);
  if (found != group_by_name_.end()) return found->second;
  FlightGroup made;
  made.name = comm.name.view();
  made.description = comm.description.view();
  made.backend = comm.backend.view();
  made.ranks = comm.ranks;
  made.rank = comm.rank;
  made.size = comm.size;
  groups_.push_back(std::move(made));
  group_by_name_.emplace(key, groups_.size() - 1);
  return groups_.size() - 1;
}

void FlightRing::add_group(const CommunicatorCore& comm) {
  const std::lock_guard lock(mutex_);
  (void)group_of(comm);
  enabled_ = true;
}

void FlightRing::drop_oldest() noexcept {
  const FlightEntry& oldest = entries_.front();
  FlightGroup& group = groups_[oldest.group];
  ++group.dropped;
  if (!oldest.is_p2p) group.whole_from = oldest.sequence + 1;
  const auto open = open_.find(oldest.op_id);
  if (open != open_.end() && open->second.last == oldest.record_id) open_.erase(open);
  entries_.pop_front();
}

void FlightRing::append(FlightEntry entry) {
  entry.record_id = next_;
  entries_.push_back(std::move(entry));  // the last that may fail
  ++next_;
  if (entries_.size() > capacity_) drop_oldest();
}

/// The sends and receives of a batch, before the entry that closes it.
void FlightRing::add_parts(const FlightEntry& of, const BatchOpIssue& batch, std::int32_t rank) {
  for (const BatchPart& part : batch.parts) {
    FlightEntry entry = of;
    static const Name send("send"), recv("recv");
    entry.op = part.sends ? send : recv;
    entry.from = part.sends ? rank : part.peer;
    entry.to = part.sends ? part.peer : rank;
    add(part.sends ? entry.input : entry.output, part.tensor);
    append(std::move(entry));
  }
}

void FlightRing::issued(const PreHookArgs& args, const CommunicatorCore& comm) {
  if (args.name == OpName::finalize) return;  // the end of a group is no operation
  const ArgumentsView view = view_of(*args.arguments);
  FlightEntry entry;
  entry.op_id = args.op_id;
  entry.op = word_of(args);
  entry.sequence = static_cast<std::int64_t>(args.sequence);
  entry.is_p2p = view.point_to_point;
  entry.created_ns = time_of_day_ns();
  entry.created_monotonic_ns = engine::now_ns();
  entry.timeout_ms = std::max<std::int64_t>(comm.timeout_ns.load() / 1'000'000, 0);
  entry.thread = static_cast<std::int32_t>(run::this_tid());
  entry.thread_name = this_thread_name();
  for (const Tensor& tensor : view.input) add(entry.input, tensor);
  for (const Tensor& tensor : view.output) add(entry.output, tensor);
  if (args.name == OpName::send) entry.from = comm.rank, entry.to = view.peer;
  if (args.name == OpName::recv) entry.from = view.peer, entry.to = comm.rank;

  const std::lock_guard lock(mutex_);
  if (open_.contains(args.op_id)) return;  // a part of what another communicator was called for
  entry.group = group_of(comm);
  FlightGroup& group = groups_[entry.group];
  if (entry.is_p2p) {
    entry.transfer = ++group.transfers;
  } else if (entry.sequence != 0) {
    group.enqueued = entry.sequence;
  }
  const std::uint64_t first = next_;
  try {
    const auto* const batch = std::get_if<BatchOpIssue>(args.arguments);
    if (batch != nullptr) add_parts(entry, *batch, comm.rank);
    append(std::move(entry));
    // Last: a batch of more members than the ring holds has dropped its first ones by now.
    open_.emplace(args.op_id, Entries{first, next_ - 1});
  } catch (...) {
    forget_from(first);
    throw;
  }
}

/// An operation that there is no memory for is not there in part: its end would go by the number
/// that the next one gets.
void FlightRing::forget_from(std::uint64_t first) noexcept {
  while (!entries_.empty() && entries_.back().record_id >= first) entries_.pop_back();
  next_ = first;
}

template <class F>
void FlightRing::each_of(Entries which, F change) noexcept {
  if (entries_.empty()) return;
  const std::uint64_t oldest = entries_.front().record_id;
  for (std::uint64_t id = std::max(which.first, oldest); id <= which.last && id < next_; ++id)
    change(entries_[id - oldest]);
}

void FlightRing::started(std::uint64_t op_id) noexcept {
  const std::int64_t now = time_of_day_ns();
  const std::lock_guard lock(mutex_);
  const auto open = open_.find(op_id);
  if (open == open_.end()) return;
  each_of(open->second, [&](FlightEntry& entry) {
    if (entry.state != FlightState::scheduled) return;
    entry.state = FlightState::started;
    entry.started_ns = now;
    if (!entry.is_p2p && entry.sequence != 0) groups_[entry.group].started = entry.sequence;
  });
}

void FlightRing::ended(const CompletionHookArgs& args) noexcept {
  const std::int64_t now = time_of_day_ns();
  const std::int64_t monotonic = engine::now_ns();
  const std::lock_guard lock(mutex_);
  const auto open = open_.find(args.op_id);
  if (open == open_.end()) return;
  const Entries which = open->second;
  open_.erase(open);
  // Nobody knows what became of it: it stays as it is.
  if (args.failed != nullptr && args.failed->how == How::unknown) return;
  each_of(which, [&](FlightEntry& entry) {
    entry.retired = true;
    if (args.completed == nullptr) return;
    entry.state = FlightState::completed;
    entry.completed_ns = now;
    const std::int64_t since_issued = monotonic - entry.created_monotonic_ns;
    entry.duration_ns =
        args.completed->duration_ns > 0 ? args.completed->duration_ns : since_issued;
    if (!entry.is_p2p && entry.sequence != 0) {
      FlightGroup& group = groups_[entry.group];
      group.completed = std::max(group.completed, entry.sequence);
    }
  });
}

void FlightRing::reset() noexcept {
  const std::lock_guard lock(mutex_);
  entries_.clear();
  open_.clear();
  next_ = 0;
  for (FlightGroup& group : groups_) {
    group.dropped = 0;
    group.whole_from = -1;
  }
}

std::size_t FlightRing::size() const noexcept {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

bool FlightRing::enabled() const noexcept {
  const std::lock_guard lock(mutex_);
  return enabled_;
}

FlightSnapshot FlightRing::copy() const {
  const std::lock_guard lock(mutex_);
  return {groups_, entries_};
}

}  // namespace ringmain::collective::detail
