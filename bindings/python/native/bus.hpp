// A bus as Python holds it: its channels, its callbacks, and the thread that calls them.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "bus/bus.hpp"

#include "bindings/python/native/channel.hpp"
#include "bindings/python/native/dispatcher.hpp"
#include "bindings/python/native/inline_subscribe.hpp"
#include "bindings/python/native/publish.hpp"

namespace ringmain::python {

/// The options of subscribe(), subscribe_inline() and mailbox(), as Python gives them.
struct Asked {
  std::string name;
  std::string overflow = "drop_newest";
  std::uint32_t queue_events = 65536;
  int priority = 0;
  [[nodiscard]] SubscribeOptions options() const;
};

/// A queue that Python drains. Threads: one at a time; the GIL ensures that unless a thread waits.
class Mailbox {
 public:
  explicit Mailbox(ringmain::detail::PullMailbox* box) noexcept : box_(box) {}
  Mailbox(Mailbox&& other) noexcept : box_(std::exchange(other.box_, nullptr)) {}
  Mailbox& operator=(Mailbox&&) = delete;
  ~Mailbox() { close(); }

  /// The next batch, or None.
  nb::object take(std::size_t events_max);
  bool wait(Seconds limit);
  [[nodiscard]] int fd();
  [[nodiscard]] SubscriberStats stats() const;
  void close() noexcept;
  [[nodiscard]] bool closed() const noexcept { return box_ == nullptr || closing_; }

 private:
  ringmain::detail::PullMailbox* box_;
  bool waiting_ = false;
  bool closing_ = false;
};

class NativeBus {
 public:
  /// The process's bus.
  explicit NativeBus(Bus& process);
  /// A bus of its own.
  explicit NativeBus(const BusOptions& options);
  ~NativeBus();
  NativeBus(const NativeBus&) = delete;
  NativeBus& operator=(const NativeBus&) = delete;

  [[nodiscard]] Channel channel(const Layout& layout);
  /// None if no channel has that name yet.
  [[nodiscard]] nb::object find(std::string_view name);
  [[nodiscard]] PublishedChannels& published() noexcept { return published_; }

  std::shared_ptr<QueuedSubscriber> subscribe(nb::object what, nb::object callback,
                                              const Asked& asked, bool detach_on_raise);
  std::shared_ptr<InlineSubscriber> subscribe_inline(const Channel& channel, nb::object callback,
                                                     const Asked& asked,
                                                     const std::string& on_raise);
  [[nodiscard]] Mailbox mailbox(nb::object what, const Asked& asked);
  Detached remove(const std::shared_ptr<QueuedSubscriber>& subscriber, Seconds limit);
  Detached remove_inline(const std::shared_ptr<InlineSubscriber>& subscriber, Seconds limit);

  bool flush(Seconds limit);
  /// Ends Python's subscriptions, and the bus unless it is the process's. False: not in time.
  bool close(Seconds limit);
  /// Python hears nothing more, and all its subscribers have left. For the interpreter's exit.
  void end_python(Seconds limit);
  [[nodiscard]] nb::dict stats() const;
  [[nodiscard]] double linger_ms() const noexcept { return static_cast<double>(linger_ns_) / 1e6; }
  void set_linger_ms(double ms) noexcept;
  [[nodiscard]] Bus& bus() const;
  [[nodiscard]] bool same_bus(const NativeBus& other) const noexcept { return bus_ == other.bus_; }
  [[nodiscard]] bool closed() const noexcept { return closed_; }
  [[nodiscard]] bool forked() const noexcept { return born_.forked(); }
  [[nodiscard]] const std::shared_ptr<Dispatcher>& dispatcher() const noexcept {
    return dispatcher_;
  }

 private:
  ringmain::detail::PullMailbox* make_box(nb::handle what, SubscribeOptions options);
  Dispatcher& started_dispatcher();
  void check_open() const;
  void set_linger() noexcept;

  std::unique_ptr<Bus> own_;
  Bus* bus_;
  engine::Born born_;
  std::string name_;
  std::shared_ptr<Dispatcher> dispatcher_;
  std::vector<std::shared_ptr<InlineSubscriber>> inline_;
  PublishedChannels published_;
  std::int64_t linger_ns_ = 250'000'000;
  bool closed_ = false;
};

/// Ends all callbacks into Python, once what was published has been heard, or two seconds on.
void shut_down();
void bind_bus(nb::module_& m);
void bind_recording(nb::module_& m);
void bind_steps(nb::module_& m);
void bind_collective(nb::module_& m);
void bind_compile(nb::module_& m);
void bind_cuda_watch(nb::module_& m);
void bind_guard_hook(nb::module_& m);
void bind_door(nb::module_& m);

}  // namespace ringmain::python
