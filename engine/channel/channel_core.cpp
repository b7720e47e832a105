#include "engine/channel/channel_core.hpp"

#include <algorithm>
#include <new>
#include <unistd.h>

#include "engine/publish/missed.hpp"
#include "engine/publish/queue_ops.hpp"

namespace ringmain::engine {
namespace {

Atomic<std::uint32_t> last_watch_id{0};

std::uint32_t next_watch_id() noexcept {
  // Relaxed: a number, no more. 0 means none.
  const std::uint32_t id = last_watch_id.fetch_add(1, std::memory_order_relaxed) + 1;
  return id != 0 ? id : next_watch_id();
}

}  // namespace

ChannelCore::ChannelCore(Ref<ChannelHost> host, ChannelCoreOptions options)
    : host_(std::move(host)), options_(std::move(options)), manual_time_(host_->manual_time()) {
  if (options_.latency_every != 0) latency_ = std::make_unique<Histogram>();
  std::uint32_t state = 0;
  if (barrier_is_fence()) state |= ChannelLine::kFenced;
  if (options_.latency_every != 0) state |= ChannelLine::kSampled;
  if (options_.merged) {
    state |= ChannelLine::kTicketed;
    ticket_wishes_ = 1;  // for ever
  }
  if (inert()) state = forked_state(*host_, options_.named());
  line.state.store(state, std::memory_order_relaxed);  // relaxed: nobody else has it yet
}

bool ChannelCore::inert() const noexcept {
  return host_->forked();
}

ChannelCore::~ChannelCore() {
  for (std::uint32_t i = 0; i < lane_count(); ++i) free_lane(&lane(i));
  for (unsigned c = 0; c < queues_.size(); ++c) {
    if (queues_[c] != nullptr) queue_ops(c).destroy(queues_[c]);
  }
  delete thread_lanes_.load(std::memory_order_relaxed);    // relaxed: we are the last
  const int fd = pull.fd.load(std::memory_order_relaxed);  // relaxed: as above
  if (fd >= 0) ::close(fd);
}

// --- subscribers ---

bool ChannelCore::attach(Subscriber* subscriber) noexcept {
  if (inert()) return false;
  const std::lock_guard lock(mutex_);
  subscriber->watch_id = next_watch_id();
  // Before another thread can find it on a list.
  if (options_.parallel || subscriber->judge != nullptr) subscriber->writers = Writers::many;
  subscriber->shown_by = this;
  if (subscriber->judge != nullptr) {
    subscriber->cells.make(lane_count());
    had_inline_ = true;
  }
  try {
    (subscriber->judge != nullptr ? inline_list_ : list_).add(subscriber);
  } catch (const std::bad_alloc&) {
    return false;
  }
  update_state();
  host_->inbox().budget(subscriber->budget_ns);
  return true;
}

void ChannelCore::unlist(Subscriber* subscriber) noexcept {
  if (inert()) return;
  const std::lock_guard lock(mutex_);
  try {
    const bool called_inline = subscriber->judge != nullptr;
    SubscriberList& list = called_inline ? inline_list_ : list_;
    if (!list.remove(subscriber)) return;
    update_state();
    if (subscriber->budget_ns != 0) host_->inbox().budget_left();
    if (!list.due()) return;
    if (called_inline) {
      list.reclaim(inline_readings());
    } else {
      host_->reclaim(list);
    }
  } catch (const std::bad_alloc&) {
    // It stays listed and closed: skipped at every batch, freed with the channel.
  }
}

std::size_t ChannelCore::subscribers() const noexcept {
  if (inert()) return 0;
  const std::lock_guard lock(mutex_);
  return list_.size() + inline_list_.size();
}

bool ChannelCore::calling(const Subscriber& subscriber) const noexcept {
  if (forked()) return true;  // nobody claims captures here: they are the parent's
  if (subscriber.judge == nullptr) return host_->calling(subscriber);
  for (std::uint32_t i = 0, n = lane_count(); i < n; ++i) {
    for (const Shown& level : lane(i).inlined.shown) {
      if (level.load(std::memory_order_acquire) == &subscriber) return true;  // g.shown
    }
  }
  return false;
}

/// Complete: a lane is made, and given to its next publisher, under this lock.
std::vector<const Reading*> ChannelCore::inline_readings() const {
  const std::uint32_t lanes = lane_count();
  std::vector<const Reading*> all;
  all.reserve(std::size_t{lanes} * Lane::kInlineDepthMax);
  for (std::uint32_t i = 0; i < lanes; ++i) {
    for (const Reading& level : lane(i).inlined.readings) all.push_back(&level);
  }
  return all;
}

void ChannelCore::update_state() noexcept {
  enum : std::uint32_t {
    kOurs = ChannelLine::kHeard | ChannelLine::kStamped | ChannelLine::kInline |
            ChannelLine::kUnqueued | ChannelLine::kRecorded
  };
  const bool queued = list_.size() != 0;
  const bool seen = inline_list_.size() != 0;
  const bool recorded = recordings() != 0;
  std::uint32_t want = 0;
  if (queued || seen || recorded) want |= ChannelLine::kHeard;
  if (list_.any_wants_time()) want |= ChannelLine::kStamped;
  if (seen) want |= ChannelLine::kInline;
  if (recorded) want |= ChannelLine::kRecorded;
  if ((seen || recorded) && !queued) want |= ChannelLine::kUnqueued;
  // Written on change only, as publishers read this line at every event. All bits change at once:
  // kHeard before kInline would queue an event that has no subscriber on a worker.
  const std::uint32_t is =
      line.state.load(std::memory_order_relaxed) & kOurs;  // relaxed: changed under our lock
  if ((want & ~is) != 0) line.state.fetch_or(want & ~is, std::memory_order_seq_cst);  // g.listening
  if ((is & ~want) != 0)
    line.state.fetch_and(~(is & ~want), std::memory_order_seq_cst);  // g.listening
  const bool may_lie = list_.all_patient() && !options_.parallel && !options_.merged;
  // Relaxed: a rest that begins meanwhile is like one that began before. A subscriber that is not
  // patient ends it.
  if (patient.exchange(may_lie, std::memory_order_relaxed) && !may_lie) host_->end_rests();
  host_->inbox().interest_changed();
}

std::int64_t ChannelCore::smallest_budget_ns() const noexcept {
  std::int64_t smallest = 0;
  for_each_subscriber([&smallest](const Subscriber& s) {
    if (s.budget_ns != 0 && (smallest == 0 || s.budget_ns < smallest)) smallest = s.budget_ns;
  });
  return smallest;
}

void ChannelCore::trim() noexcept {
  const std::lock_guard lock(mutex_);
  try {
    if (list_.retired() != 0) host_->reclaim(list_);
    if (inline_list_.retired() != 0) inline_list_.reclaim(inline_readings());
  } catch (const std::bad_alloc&) {
    // The next look tries again.
  }
}

void ChannelCore::close_line() noexcept {
  line.state.fetch_or(ChannelLine::kClosing, std::memory_order_seq_cst);  // l.closing
}

void ChannelCore::become_forked() noexcept {
  line.become_forked();
  line.state.fetch_or(forked_state(*host_, options_.named()),
                      std::memory_order_relaxed);  // relaxed: nobody else is there
  // If this thread is inside the callback of one of them, that batch, or row, ends after it.
  for (const SubscriberList* list : {&list_, &inline_list_}) {
    if (const Snapshot* now = list->current().load(std::memory_order_acquire)) {  // n.snapshot
      for (Subscriber* s : now->subscribers) (void)s->gate.close();
    }
  }
}

void ChannelCore::begin_listening() noexcept {
  line.leased.store(1, std::memory_order_release);  // e.leased: its reader is awake
  line.state.fetch_or(ChannelLine::kHeard, std::memory_order_seq_cst);  // g.listening
}

}  // namespace ringmain::engine
