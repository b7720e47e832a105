#include "bus/core/bus_core.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <sched.h>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>

#include "engine/deliver/merge.hpp"

#include "bus/core/reporter.hpp"
#include "bus/core/subscription_core.hpp"
#include "bus/pattern.hpp"

namespace ringmain::detail {
namespace {

/// A mistake in the environment must not end a training: it is said once, and the variable is
/// ignored.
void ignore(const char* name, const std::string& why) {
  std::fprintf(stderr, "ringmain: %s is ignored: %s\n", name, why.c_str());
}

template <class T>
T from_environment(const char* name, T otherwise) {
  const char* value = std::getenv(name);
  T n{};
  if (value == nullptr) return otherwise;
  const char* end = value + std::strlen(value);
  if (std::from_chars(value, end, n).ptr == end && end != value) return n;
  ignore(name, "'" + std::string(value) + "' is not a number in its range");
  return otherwise;
}

/// Can a thread run on one of these CPUs? This thread may be bound to others, so it asks the
/// system.
bool system_gives(const cpu_set_t& wanted) noexcept {
  cpu_set_t own;
  CPU_ZERO(&own);
  if (::sched_getaffinity(0, sizeof own, &own) != 0) return true;  // not known: let the workers try
  cpu_set_t both;
  CPU_AND(&both, &own, &wanted);
  if (CPU_COUNT(&both) != 0) return true;
  const bool given = ::sched_setaffinity(0, sizeof wanted, &wanted) == 0;
  if (given) ::sched_setaffinity(0, sizeof own, &own);
  return given;
}

/// "0-3,8" as a list, or why it is none.
Result<std::vector<int>> cpus_of(std::string_view text) {
  const auto refused = [text](const char* why) {
    return Error{Error::Code::refused, "'" + std::string(text) + "' " + why};
  };
  cpu_set_t wanted;
  CPU_ZERO(&wanted);
  std::vector<int> cpus;
  for (std::size_t at = 0; at <= text.size() && !text.empty();) {
    const std::string_view part = text.substr(at, text.find(',', at) - at);
    at += part.size() + 1;
    const char* end = part.data() + part.size();
    int first = -1;
    auto read = std::from_chars(part.data(), end, first);
    int last = first;
    if (read.ec == std::errc{} && read.ptr != end && *read.ptr == '-')
      read = std::from_chars(read.ptr + 1, end, last);
    if (read.ec != std::errc{} || read.ptr != end || first < 0 || last < first)
      return refused("is not a list of CPUs; write numbers and ranges, as in 0-3,8");
    if (last >= CPU_SETSIZE) return refused("names a CPU above 1023, the largest there can be");
    for (int cpu = first; cpu <= last; ++cpu) {
      cpus.push_back(cpu);
      CPU_SET(static_cast<unsigned>(cpu), &wanted);
    }
  }
  if (!cpus.empty() && !system_gives(wanted))
    return refused(
        "names no CPU that this process may use; /sys/devices/system/cpu/online lists those there "
        "are, and a job's own set may be smaller");
  return cpus;
}

/// Throws std::invalid_argument: an option that the program itself sets must be right.
std::vector<int> worker_cpus(const std::string& option) {
  constexpr const char* kName = "RINGMAIN_WORKER_CPUS";
  if (const char* value = std::getenv(kName)) {
    auto cpus = cpus_of(value);
    if (cpus) return std::move(cpus).value();
    ignore(kName, cpus.error().message);
  }
  auto cpus = cpus_of(option);
  if (!cpus) throw std::invalid_argument("ringmain: worker_cpus " + cpus.error().message);
  return std::move(cpus).value();
}

engine::WorkersOptions engine_options(const BusOptions& options) {
  const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
  engine::WorkersOptions o;
  const unsigned asked = from_environment("RINGMAIN_WORKERS", options.workers);
  o.count = asked != 0 ? asked : std::max(1u, std::min(4u, cores / 8));
  o.cpus = worker_cpus(options.worker_cpus);
  o.nice = from_environment("RINGMAIN_WORKER_NICE", options.worker_nice);
  o.name = options.name;
  o.wait.spin_ns = engine::ns_of_us(from_environment("RINGMAIN_SPIN_US", options.spin_us.count()));
  // Limited, because a lingering worker sees neither other channels nor stop().
  o.wait.linger_ns =
      std::clamp<std::int64_t>(from_environment("RINGMAIN_LINGER_NS", options.linger_ns.count()), 0,
                               engine::WaitOptions::kLingerNsMax);
  o.wait.realtime_ns_max =
      engine::ns_of_us(std::max<std::int64_t>(0, options.realtime_us_max.count()));
  o.wait.yields = cores <= 2;
  return o;
}

engine::WorkersOptions manual() {
  engine::WorkersOptions o;
  o.manual = true;
  return o;
}

}  // namespace

BusCore::BusCore(const BusOptions& options)
    : name_(options.name),
      engine_(new engine::Engine(engine_options(options))),
      reporter_(new BusReporter(*engine_)) {
  engine_->house().set_reporter(reporter_.get());
  if (engine_->start() == 0) {
    (void)engine_->stop(true, 0);
    throw std::system_error(
        std::make_error_code(std::errc::resource_unavailable_try_again),
        "ringmain: the system gave the bus not one thread; raise the process limit (ulimit -u)");
  }
}

BusCore::BusCore(ByHand)
    : engine_(new engine::Engine(manual())), reporter_(new BusReporter(*engine_)) {
  engine_->house().set_reporter(reporter_.get());
  (void)engine_->start();
}

Result<engine::ChannelCore*> BusCore::channel(std::string_view name, const Schema& schema,
                                              const ChannelOptions* options) {
  const std::lock_guard lock(mutex_);
  return find_or_make(name, schema, options);
}

Result<engine::ChannelCore*> BusCore::find_or_make(std::string_view name, const Schema& schema,
                                                   const ChannelOptions* options) {
  if (const auto found = channels_.find(name); found != channels_.end()) {
    const auto& has = *static_cast<const Schema*>(found->second->options().schema);
    if (has.hash != schema.hash) {
      return Error{Error::Code::conflict, conflict_of(name, has, schema)};
    }
    if (options != nullptr) {
      return Error{
          Error::Code::conflict,
          "channel '" + std::string(name) + "' exists already; configure it before its first use"};
    }
    return found->second.get();
  }
  engine::ChannelCoreOptions core_options;
  core_options.name = name;
  core_options.schema = &schema;
  core_options.owner = static_cast<SubscriptionHost*>(this);
  core_options.payload_bytes = schema.bytes;
  core_options.tells_no_losses = BusReporter::is_own(name, schema);
  if (options != nullptr) {
    core_options.lanes_max = options->lanes_max;
    core_options.latency_every = options->latency_every;
    core_options.lanes = options->lanes;
    core_options.parallel = options->delivery == Delivery::parallel;
    core_options.merged = options->order == Order::total;
    core_options.order_gap_ns_max = engine::ns_of_us(options->order_gap_us_max.count());
  }
  const engine::Ref<engine::ChannelCore> made =
      engine::make_channel_core(engine_.get(), std::move(core_options));
  *reinterpret_cast<engine::ChannelCore**>(made->face) = made.get();
  if (!engine_->add(*made)) {  // of a forked bus: nothing is added
    return Error{Error::Code::no_memory,
                 "no room for channel '" + std::string(name) +
                     "': a bus holds 4096 channels, mailboxes and hook rows; use another bus"};
  }
  enter(name, made);
  return made.get();
}

/// All or nothing: a channel that is in the table feeds every pattern that matches.
void BusCore::enter(std::string_view name, const engine::Ref<engine::ChannelCore>& made) {
  const auto entered = channels_.end();
  try {
    channels_.emplace(name, made);
    feed_matching(*made);
  } catch (...) {
    for (const Pattern& p : patterns_) p.subscription->stop_feeding_from(*made);
    for (RecordingCore* r : recordings_) {
      if (r != nullptr) r->leave(*made);
    }
    if (const auto at = channels_.find(name); at != entered) channels_.erase(at);
    engine_->retire(*made);
    made->next_abandoned = std::exchange(abandoned_, made);
    throw;
  }
  if (forked()) return;
  reporter_->channel_made(*made);
  engine_->inbox().interest_changed();  // for those that asked by pattern
}

std::vector<engine::Ref<engine::ChannelCore>> BusCore::channels() const {
  const std::lock_guard lock(mutex_);
  std::vector<engine::Ref<engine::ChannelCore>> all;
  for (const auto& [name, channel] : channels_) all.push_back(channel);
  return all;
}

void BusCore::feed_matching(engine::ChannelCore& channel) {
  if (forked()) return;
  for (const Pattern& p : patterns_) {
    if (pattern_matches(p.pattern, channel.options().name)) p.subscription->feed_from(channel);
  }
  for (RecordingCore* r : recordings_) {
    if (r != nullptr && r->apply(channel)) arrivals().one_more();
  }
}

// --- recordings ---

bool BusCore::begin_recording(RecordingCore& recording) {
  {
    const std::lock_guard lock(mutex_);
    for (const BusReporter::Own& own : BusReporter::own()) {  // as in add_pattern()
      if (recording.matches(own.name)) (void)find_or_make(own.name, own.schema(), nullptr);
    }
    const auto place = std::find(recordings_.begin(), recordings_.end(), nullptr);
    if (place == recordings_.end()) return false;
    recording.set_place(static_cast<std::size_t>(place - recordings_.begin()));
    *place = &recording;
    try {
      for (const auto& [name, channel] : channels_) {
        if (recording.apply(*channel)) arrivals().one_more();
      }
    } catch (...) {
      show_to_none(recording);
      *place = nullptr;
      throw;
    }
    recording.set_host(this, this);
  }
  reporter_->add_recording(recording);
  return true;
}

/// With the lock. Publishers that have seen it are waited for here: no code of users runs inside.
void BusCore::show_to_none(RecordingCore& recording) noexcept {
  for (const auto& [name, channel] : channels_) recording.leave(*channel);
  engine::flight::Recording::wait_until_none_inside();
}

void BusCore::end_recording(RecordingCore& recording) noexcept {
  if (forked()) return;
  reporter_->forget_recording(recording);
  const std::lock_guard lock(mutex_);
  show_to_none(recording);
  recordings_[recording.place()] = nullptr;
}

std::vector<std::string> BusCore::recording_paths() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> paths;
  for (const RecordingCore* r : recordings_) {
    if (r != nullptr) paths.push_back(r->file().path());
  }
  return paths;
}

