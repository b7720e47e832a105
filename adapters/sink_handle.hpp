// How does a sink that knows no types get events? By a subscription of the typed channel, on its
// worker, or through a mailbox, in a thread of its own.
#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "../bus/bus.hpp"

#include "provider.hpp"

namespace ringmain::registry {

/// An open sink and what it hears. Move-only; closed at its end. The bus must outlive it. Threads:
/// one at a time.
class [[nodiscard]] SinkHandle {
 public:
  SinkHandle(std::string name, std::shared_ptr<Sink> sink);
  SinkHandle(SinkHandle&&) noexcept;
  SinkHandle& operator=(SinkHandle&&) noexcept;
  ~SinkHandle();

  /// Every event of one channel, on its worker: none is dropped here, and a slow sink holds up the
  /// channel.
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
  /// Every event of the channels that match, present and future, from a thread of its own, which
  /// sleeps while there are none, with the training step in which each was said. It keeps up to
  /// SubscribeOptions::queue_events per channel; what comes on top is dropped: stats().
  Result<bool> attach(Bus& bus, std::string_view pattern = ">");

  /// Hears, in this thread, what is in its mailbox now.
  void flush();
  /// Hears what is still in its mailbox, then nothing more. An Error if anything was lost.
  Result<bool> close();
  [[nodiscard]] const std::string& name() const noexcept;
  /// Of attach().
  [[nodiscard]] SubscriberStats stats() const;
  /// Of the events that the sink heard, those that did not arrive where it writes, as far as is
  /// known now; 0 of a sink that does not say so (Arrivals). Threads: any. Waits for nobody.
  [[nodiscard]] std::uint64_t not_arrived() const noexcept;
  /// Lets the sink wait no longer for whoever reads it. Threads: any. Waits for nobody.
  void give_up() noexcept;
  /// Events handed to the sink, and calls of it that threw.
  [[nodiscard]] std::uint64_t heard() const noexcept;
  [[nodiscard]] std::uint64_t threw() const noexcept;

 private:
  struct Core;
  /// The sink is ours until the end of the turn, then it is told that nothing is at hand.
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

  std::unique_ptr<Core> core_;
};

}  // namespace ringmain::registry
