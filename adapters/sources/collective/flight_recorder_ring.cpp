#include "adapters/sources/collective/flight_recorder_ring.hpp"

#include <algorithm>
#include <array>
#include <sys/prctl.h>
#include <time.h>

#include "engine/system/clock.hpp"

#include "adapters/flight/tensor_runs.hpp"
#include "adapters/launch/tid.hpp"
#include "adapters/sources/collective/communicator_core.hpp"

namespace ringmain::collective::detail {
namespace {

/// What torchcomms writes, and PyTorch where a group of NCCL was given none.
constexpr std::int64_t kDefaultTimeoutMs = 600'000;

/// Of sizes and types: eight tensors of one dimension for each operation, but 128 KiB at least.
constexpr std::size_t kWordsEach = 16, kWordsLeast = 16384;

/// Without a tensor that only the root has.
flight::TensorRuns runs_in(std::span<std::int64_t> words, Tensors tensors) noexcept {
  flight::TensorRuns runs(words);
  for (const Tensor& one : tensors) {
    const bool none = one.data == nullptr && one.bytes == 0 && one.dtype == Name();
    if (!none) runs.add(one.dtype, one.sizes);
  }
  return runs;
}

std::int64_t time_of_day_ns() noexcept {
  timespec now{};
  (void)::clock_gettime(CLOCK_REALTIME, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

/// torchcomms' words; making them takes a lock and memory.
const std::array<Name, kOpNames>& words_of_operations() {
  static const auto words = [] {
    std::array<Name, kOpNames> all;
    for (std::size_t i = 0; i < kOpNames; ++i) all[i] = Name(to_string(static_cast<OpName>(i)));
    return all;
  }();
  return words;
}
Name word_of(OpName name) noexcept {
  return words_of_operations()[static_cast<std::size_t>(name)];
}
/// torchcomms' word where it has one: it tells all_gather from all_gather_single.
Name word_of(const PreHookArgs& args) noexcept {
  return static_cast<std::size_t>(args.name) < kOpNames ? word_of(args.name) : args.op;
}

/// As it was called when it was first recorded: asking is a system call.
std::string_view this_thread_name() noexcept {
  static constinit thread_local char name[16] = {};
  static constinit thread_local bool asked = false;
  if (!asked) (void)::prctl(PR_GET_NAME, name);
  asked = true;
  return name;
}

}  // namespace

FlightCopy::FlightCopy(std::size_t entries, std::size_t words)
    : capacity_(entries),
      word_count_(words),
      entries_(std::make_unique<FlightEntry[]>(entries)),
      words_(std::make_unique<std::int64_t[]>(words)) {}

FlightRing::Room::Room(std::size_t max_entries)
    : entry_count(std::max<std::size_t>(max_entries, 1)),
      word_count(std::max(kWordsEach * entry_count, kWordsLeast)),
      entries(std::make_unique<FlightEntry[]>(entry_count)),
      words(std::make_unique<std::int64_t[]>(word_count)),
      open(entry_count),
      for_file(std::make_shared<FlightCopy>(entry_count, word_count)) {}

FlightRing::FlightRing(std::size_t max_entries) : room_(std::make_unique<Room>(max_entries)) {
  (void)words_of_operations();
}

void FlightRing::grow(std::size_t max_entries) {
  if (const std::lock_guard lock(mutex_); max_entries <= room_->entry_count) return;
  auto larger = std::make_unique<Room>(max_entries);  // freed when the lock is
  const std::lock_guard lock(mutex_);
  if (max_entries <= room_->entry_count) return;
  larger->for_file->figures_.reserve(group_count_);
  move_to(*larger);
  room_.swap(larger);
}

/// What is there, its words without gaps.
void FlightRing::move_to(Room& room) noexcept {
  std::uint64_t at = 0;
  for (std::uint64_t id = first_; id < next_; ++id) {
    FlightEntry& to = room.entries[id % room.entry_count];
    to = entry(id);
    const std::uint64_t from = to.input.from;
    const std::size_t words = to.output.from + to.output.words - from;
    std::copy_n(&room_->words[from % room_->word_count], words, &room.words[at]);
    to.input.from = at;
    to.output.from += at - from;
    at += words;
  }
  next_word_ = at;
  room_->open.each([&room](std::uint64_t op_id, OpenOperations::Records records) {
    room.open.add(op_id, records);
  });
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
  groups_.reserve(group_count_ + 1);
  room_->for_file->figures_.reserve(group_count_ + 1);
  group_by_name_.emplace(key, group_count_);  // the last that may fail
  groups_[group_count_] = std::move(made);
  return group_count_++;
}

void FlightRing::add_group(const CommunicatorCore& comm) {
  const std::lock_guard lock(mutex_);
  (void)group_of(comm);
  enabled_ = true;
}

void FlightRing::drop_oldest() noexcept {
  const FlightEntry& oldest = entry(first_);
  FlightFigures& figures = groups_[oldest.group].figures;
  ++figures.dropped;
  if (!oldest.is_p2p) figures.whole_from = oldest.sequence + 1;
  const auto open = room_->open.find(oldest.op_id);
  if (open && open->last == oldest.record_id) room_->open.remove(oldest.op_id);
  ++first_;
}

/// Makes room in time and in words: the oldest go. What takes more than all words has none.
void FlightRing::append(FlightEntry made, Tensors input, Tensors output) noexcept {
  const bool same = input.data() == output.data() && input.size() == output.size();
  std::size_t in = runs_in({}, input).words();
  std::size_t out = same ? in : runs_in({}, output).words();
  if (in + (same ? 0 : out) > room_->word_count) in = out = 0;
  const std::size_t words = same ? in : in + out;
  const std::size_t till_end = room_->word_count - next_word_ % room_->word_count;
  if (words > till_end) next_word_ += till_end;  // not over the end
  const auto is_in_the_way = [&] {
    return next_ - first_ == room_->entry_count ||
           entry(first_).input.from + room_->word_count < next_word_ + words;
  };
  while (first_ != next_ && is_in_the_way()) drop_oldest();
  std::int64_t* const at = &room_->words[next_word_ % room_->word_count];
  (void)runs_in({at, in}, input);
  if (!same) (void)runs_in({at + in, out}, output);
  made.input = {next_word_, static_cast<std::uint32_t>(in)};
  made.output = {next_word_ + (same ? 0 : in), static_cast<std::uint32_t>(out)};
  made.record_id = next_;
  next_word_ += words;
  entry(next_++) = made;
}

/// The sends and receives of a batch, before the entry that closes it.
void FlightRing::add_parts(const FlightEntry& of, const BatchOpIssue& batch,
                           std::int32_t rank) noexcept {
  for (const BatchPart& part : batch.parts) {
    FlightEntry made = of;
    made.op = word_of(part.sends ? OpName::send : OpName::recv);
    made.from = part.sends ? rank : part.peer;
    made.to = part.sends ? part.peer : rank;
    const Tensors tensor(&part.tensor, 1);
    append(made, part.sends ? tensor : Tensors{}, part.sends ? Tensors{} : tensor);
  }
}

void FlightRing::issued(const PreHookArgs& args, const CommunicatorCore& comm) {
  if (args.name == OpName::finalize) return;  // the end of a group is no operation
  const ArgumentsView view = view_of(*args.arguments);
  FlightEntry made;
  made.op_id = args.op_id;
  made.op = word_of(args);
  made.sequence = static_cast<std::int64_t>(args.sequence);
  made.is_p2p = view.point_to_point;
  made.created_ns = time_of_day_ns();
  made.created_monotonic_ns = engine::now_ns();
  const std::int64_t timeout_ns = comm.timeout_ns.load();
  made.timeout_ms =
      timeout_ns > 0 ? std::max<std::int64_t>(timeout_ns / 1'000'000, 1) : kDefaultTimeoutMs;
  made.thread = static_cast<std::int32_t>(run::this_tid());
  made.thread_name = this_thread_name();
  if (args.name == OpName::send) made.from = comm.rank, made.to = view.peer;
  if (args.name == OpName::recv) made.from = view.peer, made.to = comm.rank;

  const std::lock_guard lock(mutex_);
  if (room_->open.find(args.op_id)) return;  // a part of what another communicator was called for
  made.group = group_of(comm);
  FlightFigures& figures = groups_[made.group].figures;
  if (made.is_p2p) {
    made.transfer = ++figures.transfers;
  } else if (made.sequence != 0) {
    figures.enqueued = made.sequence;
  }
  const std::uint64_t first = next_;
  const auto* const batch = std::get_if<BatchOpIssue>(args.arguments);
  if (batch != nullptr) add_parts(made, *batch, comm.rank);
  append(made, view.input, view.output);
  // Last: a batch of more members than the ring holds has dropped its first ones by now.
  const OpenOperations::Records made_of{first, next_ - 1};
  const auto begun = comm.ledger().open.begun_at(args.op_id);
  if (!begun) [[unlikely]] {  // over: this has been told, or will be
    const auto early = std::find_if(early_.begin(), early_.end(),
                                    [&args](const End& one) { return one.op_id == args.op_id; });
    if (early != early_.end()) return end(made_of, *early);
  }
  room_->open.add(args.op_id, made_of);
  if (begun.value_or(0) != 0) start(made_of);
}

template <class F>
void FlightRing::each_of(OpenOperations::Records which, F change) noexcept {
  for (std::uint64_t id = std::max(which.first, first_); id <= which.last && id < next_; ++id)
    change(entry(id));
}

void FlightRing::started(std::uint64_t op_id) noexcept {
  const std::lock_guard lock(mutex_);
  if (const auto open = room_->open.find(op_id)) start(*open);
}

void FlightRing::start(OpenOperations::Records which) noexcept {
  const std::int64_t now = time_of_day_ns();
  each_of(which, [&](FlightEntry& one) {
    if (one.state != FlightState::scheduled) return;
    one.state = FlightState::started;
    one.started_ns = now;
    if (!one.is_p2p && one.sequence != 0) groups_[one.group].figures.started = one.sequence;
  });
}

void FlightRing::ended(const CompletionHookArgs& args) noexcept {
  const End said{args.op_id, args.completed != nullptr, time_of_day_ns(), engine::now_ns(),
                 args.completed != nullptr ? args.completed->duration_ns : 0};
  const std::lock_guard lock(mutex_);
  const auto open = room_->open.find(args.op_id);
  if (open) room_->open.remove(args.op_id);
  // Nobody knows what became of it: it stays as it is.
  if (args.failed != nullptr && args.failed->how == How::unknown) return;
  if (open) return end(*open, said);
  early_[early_at_++ % early_.size()] = said;
}

void FlightRing::end(OpenOperations::Records which, const End& said) noexcept {
  each_of(which, [&](FlightEntry& one) {
    one.retired = true;
    if (!said.completed) return;
    one.state = FlightState::completed;
    one.completed_ns = std::max(said.time_of_day_ns, one.created_ns);
    const std::int64_t since_issued = std::max<std::int64_t>(said.ns - one.created_monotonic_ns, 0);
    one.duration_ns = said.duration_ns > 0 ? said.duration_ns : since_issued;
    if (!one.is_p2p && one.sequence != 0) {
      FlightFigures& figures = groups_[one.group].figures;
      figures.completed = std::max(figures.completed, one.sequence);
    }
  });
}

void FlightRing::reset() noexcept {
  const std::lock_guard lock(mutex_);
  room_->open.clear();
  first_ = next_ = 0;
  for (std::size_t i = 0; i < group_count_; ++i) {
    groups_[i].figures.dropped = 0;
    groups_[i].figures.whole_from = -1;
  }
}

std::size_t FlightRing::size() const noexcept {
  const std::lock_guard lock(mutex_);
  return next_ - first_;
}

bool FlightRing::enabled() const noexcept {
  const std::lock_guard lock(mutex_);
  return enabled_;
}

std::int64_t FlightRing::rank_in_the_world() const noexcept {
  const std::lock_guard lock(mutex_);
  const FlightGroup* largest = nullptr;
  for (std::size_t i = 0; i < group_count_; ++i)
    if (largest == nullptr || groups_[i].size > largest->size) largest = &groups_[i];
  if (largest == nullptr || largest->rank < 0) return -1;
  const auto at = static_cast<std::size_t>(largest->rank);
  return at < largest->ranks.size() ? largest->ranks[at] : largest->rank;
}

void FlightRing::copy_to(FlightCopy& copy) const noexcept {
  copy.groups_ = &groups_;
  copy.group_count_ = group_count_;
  for (std::size_t i = 0; i < group_count_; ++i) copy.figures_[i] = groups_[i].figures;
  copy.entry_count_ = next_ - first_;
  for (std::uint64_t id = first_; id < next_; ++id) copy.entries_[id - first_] = entry(id);
  if (first_ == next_) return;
  const std::uint64_t used = next_word_ - entry(first_).input.from;
  const std::uint64_t from = entry(first_).input.from % room_->word_count;
  const std::uint64_t till_end = std::min(used, room_->word_count - from);
  std::copy_n(&room_->words[from], till_end, &copy.words_[from]);
  std::copy_n(&room_->words[0], used - till_end, &copy.words_[0]);
}

std::unique_ptr<FlightCopy> FlightRing::copy() const {
  for (std::unique_ptr<FlightCopy> made;;) {
    std::size_t entries = 0, words = 0, groups = 0;
    {
      const std::lock_guard lock(mutex_);
      entries = room_->entry_count;
      words = room_->word_count;
      groups = group_count_;
      // It has grown between two looks at most as often as somebody makes a larger one.
      if (made != nullptr && made->capacity_ == entries && made->figures_.size() >= groups) {
        copy_to(*made);
        return made;
      }
    }
    made = std::make_unique<FlightCopy>(entries, words);
    made->figures_.reserve(groups);
  }
}

std::shared_ptr<FlightCopy> FlightRing::copy_for_file() noexcept {
  const std::lock_guard lock(mutex_);
  copy_to(*room_->for_file);
  return room_->for_file;
}

}  // namespace ringmain::collective::detail
