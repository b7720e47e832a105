// Who sees that a stream has come to a ticket, and says so? One thread, which looks at the lanes
// that have something armed, and sleeps where none has.
#include <algorithm>
#include <cstdint>

#include "engine/system/clock.hpp"

#include "adapters/sources/cuda/completions_core.hpp"

namespace ringmain::cuda {
namespace {

using engine::now_ns;

constexpr std::int64_t kNapMinNs = 10'000;
constexpr std::int64_t kWatchMaxNs = 250'000'000;
constexpr std::uint32_t kErrorsMax = 3;  // of one event, while its context lives

class Poller {
 public:
  explicit Poller(CompletionsCore& core) noexcept : core_(core) {}
  void run() noexcept;

 private:
  /// Publishes what has completed. True: there was something.
  bool look() noexcept;
  bool look_at(Lane& lane) noexcept;
  bool look_at(NodeTickets& node) noexcept;
  [[nodiscard]] bool reached(Lane& lane, const Slot& slot, std::uint64_t word) noexcept;
  [[nodiscard]] bool anything() const noexcept;

  void tell(const Lane& lane, const Slot& slot, Outcome outcome, std::int32_t result) noexcept;
  void publish(const Completion& completion) noexcept;
  void tell_of_loss(std::int32_t result) noexcept;
  void end_head(Lane& lane, Outcome outcome, std::int32_t result) noexcept;
  /// No ticket is left afterwards, and none comes.
  void end_rest(Outcome outcome, std::int32_t result) noexcept;

  /// Something has ended: looks again soon, and asks the driver late.
  void moved() noexcept;
  void watch() noexcept;
  void rest(std::int64_t now) noexcept;
  [[nodiscard]] bool given_up() const noexcept {
    const std::int64_t at = core_.give_up_ns;
    return core_.ending && at >= 0 && now_ns() >= at;
  }

