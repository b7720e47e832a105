#include "adapters/sources/cuda/completions_core.hpp"

#include <algorithm>
#include <bit>
#include <new>
#include <sys/mman.h>
#include <system_error>
#include <unistd.h>

#include "engine/system/clock.hpp"
#include "engine/system/configure_thread.hpp"
#include "engine/system/workers_options.hpp"

#include "bus/in_subscriber.hpp"

#include "adapters/sources/cuda/cuda_callback.hpp"

namespace ringmain::cuda {
namespace {

constexpr int kCan64BitStreamMemOps = 122;
constexpr unsigned kDeviceMap = 2, kNonBlocking = 1;
constexpr int kThreadLocalCapture = 1;

Error refused(std::string message) {
  return {Error::Code::refused, std::move(message)};
}
Error refused_by(const char* function, std::int32_t result) {
  return refused(std::string("completions cannot be armed, as ") + function + " answers " +
                 std::to_string(result) + ": see cudaGetErrorString()");
}

std::optional<Error> fault_of(const CompletionsOptions& options) {
  using O = CompletionsOptions;
  if (options.lanes_max < 1 || options.lanes_max > O::kLanesMax)
    return refused("lanes_max must be from 1 to 65535");
  if (options.lane_tickets < O::kTicketsMin || options.lane_tickets > O::kTicketsMax)
    return refused("lane_tickets must be from 2 to 1048576");
  if (options.capacity_events == 0) return refused("capacity_events must be above 0");
  const bool times = options.spin_us.count() >= 0 && options.sleep_us_max.count() > 0 &&
                     options.watch_us.count() > 0;
  if (!times) return refused("spin_us must not be below 0, and sleep_us_max and watch_us above 0");
  if (options.beyond_ns.count() < 0) return refused("beyond_ns must not be below 0");
  if (options.strategy > Strategy::host_functions)
    return refused(
        "strategy must be one of automatic, memory_writes, event_queries and "
        "host_functions");
  return std::nullopt;
}

/// Each has a number of its own, as addresses come again.
std::uint64_t new_id() noexcept {
  static constinit std::atomic<std::uint64_t> last{0};
  return ++last;
}

}  // namespace

std::unique_ptr<Words> Words::make(std::uint32_t many) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t bytes = (many * sizeof(Word) + page - 1) / page * page;
  void* const memory =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  // A forked child gets no copy: the parent's next look would take one and leave the pinned page
  // behind.
  (void)::madvise(memory, bytes, MADV_DONTFORK);
  auto* const first = static_cast<Word*>(memory);
  for (std::uint32_t i = 0; i < many; ++i) ::new (first + i) Word;
  return std::unique_ptr<Words>(new Words(first, bytes));
}
Words::~Words() {
  if (!kept_) (void)::munmap(first_, bytes_);
}

CompletionsCore::CompletionsCore(const Driver& found, const CompletionsOptions& asked)
    : id(new_id()),
      driver(found),
      options(asked),
      tickets(std::bit_ceil(asked.lane_tickets)),
      lanes(std::make_unique<std::unique_ptr<Lane>[]>(asked.lanes_max)) {}

namespace {

/// Which context is it of, and what can its device do?
std::optional<Error> find_context(CompletionsCore& core) {
  const Driver& driver = core.driver;
  const std::int32_t current = own(driver.context_current, &core.context);
  if (current != kDone && current != kNotStarted) return refused_by("cuCtxGetCurrent", current);
  if (core.context == nullptr) {
    return refused(
        "completions cannot be armed, as this thread has no CUDA context yet: call "
        "cudaFree(0) first, or make one current");
  }
  if (const auto r = own(driver.context_id, core.context, &core.context_id); r != kDone)
    return refused_by("cuCtxGetId", r);
  if (const auto r = own(driver.context_device, &core.device); r != kDone)
    return refused_by("cuCtxGetDevice", r);
  if (const auto r = own(driver.stream_create, &core.own_stream, kNonBlocking); r != kDone)
    return refused_by("cuStreamCreate", r);
  return std::nullopt;
}

/// Pins the words where streams can write. 0, or what the driver answers.
std::int32_t pin(CompletionsCore& core) {
  int can = 0;
  const auto asked = own(core.driver.attribute, &can, kCan64BitStreamMemOps, core.device);
  if (asked != kDone) return asked;
  constexpr std::int32_t kNotSupported = 801;
  if (can == 0) return kNotSupported;
  Words& words = *core.words;
  if (const auto r = own(core.driver.host_register, words.begin(), words.bytes(), kDeviceMap))
    return r;
  unsigned long long device = 0;
  const auto found = own(core.driver.device_pointer, &device, words.begin(), 0U);
  if (found == kDone) {
    words.device = device;
  } else if (own(core.driver.host_unregister, words.begin()) != kDone) {
    words.keep();
  }
  return found;
}

std::optional<Error> choose_strategy(CompletionsCore& core) {
  core.strategy = core.options.strategy;
  if (core.strategy == Strategy::event_queries) return std::nullopt;
  core.words = Words::make(core.options.lanes_max);
  if (core.words == nullptr) throw std::bad_alloc();
  if (core.strategy == Strategy::host_functions) return std::nullopt;
  const std::int32_t result = pin(core);
  if (result == kDone) {
    core.strategy = Strategy::memory_writes;
    return std::nullopt;
  }
  if (core.strategy == Strategy::memory_writes) {
    return refused(
        "completions cannot be armed by memory writes, as the device or its driver "
        "refuses them (" +
        std::to_string(result) + "): take Strategy::automatic or event_queries");
  }
  core.words.reset();
  core.strategy = Strategy::event_queries;
  return std::nullopt;
}

/// Gives back what the driver has of one that is not made after all: it was refused, or there was
/// no memory.
struct Unmade {
  CompletionsCore* core;
  ~Unmade() {
    if (core == nullptr) return;
    if (core->own_stream != nullptr) (void)own(core->driver.stream_destroy, core->own_stream);
    if (core->words && core->words->device != 0 &&
        own(core->driver.host_unregister, core->words->begin()) != kDone)
      core->words->keep();
  }
};

}  // namespace

