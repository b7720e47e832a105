#include "adapters/sources/nccl/nccl_control.hpp"

#include <cerrno>
#include <sys/statvfs.h>
#include <utility>

#include "engine/system/clock.hpp"

#include "bus/in_subscriber.hpp"

#include "adapters/launch/channel_of.hpp"
#include "adapters/sources/nccl/nccl_callbacks.hpp"
#include "adapters/sources/nccl/nccl_chain.hpp"

namespace ringmain::nccl {
namespace {

// This thread holds `turn_`.
constinit thread_local bool has_turn __attribute__((tls_model("initial-exec"))) = false;

bool in_callback() noexcept {
  return has_turn || in_subscriber() || switchboard.presence.inside();
}

/// On a bus whose source could not be made.
Error unavailable(Bus& bus, Error error) {
  PluginNotice notice;
  notice.state = PluginState::limited;
  notice.reason = std::string_view(error.message);
  if (const auto channel = run::channel_of<PluginNotice>(bus))
    (void)channel.value()->publish(notice);
  return error;
}

class Turn {
 public:
  explicit Turn(std::mutex& turn) : lock_(turn) { has_turn = true; }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  ~Turn() { has_turn = false; }

 private:
  std::lock_guard<std::mutex> lock_;
};

}  // namespace

Control& Control::instance() {
  // Nothing guards it: a child that is forked while another thread makes it would wait for ever.
  static constinit std::atomic<Control*> made{nullptr};
  Control* found = made;
  if (found != nullptr) return *found;
  auto mine = std::make_unique<Control>();
  if (!made.compare_exchange_strong(found, mine.get())) return *found;  // another thread's
  return *mine.release();
}

Control* Control::here() noexcept try { return &instance(); } catch (const std::bad_alloc&) {
  return nullptr;
}

std::optional<Error> Control::refusal() const {
  if (forked()) {
    return Error{Error::Code::refused,
                 "NCCL does not survive a fork: a child of a process that had a source of its "
                 "events cannot have one; start it by exec"};
  }
  if (in_callback()) {
    return Error{Error::Code::refused,
                 "the source of NCCL's events is not attached inside a callback; do it in a thread "
                 "of the program's"};
  }
  return std::nullopt;
}

void Control::say(const Attachment& to, PluginState state, std::string_view reason,
                  const Identity* who) noexcept {
  PluginNotice notice;
  {
    const std::lock_guard asking(asking_);
    notice.communicators = open_;
    for (const Mask& mask : masks_) {
      notice.mask |= static_cast<std::uint32_t>(__atomic_load_n(mask.at, __ATOMIC_RELAXED));
      notice.abi = mask.abi;
    }
  }
  static_cast<Counts&>(notice) = switchboard.counts.now();
  notice.open = notice.started - notice.stopped - notice.stale - notice.aborted;
  notice.state = state;
  notice.reason = reason;
  if (who != nullptr) {
    notice.communicator = who->id;
    notice.rank = who->rank;
    notice.ranks = who->ranks;
    notice.nodes = who->nodes;
    notice.group = who->group;
    notice.abi = who->abi;
  }
  (void)to.channel<PluginNotice>().publish(notice);
}

Result<Control::Held> Control::attach(Bus& bus, const Options& options) {
  if (auto error = refusal()) return unavailable(bus, std::move(*error));
  if (auto error = options.fault()) return unavailable(bus, std::move(*error));
  const Turn turn(turn_);
  {
    const std::lock_guard asking(asking_);
    if (current_) {
      return unavailable(
          bus, {Error::Code::conflict,
                "this process's NCCL events are published on " +
                    (&current_->bus == &bus ? std::string("this bus")
                                            : "another bus, '" + current_->bus_name + "',") +
                    " already: subscribe there, or detach its source first"});
    }
  }
  (void)Core::instance();
  auto made = Attachment::make(bus, options);
  if (!made) return unavailable(bus, made.error());
  const Held held = made.value();
  look_at_shared_memory(*held);
  {
    const std::lock_guard asking(asking_);
    current_ = held;
    switchboard.to = held.get();
  }
  try {
    serve();
    follow_interest(held);
    held->stall_request = ringmain::detail::StallRequest(&tell_stalls);
  } catch (...) {
    let_go(held);
    throw;
  }
  say(*held, PluginState::attached, held->warning);
  return held;
}

void Control::follow_interest(const Held& which) {
  const auto served = [this](std::string_view, Interest) noexcept { serve(); };
  interest_ = which->bus.on_interest("nccl.*", served, {.name = "nccl source"});
  collectives_ = which->bus.on_interest("collective.*", served, {.name = "nccl source"});
  looks_ = which->look_again([this, which](Interest) { look(which); });
}

/// What NCCL is asked for becomes what is listened to.
void Control::serve() noexcept {
  const std::lock_guard asking(asking_);
  Types followed = 0;
  bool ends = false;
  if (current_ && !current_->ended) {
    ends = current_->ends_heard() || current_->door_asks();
    current_->follow.store(ends);
    followed = current_->needed();
  }
  Types needed = followed;
  // Not instance(): nothing is chained before there is one.
  if (Core* const core = switchboard.core.load()) {
    if (const Chain* const chain = core->chain.load()) needed |= chain->needed();
  }
  // Of the ends of kernels that are told anyway operations' ends are known.
  if (ends) followed |= needed & abi::kKernelCh;
  write_masks(needed, followed);
}

/// Under `asking_`.
void Control::write_masks(Types needed, Types followed) noexcept {
  const bool same = needed == asked_;
  asked_ = needed;
  if ((followed & (abi::kColl | abi::kP2p)) == 0) {
    switchboard.followed_since_ns = 0;
  } else if (switchboard.followed_since_ns == 0) {
    switchboard.followed_since_ns = engine::now_ns();
  }
  switchboard.followed.store(followed);  // first: what is needed is followed, or is for the chain
  switchboard.needed.store(needed);
  if (!same) switchboard.masked = false;
  for (Mask& mask : masks_) {
    const auto value = static_cast<int>(needed & abi::all_types(mask.abi));
    if (same && value == mask.written) continue;  // what another wrote meanwhile stands
    mask.written = mask.told = value;
    __atomic_store_n(mask.at, value, __ATOMIC_RELAXED);
  }
}

std::optional<int> Control::overwritten() noexcept {
  const std::lock_guard asking(asking_);
  for (Mask& mask : masks_) {
    const int now = __atomic_load_n(mask.at, __ATOMIC_RELAXED);
    if (now == mask.told) continue;
    mask.told = now;
    switchboard.masked = now != mask.written;
    return now;
  }
  return std::nullopt;
}

/// NCCL's kernel channels take memory there, and a process that finds none is ended.
void Control::look_at_shared_memory(Attachment& to) noexcept {
  constexpr std::uint64_t kBytesMin = 128ull << 20;
  struct statvfs there {};
  const bool is_usable = ::statvfs("/dev/shm", &there) == 0 && (there.f_flag & ST_RDONLY) == 0;
  if (is_usable && std::uint64_t{there.f_bavail} * there.f_frsize >= kBytesMin) return;
  to.no_kernel_channels = true;
  if (to.options.kernel_channels != KernelChannels::when_heard || !to.warning.empty()) return;
  to.warning =
      is_usable
          ? "kernel channels are left out, as /dev/shm has less than 128 MiB free and NCCL may "
            "crash there: make it larger (docker run --shm-size=1g), or say nccl:kernel=always"
          : "kernel channels are left out, as there is no /dev/shm that may be written to and NCCL "
            "may crash without: mount one (a tmpfs), or say nccl:kernel=always";
}

/// About each second, in the bus's housekeeper.
void Control::look(const Held& which) noexcept {
  if (forked()) return;
  if (which->ended) {
    const std::unique_lock turn(turn_, std::try_to_lock);
    if (turn.owns_lock()) let_go(which);
    return;
  }
  serve();
  sweep_owed();
  if (const auto mask = overwritten()) {
    say(*which, PluginState::masked,
        "another, such as NCCL's RAS, has changed which events NCCL tells: that stands until "
        "listeners change");
  }
  Core& core = Core::instance();
  if (Chain* const chain = core.chain.load()) {
    auto threw = [&](std::string_view what) { say(*which, PluginState::limited, what); };
    auto slow = [&](std::string_view what) { say(*which, PluginState::slow, what); };
    chain->look(threw, slow);
  }
  const Inside in;
  if (in) (void)watch(in, false);
}

/// False: it is not the one that is attached. No operation that begins later is followed to its
/// end; one that begins meanwhile may be.
bool Control::follow_no_more(const Held& which) noexcept {
  const std::lock_guard asking(asking_);
  if (current_ != which) return false;
  which->follow.store(false);
  return true;
}

/// Under `turn_`, or in a round of the housekeeper that has it. Afterwards no callback knows of it.
void Control::let_go(const Held& which) noexcept {
  if (!follow_no_more(which)) return;
  which->stall_request = {};
  (void)switchboard.presence.wait_until_none(-1);
  {
    const Inside in(*which);
    if (in) end_all(in);
  }
  {
    const std::lock_guard asking(asking_);
    current_ = nullptr;
    Attachment* mine = which.get();
    switchboard.to.compare_exchange_strong(mine, nullptr);
  }
  serve();
  (void)interest_.reset();  // not under `asking_`, which what they call takes
  (void)collectives_.reset();
  (void)looks_.reset();
  (void)switchboard.presence.wait_until_none(-1);
  if (which->ended != Attachment::kLeft) say(*which, PluginState::detached, "");
}

Detached Control::detach(const Held& which) noexcept {
  if (!which || forked()) return Detached::was_not_attached;
  auto ended = Attachment::kNotEnded;
  const bool first = which->ended.compare_exchange_strong(ended, Attachment::kDetached);
  if (in_callback()) {
    if (!first) return Detached::was_not_attached;
    (void)follow_no_more(which);
    Attachment* mine = which.get();
    switchboard.to.compare_exchange_strong(mine, nullptr);
    return Detached::deferred;  // the housekeeper's next look does the rest
  }
  const Turn turn(turn_);
  let_go(which);
  return first ? Detached::done : Detached::was_not_attached;
}

/// Waits for no lock that is held.
Detached Control::leave(const Held& which, nanoseconds limit) noexcept {
  auto ended = Attachment::kNotEnded;
  if (!which || forked() || !which->ended.compare_exchange_strong(ended, Attachment::kLeft)) {
    return Detached::was_not_attached;
  }
  Attachment* mine = which.get();
  switchboard.to.compare_exchange_strong(mine, nullptr);
  const bool none =
      switchboard.presence.wait_until_none(limit.count()) == engine::Presence::Waited::none_inside;
  PluginNotice last;
  static_cast<Counts&>(last) = switchboard.counts.now();
  last.open = last.started - last.stopped - last.stale - last.aborted;
  last.state = PluginState::detached;
  if (!none) last.reason = std::string_view("events that were still being published are missing");
  (void)which->channel<PluginNotice>().publish(last);
  return none ? Detached::done : Detached::timeout;
}

}  // namespace ringmain::nccl