  CompletionsCore& core_;
  bool pending_ = false;  // after look(): something is armed that was not reached
  std::uint64_t room_ = 0;
  std::int64_t seen_ns_ = 0;
  std::int64_t moved_ns_ = 0, nap_ns_ = kNapMinNs, watch_ns_ = 0, watch_at_ns_ = 0;
};

void Poller::publish(const Completion& completion) noexcept {
  // The bus would refuse what finds no room: here there is time to wait for it.
  while (room_ == 0) {
    const std::uint64_t in_flight = core_.publisher.ledger().in_flight;
    const std::uint64_t capacity = core_.options.capacity_events;
    room_ = capacity > in_flight ? capacity - in_flight : 0;
    if (room_ != 0) break;
    core_.bell->nap(1'000'000, [] { return false; });
  }
  const PublishResult result = core_.publisher.publish(completion);
  if (result == PublishCode::accepted && room_ != 0) --room_;
  if (!result) ++core_.count.refused;
}

void Poller::tell(const Lane& lane, const Slot& slot, Outcome outcome,
                  std::int32_t result) noexcept {
  Completion told;
  told.ticket = lane.ticket(slot.value);
  told.tag = slot.tag;
  told.stream = reinterpret_cast<std::uintptr_t>(lane.stream);
  told.armed_ns = slot.armed_ns;
  told.duration_ns = seen_ns_ - slot.armed_ns;
  told.result = result;
  told.device = core_.device;
  told.thread = lane.thread;
  told.lane = lane.number;
  told.outcome = outcome;
  told.mechanism = core_.strategy == Strategy::memory_writes   ? Mechanism::memory_write
                   : core_.strategy == Strategy::event_queries ? Mechanism::event_query
                                                               : Mechanism::host_function;
  publish(told);
}

void Poller::end_head(Lane& lane, Outcome outcome, std::int32_t result) noexcept {
  const std::uint64_t tail = lane.tail;
  auto& count = outcome == Outcome::completed ? core_.count.completed
                : outcome == Outcome::failed  ? core_.count.failed
                                              : core_.count.abandoned;
  ++count;  // before it is heard, so that who hears it finds it counted
  tell(lane, lane.slots[tail & lane.mask], outcome, result);
  lane.tail = tail + 1;  // the slot is the thread's again
  lane.errors = 0;
}

bool Poller::reached(Lane& lane, const Slot& slot, std::uint64_t word) noexcept {
  if (core_.strategy != Strategy::event_queries) return slot.value <= word;
  const std::int32_t result = own(core_.driver.event_query, slot.event);
  if (result == kDone) return true;
  lane.errors = is_fatal(result) ? lane.errors + 1 : 0;
  if (lane.errors != 0 && is_fatal(core_.ask())) {
    watch_at_ns_ = 0;  // the context has met an error: all lanes have, and watch() says so
  } else if (lane.errors >= kErrorsMax) {
    end_head(lane, Outcome::failed, result);  // the event is of no use, and its stream lives
  }
  return false;
}

bool Poller::look_at(Lane& lane) noexcept {
  const std::uint64_t before = lane.tail;
  const std::uint64_t armed = lane.armed();
  if (before == armed) return false;
  const std::uint64_t word = lane.word == nullptr ? 0 : lane.word->reached.load();
  seen_ns_ = now_ns();
  while (lane.tail != armed && reached(lane, lane.slots[lane.tail & lane.mask], word))
    end_head(lane, Outcome::completed, kDone);
  pending_ |= lane.tail != armed;
  return lane.tail != before;
}

bool Poller::look_at(NodeTickets& node) noexcept {
  const std::uint64_t called = node.called;
  const bool moved = node.told != called;
  while (node.told != called) {
    Completion told;
    told.ticket = std::uint64_t{node.lane + 1} << Lane::kValueBits | ++node.told;
    told.tag = node.tag;
    told.result = kDone;
    told.device = core_.device;
    told.thread = node.thread;
    told.lane = node.lane;
    told.mechanism = Mechanism::host_node;
    ++core_.count.of_nodes;
    ++core_.count.completed;
    publish(told);
  }
  return moved;
}

void Poller::tell_of_loss(std::int32_t result) noexcept {
  ContextLost told;
  told.context = core_.context_id;
  core_.for_each_lane([&](const Lane& lane) { told.pending += lane.armed() - lane.tail; });
  told.result = result;
  told.device = core_.device;
  if (!core_.loss.publish(told)) ++core_.count.refused;
}

bool Poller::look() noexcept {
  bool moved = false;
  pending_ = false;
  core_.for_each_lane([&](Lane& lane) { moved |= look_at(lane); });
  for (NodeTickets* node = core_.nodes; node != nullptr; node = node->next) moved |= look_at(*node);
  return moved;
}

bool Poller::anything() const noexcept {
  bool found = core_.ending || core_.doubted;
  core_.for_each_lane([&](const Lane& lane) { found |= lane.tail != lane.armed(); });
  for (const NodeTickets* node = core_.nodes; node != nullptr; node = node->next)
    found |= node->told != node->called;
  return found;
}

void Poller::end_rest(Outcome outcome, std::int32_t result) noexcept {
  core_.seal();
  (void)look();  // what was reached by now has completed, and all heads stand
  if (outcome == Outcome::failed) tell_of_loss(result);
  core_.for_each_lane([&](Lane& lane) {
    seen_ns_ = now_ns();
    while (lane.tail != lane.armed()) end_head(lane, outcome, result);
  });
  pending_ = false;
}

void Poller::watch() noexcept {
  // One answer may be of that moment only.
  std::int32_t result = core_.ask();
  if (is_fatal(result)) result = core_.ask();
  if (is_fatal(result)) {
    core_.lost = result;
    end_rest(Outcome::failed, result);
  }
  watch_ns_ = std::min(engine::times_ns(2, watch_ns_), kWatchMaxNs);
  watch_at_ns_ = now_ns() + watch_ns_;
}

/// Something is armed, and nothing has moved.
void Poller::rest(std::int64_t now) noexcept {
  const std::int64_t spin_ns = engine::ns_of_us(core_.options.spin_us.count());
  if (now - moved_ns_ < spin_ns) return engine::pause();
  std::int64_t limit = std::min(nap_ns_, std::max<std::int64_t>(watch_at_ns_ - now, 1));
  const std::int64_t give_up = core_.give_up_ns;
  if (core_.ending && give_up >= 0)
    limit = std::min(limit, std::max<std::int64_t>(give_up - now, 1));
  const bool was_ending = core_.ending;
  core_.bell->nap(limit, [&] { return (core_.ending && !was_ending) || core_.doubted; });
  const std::int64_t longest = engine::ns_of_us(core_.options.sleep_us_max.count());
  nap_ns_ = std::min(engine::times_ns(2, nap_ns_), std::max(longest, kNapMinNs));
}

void Poller::moved() noexcept {
  moved_ns_ = now_ns();
  nap_ns_ = kNapMinNs;
  watch_ns_ = engine::ns_of_us(core_.options.watch_us.count());
  watch_at_ns_ = engine::sum_ns(moved_ns_, watch_ns_);
}

void Poller::run() noexcept {
  moved();  // its first look may find tickets already
  for (;;) {
    const bool any = look();
    if (core_.ending && (!pending_ || given_up())) break;
    if (core_.doubted.exchange(false)) watch();
    if (!pending_ && !any) core_.bell->park([this] { return anything(); });
    if (!pending_ || any) {
      moved();
      continue;
    }
    if (now_ns() >= watch_at_ns_) watch();
    if (pending_) rest(now_ns());
  }
  end_rest(Outcome::abandoned, kNoResult);
}

/// Takes back what the driver has of ours, but for what a stream may still write to or call.
void let_go(CompletionsCore& core) noexcept {
  bool may_come = core.count.failed + core.count.abandoned != 0;
  core.for_each_lane([&](const Lane& lane) { may_come |= lane.may_come(); });
  const bool lives = core.lost == 0;
  if (lives) {
    core.for_each_lane([&](const Lane& lane) {
      for (std::uint32_t i = 0; i <= lane.mask && !lane.may_come(); ++i) {
        if (void* const event = lane.slots[i].event) (void)own(core.driver.event_destroy, event);
      }
    });
    (void)own(core.driver.stream_destroy, core.own_stream);
  }
  if (core.words != nullptr && core.lost != kContextGone) {
    const bool free =
        lives && !may_come &&
        (core.words->device == 0 || own(core.driver.host_unregister, core.words->begin()) == kDone);
    if (!free) core.words->keep();
  }
  // The driver may call with one of the slots' addresses.
  if (core.strategy == Strategy::host_functions && may_come) core.keep();
}

}  // namespace

void poll(CompletionsCore& core) noexcept {
  Poller(core).run();
  let_go(core);
  core.finished = CompletionsCore::kFinished;
  engine::futex_wake(core.finished, 1);
}

}  // namespace ringmain::cuda
