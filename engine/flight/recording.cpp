#include "engine/flight/recording.hpp"

#include <array>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/system/assert.hpp"
#include "engine/system/thread_exit.hpp"

namespace ringmain::engine::flight {
namespace {

enum : std::size_t { kLiveMax = 64 };
/// All recordings of the process, for threads that end.
constinit std::array<Atomic<Recording*>, kLiveMax> live{};
/// 1: a thread has that place.
constinit std::array<Atomic<std::uint32_t>, Recording::kThreadsMax> places{};
/// Events whose thread could not get inside.
constinit Atomic<std::uint64_t> not_inside{0};

// Set while a place is taken: signal handlers must not come in then.
thread_local bool taking __attribute__((tls_model("initial-exec"))) = false;

}  // namespace

thread_local constinit std::uint32_t ThreadPlace::mine __attribute__((tls_model("initial-exec"))) =
    ThreadPlace::kNone;

void ThreadPlace::end(void*) {
  const std::uint32_t had = mine;
  mine = kNever;
  if (had == kNone || had == kNever) return;
  if (Recording::enter()) {
    for (Atomic<Recording*>& one : live) {
      Recording* const recording = one.load(std::memory_order_acquire);  // z.recorded
      if (recording != nullptr) recording->release_rings_of(had - 1);
    }
    Recording::leave();
  }
  // Rings that were not released are the next thread's that takes the place.
  places[had - 1].store(0, std::memory_order_release);  // z.claimed
}

namespace {
constinit ThreadExit at_thread_exit{&ThreadPlace::end};
}  // namespace

std::uint32_t ThreadPlace::take() noexcept {
  if (taking) return kNone;
  taking = true;
  order_for_handlers();
  if (mine != kNone) {  // a handler came before that, and has taken one
    taking = false;
    return mine;
  }
  std::uint32_t found = kNever;
  for (std::uint32_t i = 0; i < Recording::kThreadsMax; ++i) {
    std::uint32_t free = 0;
    if (places[i].load(std::memory_order_relaxed) != 0 ||  // relaxed: taken below
        !places[i].compare_exchange_strong(free, 1, std::memory_order_acquire,  // z.claimed
                                           std::memory_order_relaxed)) {
      continue;
    }
    found = i + 1;
    break;
  }
  if (found != kNever && !at_thread_exit.ask(&places[found - 1])) {
    places[found - 1].store(0, std::memory_order_release);  // z.claimed
    found = kNever;
  }
  mine = found;
  order_for_handlers();
  taking = false;
  return found;
}

constinit Presence Recording::presence;

Recording::Recording(std::unique_ptr<RingFile> file, const std::vector<std::string_view>& patterns)
    : file_(std::move(file)),
      rings_(std::make_unique<Atomic<std::uintptr_t>[]>(kThreadsMax * patterns.size())) {
  RINGMAIN_ASSERT(!patterns.empty() && patterns.size() <= kPatternsMax);
  for (const std::string_view pattern : patterns) patterns_.push_back(file_->add_pattern(pattern));
  not_inside_told_ = not_inside.load(std::memory_order_relaxed);  // relaxed: a count
  for (Atomic<Recording*>& one : live) {
    Recording* none = nullptr;
    if (one.compare_exchange_strong(none, this, std::memory_order_acq_rel)) return;  // z.recorded
  }
  // Where there is no room for it, threads that end leave their rings to the next ones of their
  // places.
}

Recording::~Recording() {
  for (Atomic<Recording*>& one : live) {
    Recording* mine = this;
    if (one.compare_exchange_strong(mine, nullptr, std::memory_order_acq_rel)) break;  // z.recorded
  }
  wait_until_none_inside();  // threads that end have looked at the list
}

void Recording::count_not_inside() noexcept {
  not_inside.fetch_add(1, std::memory_order_relaxed);  // relaxed: a count
}

const Recorded* Recording::add_channel(std::string_view name, std::size_t pattern,
                                       std::uint64_t schema, const OperationRule& operation) {
  auto made = std::make_unique<Recorded>();
  made->in = this;
  made->pattern = static_cast<std::uint32_t>(pattern);
  made->schema = schema;
  made->operation = operation;
  made->channel = file_->add_channel(name, schema);
  made->source = file_->add_source(made->channel, 0, 0, {});
  const std::lock_guard lock(mutex_);
  channels_.push_back(std::move(made));
  return channels_.back().get();
}

std::uint16_t Recording::add_source(const Recorded& as, std::uint32_t publisher) noexcept {
  if (ThreadPlace::mine == ThreadPlace::kNone) (void)ThreadPlace::take();
  char name[16] = {};
  (void)::prctl(PR_GET_NAME, name, 0, 0, 0);
  const auto thread = static_cast<std::uint32_t>(::syscall(SYS_gettid));
  const std::uint16_t made = file_->add_source(as.channel, publisher, thread, name);
  return made != 0 ? made : as.source;
}

RingWriter* Recording::claim(std::uint32_t pattern) noexcept {
  std::uint32_t mine = ThreadPlace::mine;
  if (mine == ThreadPlace::kNone) mine = ThreadPlace::take();
  if (mine == ThreadPlace::kNone || mine == ThreadPlace::kNever) return nullptr;
  Atomic<std::uintptr_t>& word = ring_of(mine - 1, pattern);
  std::uintptr_t has = word.load(std::memory_order_relaxed);  // relaxed: our own
  // In one step, as a handler that comes before it claims one itself. Relaxed: our own.
  if (has != kNone || !word.compare_exchange_strong(has, kClaiming, std::memory_order_relaxed)) {
    if (has > kRefused)
      return reinterpret_cast<RingWriter*>(has);  // NOLINT(performance-no-int-to-ptr)
    return nullptr;                               // kRefused, or a handler in the middle of this
  }
  order_for_handlers();
  RingWriter* const claimed = file_->claim(patterns_[pattern]);
  word.store(
      claimed == nullptr ? std::uintptr_t{kRefused} : reinterpret_cast<std::uintptr_t>(claimed),
      std::memory_order_relaxed);  // relaxed: our own
  return claimed;
}

void Recording::release_rings_of(std::size_t thread) noexcept {
  for (std::size_t i = 0; i < patterns_.size(); ++i) {
    Atomic<std::uintptr_t>& word = ring_of(thread, i);
    const std::uintptr_t has = word.exchange(kNone, std::memory_order_relaxed);  // relaxed: ours
    if (has > kRefused)
      file_->release(*reinterpret_cast<RingWriter*>(has));  // NOLINT(performance-no-int-to-ptr)
  }
}

void Recording::note_operation(const Recorded& as, const RecordHead& head,
                               const void* payload) noexcept {
  OpenOperation operation;
  as.operation.read(payload, operation);
  operation.time_ns = head.time_ns;
  operation.source = head.source;
  if (as.operation.ends)
    (void)file_->operations().end(operation.id);
  else
    (void)file_->operations().open(operation);
}

void Recording::note() noexcept {
  if (forked()) return;
  const std::uint64_t all = not_inside.load(std::memory_order_relaxed);  // relaxed: a count
  for (; not_inside_told_ != all; ++not_inside_told_) count_unrecorded();
  file_->note_clocks();
}

}  // namespace ringmain::engine::flight
