#include "adapters/sources/collective/collective_watchdog.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <new>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "engine/system/clock.hpp"
#include "engine/system/configure_thread.hpp"
#include "engine/system/fork.hpp"
#include "engine/system/workers_options.hpp"

#include "bus/bus_events.hpp"
#include "bus/core/bus_core.hpp"
#include "bus/core/erased.hpp"
#include "bus/core/heartbeats.hpp"

#include "events/collective.hpp"

#include "adapters/launch/channel_of.hpp"
#include "adapters/sources/collective/communicator.hpp"
#include "adapters/sources/collective/flight_recorder_hook.hpp"

namespace ringmain::collective {
namespace {

/// One incident a process: a second watchdog's dump would write over the first one's.
std::atomic<bool> called{false};

/// Waited for with a limit; whoever is later than that has it for itself.
struct Call {
  std::mutex mutex;
  std::condition_variable done_changed;
  bool done = false;
};

constexpr nanoseconds kPeriodMin = std::chrono::milliseconds(1);
/// A clock's time plus any more than this would be before it.
constexpr nanoseconds kWaitMax = std::chrono::hours(24 * 365);

/// False: it is left behind. Where there is no memory or no thread for it, it is not called: the
/// group is given up all the same.
bool call_within(const std::function<void(const OverdueOperation&)>& function,
                 const OverdueOperation& first, nanoseconds limit,
                 const std::shared_ptr<ringmain::detail::Heartbeat>& heart) try {
  const auto call = std::make_shared<Call>();
  heart->calling_since_ns = engine::now_ns();
  auto in_thread = [call, function, first, heart] {
    try {
      function(first);
    } catch (...) {  // what it cannot do is not to keep the group from being given up
    }
    heart->calling_since_ns = 0;
    const std::lock_guard lock(call->mutex);
    call->done = true;
    call->done_changed.notify_all();
  };
  {
    const engine::BlockedSignals signals_are_the_programs;
    std::thread(std::move(in_thread)).detach();
  }
  std::unique_lock lock(call->mutex);
  return call->done_changed.wait_for(lock, std::min(limit, kWaitMax),
                                     [&call] { return call->done; });
} catch (const std::bad_alloc&) {
  heart->calling_since_ns = 0;
  return true;
} catch (const std::system_error&) {
  heart->calling_since_ns = 0;
  return true;
}

/// A time below 0 would be no deadline, or no look, and nobody would learn of it.
std::optional<Error> fault_of(const WatchdogOptions& options) {
  const std::pair<const char*, nanoseconds> times[] = {
      {"from_issue", options.from_issue},
      {"from_start", options.from_start},
      {"period", options.period},
      {"before_abort_within", options.before_abort_within}};
  for (const auto& [name, time] : times) {
    if (time < nanoseconds::zero())
      return Error{Error::Code::refused, "a watchdog's " + std::string(name) + " is " +
                                             std::to_string(time.count()) +
                                             " ns; give it a time from 0"};
  }
  if (options.period > nanoseconds::zero() && options.period < kPeriodMin) {
    return Error{Error::Code::refused,
                 "a watchdog's period is " + std::to_string(options.period.count()) +
                     " ns, and it would do nothing but look; give it 1 ms or more, or 0 where the "
                     "program calls look()"};
  }
  if (options.recorder != nullptr && options.recorder->rank() < 0) {
    return Error{Error::Code::refused,
                 "a watchdog's recorder has no rank for the name of its file; give it one"};
  }
  return std::nullopt;
}

/// What is called before a group is given up; empty: nothing.
std::function<void(const OverdueOperation&)> last_words(const WatchdogOptions& options) {
  if (options.recorder == nullptr) return options.before_abort;
  return [dump = options.recorder->dumper(),
          then = options.before_abort](const OverdueOperation& first) {
    dump();
    if (then) then(first);
  };
}

}  // namespace

class Watchdog::Core {
 public:
  Core(Bus& bus, std::shared_ptr<Ledger> ledger, WatchdogOptions options)
      : bus_(bus),
        ledger_(std::move(ledger)),
        options_(std::move(options)),
        last_words_(last_words(options_)),
        heart_(ringmain::detail::begin_heartbeat(ringmain::detail::Erased::core(bus).name(),
                                                 options_.period.count())) {}

  [[nodiscard]] std::optional<Error> begin() {
    if (auto conflict = run::hold_channel(bus_, channel_)) return conflict;
    // What nobody hears is not in the ledger. Of the words on operations, failures are the rarest.
    interest_ = bus_.channel<Failed>().subscribe_inline([](const Failed&) {}, {.name = "watchdog"});
    const engine::BlockedSignals signals_are_the_programs;
    try {
      if (options_.period > nanoseconds::zero()) thread_ = std::thread([this] { watch(); });
    } catch (const std::system_error& none) {
      return Error{Error::Code::system, std::string("the system gives no thread for a watchdog: ") +
                                            none.code().message() + " (ulimit -u, or -v)"};
    }
    return std::nullopt;
  }
  ~Core() {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
    }
    wake_.notify_all();
    if (thread_.joinable()) thread_.join();
  }
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  std::vector<OverdueOperation> look() {
    const std::lock_guard lock(looking_);
    const LooksHere here(looker_, *heart_);
    const std::uint64_t number = heart_->looks.fetch_add(1) + 1;
    std::vector<OverdueOperation> found;
    std::set<std::pair<std::uint64_t, bool>> open;
    // All that are open: each has a deadline of its own.
    for (const Overdue& one : ledger_->overdue(nanoseconds(-1), nanoseconds(-1))) {
      const auto key = std::pair(one.op_id, one.has_begun);
      if (said_.contains(key)) {
        open.insert(key);
        continue;
      }
      const nanoseconds deadline = deadline_of(one);
      if (deadline <= nanoseconds::zero() || one.waits_ns <= deadline.count()) continue;
      open.insert(key);
      found.push_back({one.op_id, one.waits_ns, deadline.count(), number, one.op, one.group,
                       one.rank, one.has_begun ? OverdueSince::started : OverdueSince::issued});
    }
    said_ = std::move(open);  // what has ended is forgotten
    for (const OverdueOperation& one : found) (void)channel_.channel->post(one);
    if (!found.empty() && last_words_ && !called.exchange(true) &&
        !call_within(last_words_, found.front(), options_.before_abort_within, heart_)) {
      const std::int64_t limit = options_.before_abort_within.count();
      (void)bus_.channel<SlowSubscriber>().post({before_abort_, overdue_name_, limit, limit});
    }
    if (options_.aborts && !said_.empty()) give_groups_up();
    return found;
  }
  [[nodiscard]] std::uint64_t looks() const noexcept { return heart_->looks.load(); }
  [[nodiscard]] bool looks_here() const noexcept {
    return looker_.load() == std::this_thread::get_id();
  }
  [[nodiscard]] bool forked() const noexcept { return born_.forked(); }