void BusCore::add_pattern(SubscriptionCore& subscription, std::string_view pattern) {
  subscription.set_by_pattern();
  const std::lock_guard lock(mutex_);
  // The bus publishes about itself only on channels that were asked for, and this pattern asks for
  // them.
  for (const BusReporter::Own& own : BusReporter::own()) {
    if (pattern_matches(pattern, own.name)) (void)find_or_make(own.name, own.schema(), nullptr);
  }
  patterns_.push_back({&subscription, std::string(pattern)});
  for (const auto& [name, channel] : channels_) {
    if (pattern_matches(pattern, name)) subscription.feed_from(*channel);
  }
}

void BusCore::remove_pattern(const SubscriptionCore& subscription) noexcept {
  if (forked()) return;
  const std::lock_guard lock(mutex_);
  std::erase_if(patterns_,
                [&subscription](const Pattern& p) { return p.subscription == &subscription; });
}

void BusCore::remember(SubscriptionCore& subscription) noexcept {
  const std::lock_guard lock(attachments_mutex_);
  try {
    subscriptions_.insert(&subscription);
  } catch (const std::bad_alloc&) {
    // No memory to list it: the subscription works, but is missing in the figures.
  }
}

void BusCore::forget(SubscriptionCore& subscription) noexcept {
  const std::lock_guard lock(attachments_mutex_);
  subscriptions_.erase(&subscription);
}

