// How does a sink that knows no types get events? By a subscription of a typed channel, on that
// channel's worker, or through a mailbox, in a thread of the sink's own.
#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "../bus/bus.hpp"

#include "provider.hpp"

namespace ringmain::registry {

/// An open sink and its subscriptions. Move-only; its destructor closes it. The bus must outlive
/// it. Threads: one at a time.
class [[nodiscard]] SinkHandle {
 public:
  SinkHandle(std::string name, std::shared_ptr<Sink> sink);
  SinkHandle(SinkHandle&&) noexcept;
  SinkHandle& operator=(SinkHandle&&) noexcept;
  ~SinkHandle();

  /// Hears every event of one channel, on the channel's worker: no event is dropped for the sink,
  /// and a slow sink holds up the channel.
  template <Described E>
  void listen(Channel<E>& channel) {
    Core* core = core_.get();
    keep(channel.subscribe_batch(
        [core, name = channel.name(), &schema = channel.schema()](Batch<E> batch) {
          const Turn turn(*core);
          for (std::size_t i = 0; i < batch.size(); ++i) {
            const Stamp stamp = batch.stamp(i);
            turn.hear({name, schema, reinterpret_cast<const std::byte*>(&batch[i]), stamp});
          }
        },
        {.name = this->name()}));
  }
  /// Hears every event of the channels that match, present and future, with the training step in
  /// which it was published. A thread of the sink's own calls it, and sleeps while there is
  /// nothing. A mailbox keeps up to SubscribeOptions::queue_events per channel; further events are
  /// dropped and counted in stats(). A sink that Subscribes hears what it subscribes to instead.
  Result<bool> attach(Bus& bus, std::string_view pattern = ">");

  /// True: it Subscribes, so listen() brings it nothing, and attach() is to be called instead.
  [[nodiscard]] bool subscribes() const noexcept;
  /// The sink hears, in this thread, what is in its mailbox now.
  void flush();
  /// The sink hears what is still in its mailbox, then it is closed. An Error if an event was lost.
  /// What was published and no worker has looked at yet is in no mailbox, and is not heard: call
  /// Bus::flush() before.
  Result<bool> close();
  [[nodiscard]] const std::string& name() const noexcept;
  /// Figures of the mailbox of attach(), or of what a sink Subscribes to.
  [[nodiscard]] SubscriberStats stats() const;
  /// How many of the events that the sink heard did not arrive where it writes, as far as is known
  /// now; 0 for a sink that is no Arrivals. Threads: any. Does not wait.
  [[nodiscard]] std::uint64_t not_arrived() const noexcept;
  /// Tells the sink to wait no longer for a reader of its output. Threads: any. Does not wait.
  void give_up() noexcept;
  /// Events handed to the sink, and calls of it that threw.
  [[nodiscard]] std::uint64_t heard() const noexcept;
  [[nodiscard]] std::uint64_t threw() const noexcept;

 private:
  struct Core;
  /// Keeps other threads from the sink while it lives; its end calls idle().
  class Turn {
   public:
    explicit Turn(Core& core);
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    void hear(const EventView& event) const;

   private:
    Core& core_;
  };
  void keep(Subscription said);
  Result<bool> attach_own(Bus& bus, Subscribes& own);

  std::unique_ptr<Core> core_;
};

}  // namespace ringmain::registry