 private:
  struct LooksHere {
    LooksHere(std::atomic<std::thread::id>& who, ringmain::detail::Heartbeat& beats) noexcept
        : looker(who), heart(beats) {
      looker.store(std::this_thread::get_id());
      heart.last_look_ns = engine::now_ns();
      heart.looking_since_ns = heart.last_look_ns.load();
    }
    ~LooksHere() {
      heart.looking_since_ns = 0;
      looker.store(std::thread::id());
    }
    LooksHere(const LooksHere&) = delete;
    LooksHere& operator=(const LooksHere&) = delete;
    std::atomic<std::thread::id>& looker;
    ringmain::detail::Heartbeat& heart;
  };

  [[nodiscard]] nanoseconds deadline_of(const Overdue& one) const {
    if (one.timeout_ns > 0) return nanoseconds(one.timeout_ns);
    const nanoseconds given = one.has_begun ? options_.from_start : options_.from_issue;
    if (given > nanoseconds::zero()) return given;
    return Communicator::find(bus_, one.group.view(), one.rank).timeout();
  }

  /// Those of what is overdue now: an operation that has ended, or begun, while the program was
  /// called is no reason any more. A group that there was no memory for is tried again by each look
  /// that finds the operation still open.
  void give_groups_up() noexcept try {
    for (const Overdue& one : ledger_->overdue(nanoseconds(-1), nanoseconds(-1))) {
      if (said_.contains(std::pair(one.op_id, one.has_begun))) give_up(one);
    }
  } catch (const std::bad_alloc&) {
  }
  void give_up(const Overdue& one) noexcept try {
    const Communicator comm = Communicator::find(bus_, one.group.view(), one.rank);
    if (!comm || comm.aborted()) return;
    std::array<char, 96> why{};  // no allocation is to keep a group from being given up
    const std::string_view op = one.op.view();
    (void)std::snprintf(why.data(), why.size(), "%.*s is overdue", static_cast<int>(op.size()),
                        op.data());
    (void)comm.abort(why.data(), "watchdog");
  } catch (const std::bad_alloc&) {
  }

  void watch() {
    engine::configure_thread({}, "ringmain:watch");
    std::unique_lock lock(mutex_);
    const nanoseconds period = std::min(options_.period, kWaitMax);
    while (!wake_.wait_for(lock, period, [this] { return ends_; })) {
      lock.unlock();
      try {
        (void)look();
      } catch (const std::bad_alloc&) {  // the next look finds what this one left
      }
      lock.lock();
    }
  }

  const engine::Born born_;
  Bus& bus_;
  const std::shared_ptr<Ledger> ledger_;
  const WatchdogOptions options_;
  const std::function<void(const OverdueOperation&)> last_words_;
  const std::shared_ptr<ringmain::detail::Heartbeat> heart_;
  const Name before_abort_{"a watchdog's before_abort"}, overdue_name_{"collective.overdue"};
  run::ChannelHeld<OverdueOperation> channel_;
  Subscription interest_;
  std::set<std::pair<std::uint64_t, bool>> said_;
  std::mutex looking_;
  std::atomic<std::thread::id> looker_{};  // nobody
  std::mutex mutex_;
  std::condition_variable wake_;
  bool ends_ = false;
  std::thread thread_;
};

Result<Watchdog> Watchdog::make(Bus& bus, WatchdogOptions options) {
  if (auto fault = fault_of(options)) return std::move(*fault);
  auto ledger = Ledger::of(bus);
  if (!ledger) return ledger.error();
  auto core = std::make_unique<Core>(bus, std::move(ledger).value(), std::move(options));
  if (auto fault = core->begin()) return std::move(*fault);
  return Watchdog(std::move(core));
}

Watchdog::Watchdog(std::unique_ptr<Core> core) noexcept : core_(std::move(core)) {}
Watchdog::Watchdog(Watchdog&&) noexcept = default;
Watchdog& Watchdog::operator=(Watchdog&& other) noexcept {
  Watchdog(std::move(other)).core_.swap(core_);
  return *this;
}
Watchdog::~Watchdog() {
  // Its thread is the parent's, and would be waited for for ever.
  if (core_ != nullptr && core_->forked()) engine::keep_from_before_fork(core_.release());
}

std::vector<OverdueOperation> Watchdog::look() {
  if (core_->forked()) return {};
  return core_->look();
}
std::uint64_t Watchdog::looks() const noexcept {
  return core_->looks();
}
bool Watchdog::looks_here() const noexcept {
  return core_->looks_here();
}

}  // namespace ringmain::collective