void BusCore::watch_interest(engine::Subscriber* subscriber,
                             engine::Ref<engine::ChannelCore> channel, std::string pattern,
                             bool again) {
  reporter_->watch_interest(subscriber, std::move(channel), std::move(pattern), again);
}

void BusCore::unwatch_interest(const engine::Subscriber& subscriber) noexcept {
  reporter_->unwatch_interest(subscriber);
}

std::uint64_t BusCore::waits(std::string subscriber, std::string channel, std::int64_t since_ns) {
  return reporter_->waits(std::move(subscriber), std::move(channel), since_ns);
}

void BusCore::waits_no_more(std::uint64_t which) noexcept {
  reporter_->waits_no_more(which);
}

bool BusCore::keep_until_the_end(SubscriptionCore& subscription) noexcept {
  const std::lock_guard lock(mutex_);
  const engine::ChannelCore* const row = subscription.hook_row();
  if (ended_ || (row != nullptr && row->line.closing())) return false;
  subscription.hold();
  subscription.next_kept = std::exchange(kept_, &subscription);
  return true;
}

namespace {
/// Without a lock: destructors of captures may call the bus.
void detach_kept(SubscriptionCore* kept) noexcept {
  while (kept != nullptr) {
    SubscriptionCore& one = *std::exchange(kept, kept->next_kept);
    one.detach_deferred();  // a stuck call destroys its captures when it ends
    one.release();
  }
}
}  // namespace

void BusCore::end_kept_of(const engine::ChannelCore& row) noexcept {
  if (forked()) return;
  SubscriptionCore* its = nullptr;
  {
    const std::lock_guard lock(mutex_);
    for (SubscriptionCore** at = &kept_; *at != nullptr;) {
      SubscriptionCore& one = **at;
      if (one.hook_row() == &row) {
        *at = std::exchange(one.next_kept, std::exchange(its, &one));
      } else {
        at = &one.next_kept;
      }
    }
  }
  detach_kept(its);
}

void BusCore::end() noexcept {
  if (forked()) return;
  enum : std::int64_t { kLimitNs = 5'000'000'000 };
  (void)engine_->stop(false, kLimitNs);
  SubscriptionCore* kept = nullptr;
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    kept = std::exchange(kept_, nullptr);
  }
  detach_kept(kept);
}

}  // namespace ringmain::detail
