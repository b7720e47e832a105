#include "bindings/python/native/bus.hpp"

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <set>
#include <stdexcept>
#include <utility>

#include "bus/core/erased.hpp"

#include "bindings/python/native/batch.hpp"
#include "bindings/python/native/communicator_hooks.hpp"

namespace ringmain::python {
namespace {

const engine::Born loaded;

/// All buses that Python has; the GIL is its lock.
std::set<NativeBus*>& living() {
  static auto& all = *new std::set<NativeBus*>;
  return all;
}

nanoseconds limit_of(Seconds limit) {
  return limit ? counted(*limit) : nanoseconds(-1);
}

[[noreturn]] void throw_error(const Error& error) {
  if (error.code == Error::Code::no_memory) throw std::bad_alloc();
  throw nb::value_error(error.message.c_str());
}

}  // namespace

SubscribeOptions Asked::options() const {
  SubscribeOptions made;
  made.name = name;
  made.priority = priority;
  if (queue_events == 0)
    throw nb::value_error("queue_events is 0: nothing could be heard; use 1 or more");
  made.queue_events = queue_events;
  if (overflow == "drop_oldest") {
    made.overflow = Overflow::drop_oldest;
  } else if (overflow != "drop_newest") {
    throw nb::value_error(
        ("overflow is '" + overflow + "'; use 'drop_newest' or 'drop_oldest'").c_str());
  }
  return made;
}

// --- the mailbox ---

nb::object Mailbox::take(std::size_t events_max) {
  if (box_ == nullptr || waiting_) return nb::none();
  Room room;
  engine::Run run;
  if (!ringmain::detail::take_run_of(*box_, &Room::make, &room, events_max, run)) return nb::none();
  struct Finish {
    ringmain::detail::PullMailbox& box;
    ~Finish() { ringmain::detail::finish_run_of(box); }
  } const finish{*box_};
  return nb::cast(Batch(std::move(room), run), nb::rv_policy::move);
}

bool Mailbox::wait(Seconds limit) {
  if (box_ == nullptr || waiting_) return false;
  waiting_ = true;
  struct End {
    Mailbox& of;
    ~End() {
      of.waiting_ = false;
      if (of.closing_) of.close();
    }
  } const end{*this};
  return wait_in_slices(limit,
                        [this](std::chrono::nanoseconds slice) {
                          return closing_ || ringmain::detail::wait_mailbox(*box_, slice);
                        }) &&
         !closing_;
}

int Mailbox::fd() {
  const int fd = closed() ? -1 : ringmain::detail::mailbox_fd(*box_);
  if (fd < 0) throw std::runtime_error("the mailbox is closed, or the system gave no descriptor");
  return fd;
}

SubscriberStats Mailbox::stats() const {
  return box_ == nullptr ? SubscriberStats{} : ringmain::detail::mailbox_stats(*box_);
}

void Mailbox::close() noexcept {
  if (waiting_) {
    closing_ = true;  // the waiting thread closes it
    return;
  }
  auto* box = std::exchange(box_, nullptr);
  if (box == nullptr) return;
  const Released released;
  ringmain::detail::close_mailbox(box);
}

// --- the bus ---

NativeBus::NativeBus(Bus& process) : bus_(&process), name_("ringmain") {
  living().insert(this);
}

NativeBus::NativeBus(const BusOptions& options)
    : own_(std::make_unique<Bus>(options)), bus_(own_.get()), name_(options.name) {
  living().insert(this);
}

NativeBus::~NativeBus() {
  living().erase(this);
  try {
    (void)close(Seconds(5.0));
  } catch (nb::python_error& error) {
    error.restore();
    PyErr_WriteUnraisable(nullptr);
  }
  if (!own_) return;
  const Released released;
  own_.reset();
}

Bus& NativeBus::bus() const {
  check_open();
  return *bus_;
}

void NativeBus::check_open() const {
  if (closed_) throw std::runtime_error("the bus is closed; make another one");
  if (exiting()) throw std::runtime_error("the interpreter is exiting; nothing is heard any more");
}

Channel NativeBus::channel(const Layout& layout) {
  check_open();
  auto found = ringmain::detail::Erased::channel(*bus_, layout.schema());
  if (!found) throw_error(found.error());
  return Channel(*found.value());
}

nb::object NativeBus::find(std::string_view name) {
  check_open();
  for (const auto& core : ringmain::detail::Erased::core(*bus_).channels()) {
    if (core->options().name == name) return nb::cast(Channel(*core));
  }
  return nb::none();
}

ringmain::detail::PullMailbox* NativeBus::make_box(nb::handle what, SubscribeOptions options) {
  check_open();
  ringmain::detail::PullMailbox* box = nullptr;
  if (nb::isinstance<Channel>(what)) {
    box = ringmain::detail::make_pull_mailbox(nb::cast<Channel&>(what).core(), std::move(options));
  } else {
    box = ringmain::detail::make_pull_mailbox(ringmain::detail::Erased::core(*bus_),
                                              nb::cast<std::string>(what), std::move(options));
  }
  if (box == nullptr)
    throw std::runtime_error(
        "the bus belongs to the process that forked this one; make a Bus here");
  return box;
}

Dispatcher& NativeBus::started_dispatcher() {
  if (!dispatcher_) dispatcher_ = std::make_shared<Dispatcher>();
  set_linger();
  if (!dispatcher_->started()) {
    dispatcher_->set_started();
    nb::module_::import_("ringmain._thread").attr("start")(nb::cast(dispatcher_), name_.c_str());
  }
  return *dispatcher_;
}

void NativeBus::set_linger_ms(double ms) noexcept {
  linger_ns_ = static_cast<std::int64_t>(std::clamp(ms, 0.0, 1e6) * 1e6);
  set_linger();
}

enum : std::int64_t { kDispatcherLingerNsMax = 5'000'000 };

/// For the thread that calls back, and for the workers that feed it.
void NativeBus::set_linger() noexcept {
  if (!dispatcher_ || forked()) return;
  // That thread hands on all that workers have handed out by then, so the workers rest longer.
  dispatcher_->linger_ns = std::min<std::int64_t>(linger_ns_, kDispatcherLingerNsMax);
  ringmain::detail::Erased::core(*bus_).engine().set_rest(linger_ns_);
}

std::shared_ptr<QueuedSubscriber> NativeBus::subscribe(nb::object what, nb::object callback,
                                                       const Asked& asked, bool detach_on_raise) {
  SubscribeOptions options = asked.options();
  options.patient = true;  // it lingers
  check_open();
  if (forked()) (void)make_box(what, std::move(options));  // throws
  Dispatcher& by = started_dispatcher();
  reclaim_retired();
  return by.add(make_box(what, std::move(options)), std::move(callback), asked.name,
                detach_on_raise);
}

std::shared_ptr<InlineSubscriber> NativeBus::subscribe_inline(const Channel& channel,
                                                              nb::object callback,
                                                              const Asked& asked,
                                                              const std::string& on_raise) {
  check_open();
  SubscribeOptions options = asked.options();
  if (on_raise == "veto") {
    options.on_throw = OnThrow::veto;
  } else if (on_raise == "detach") {
    options.on_throw = OnThrow::detach;
  } else if (on_raise != "allow") {
    throw nb::value_error(
        ("on_raise is '" + on_raise + "'; use 'allow', 'veto' or 'detach'").c_str());
  }
  auto made = subscribe_inline_callback(channel.core(), std::move(callback), std::move(options));
  if (!made->held.attached())
    throw std::runtime_error(
        "the bus belongs to the process that forked this one; make a Bus here");
  inline_.push_back(made);
  return made;
}

Mailbox NativeBus::mailbox(nb::object what, const Asked& asked) {
  return Mailbox(make_box(what, asked.options()));
}

Detached NativeBus::remove(const std::shared_ptr<QueuedSubscriber>& subscriber, Seconds limit) {
  return dispatcher_ ? dispatcher_->remove(*subscriber, limit) : Detached::was_not_attached;
}

Detached NativeBus::remove_inline(const std::shared_ptr<InlineSubscriber>& subscriber,
                                  Seconds limit) {
  if (forked()) return Detached::was_not_attached;
  std::erase(inline_, subscriber);
  return python::remove(*subscriber, limit);
}

bool NativeBus::flush(Seconds limit) {
  if (closed_ || forked() || engine::in_callback()) return false;
  const Deadline deadline(limit);
  const bool delivered =
      wait_in_slices(limit, [this](std::chrono::nanoseconds slice) { return bus_->flush(slice); });
  return delivered && (!dispatcher_ || dispatcher_->wait_until_called(deadline.left_seconds()));
}

void NativeBus::end_python(Seconds limit) {
  if (forked()) {
    if (dispatcher_) dispatcher_->forget();
    return;
  }
  const Deadline deadline(limit);
  for (const auto& subscriber : std::exchange(inline_, {}))
    (void)python::remove(*subscriber, deadline.left_seconds());
  if (dispatcher_) (void)dispatcher_->stop(deadline.left_seconds());
  reclaim_retired();
}

bool NativeBus::close(Seconds limit) {
  if (std::exchange(closed_, true)) return true;
  if (forked()) {
    end_python(limit);
    return true;
  }
  const Deadline deadline(limit);
  bool in_time = true;
  if (own_ && !engine::in_callback()) {
    Stopped stopped;
    {
      const Released released;
      stopped = own_->stop(StopMode::drain, limit_of(limit));
    }
    in_time = stopped.left == 0 && stopped.stuck.empty();
  }
  if (dispatcher_ && !engine::in_callback())
    in_time = dispatcher_->wait_until_called(deadline.left_seconds()) && in_time;
  end_python(deadline.left_seconds());
  return in_time;
}

void shut_down() {
  // In a forked child the engine destroys nothing that the parent made, not even Python callbacks.
  if (loaded.forked()) nb::set_leak_warnings(false);
  const std::set<NativeBus*> all = living();
  for (NativeBus* bus : all) {
    if (living().contains(bus) && bus->dispatcher() && !bus->closed())
      (void)bus->flush(Seconds(2.0));
  }
  for (NativeBus* bus : all) {
    if (living().contains(bus)) bus->end_python(Seconds(3.0));
  }
  end_communicator_hooks(Seconds(3.0));
  begin_exit();
  wait_for_released(std::chrono::seconds(10));  // a thread that waits in slices is back at once
  reclaim_retired();
}

}  // namespace ringmain::python