Result<std::shared_ptr<CompletionsCore>> CompletionsCore::make(Bus& bus,
                                                               const CompletionsOptions& options) {
  if (auto fault = fault_of(options)) return std::move(*fault);
  if (switchboard.presence.inside())
    return refused("completions are not made inside a callback of CUPTI's: make them outside");
  auto driver = Driver::open();
  if (!driver) return driver.error();
  auto core = std::make_shared<CompletionsCore>(*driver.value(), options);
  if (auto conflict = run::hold_channel(bus, core->channel)) return std::move(*conflict);
  if (auto conflict = run::hold_channel(bus, core->losses)) return std::move(*conflict);
  auto publisher = core->channel.channel->publisher({.capacity_events = options.capacity_events});
  if (!publisher) return publisher.error();
  core->publisher = std::move(publisher).value();
  auto loss = core->losses.channel->publisher({.capacity_events = 1});  // all that it will say
  if (!loss) return loss.error();
  core->loss = std::move(loss).value();
  Unmade unmade{core.get()};
  auto why = find_context(*core);
  if (!why) why = choose_strategy(*core);
  if (!why) why = core->start();
  if (why) return std::move(*why);
  unmade.core = nullptr;
  return core;
}

std::optional<Error> CompletionsCore::start() {
  std::int32_t answer = kDone;
  const engine::BlockedSignals blocked;
  try {
    poller = std::thread([self = shared_from_this(), &answer] {
      engine::WorkersOptions how;
      how.cpus = self->options.cpus;
      engine::configure_thread(how, "ringmain:gpu");
      // Its questions are no business of captures in other threads.
      int mode = kThreadLocalCapture;
      std::int32_t result = own(self->driver.set_context, self->context);
      if (result == kDone) result = own(self->driver.exchange_capture_mode, &mode);
      answer = result;
      self->finished = kBegun;
      engine::futex_wake(self->finished, 1);  // `answer` is not to be used from here on
      if (result == kDone) poll(*self);
    });
  } catch (const std::system_error& why) {
    return Error{Error::Code::system, std::string("no thread for completions: ") + why.what()};
  }
  while (finished == 0) (void)engine::futex_wait(finished, 0);
  if (answer == kDone) return std::nullopt;
  poller.join();
  return refused_by("cuCtxSetCurrent or cuThreadExchangeStreamCaptureMode", answer);
}

void CompletionsCore::keep() noexcept {
  kept_ = shared_from_this();
  engine::keep_from_before_fork(this);
}

std::int32_t CompletionsCore::ask() noexcept {
  ++count.asked;
  unsigned long long now = 0;
  if (const auto result = own(driver.context_id, context, &now); result != kDone) return result;
  if (now != context_id) return kContextGone;  // reset, and made anew at the same address
  return own(driver.stream_query, own_stream);
}

void CompletionsCore::seal() noexcept {
  {
    const std::lock_guard lock(taking);
    sealed = true;
  }
  for_each_lane([](Lane& lane) { lane.seal(); });
  engine::CallFlag::closed();
}

Detached CompletionsCore::end(nanoseconds limit) noexcept {
  if (ended.exchange(true)) return Detached::was_not_attached;
  const bool inside = in_subscriber() || switchboard.presence.inside();
  if (limit.count() >= 0) give_up_ns = engine::sum_ns(engine::now_ns(), limit.count());
  seal();
  ending = true;
  bell->ring_loudly();
  if (inside) {
    poller.detach();
    return Detached::deferred;
  }
  const engine::Deadline deadline(
      limit.count() < 0 ? -1 : engine::sum_ns(limit.count(), options.beyond_ns.count()));
  while (finished != kFinished) {
    const std::int64_t left = deadline.left_ns();
    if (left == 0) {
      poller.detach();
      return Detached::timeout;
    }
    (void)engine::futex_wait(finished, kBegun, left);
  }
  poller.join();
  return Detached::done;
}

CompletionFigures CompletionsCore::figures() const noexcept {
  CompletionFigures now;
  now.completed = count.completed;
  now.failed = count.failed;
  now.abandoned = count.abandoned;
  now.armed = count.of_nodes;
  for_each_lane([&now](const Lane& lane) { now.armed += lane.armed(); });
  now.pending = now.armed - now.completed - now.failed - now.abandoned;
  now.refused = count.refused;
  for (std::size_t i = 0; i < kArmCodes; ++i) now.arms[i] = arms[i];
  now.asked = count.asked;
  now.lanes = lanes_used;
  now.strategy = strategy;
  now.result = lost;
  return now;
}

}  // namespace ringmain::cuda
