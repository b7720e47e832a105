// Which queue does a subscriber hear from that is not called where its channel is drained? Not for
// users of the library.
//
// A mailbox is a channel core of its own: same lanes, same ledger, same workers. Feeders write to
// its lanes; it is let go of when the last of them and its reader are gone.
#pragma once
#include <cstdint>
#include <string>

#include "../engine/channel/channel_core.hpp"

#include "options.hpp"

namespace ringmain::detail {

enum class DrainedBy : std::uint8_t { workers, own_thread, its_user };
/// Who drains the mailbox of a subscriber that has one. A manual bus has no threads: deliver()
/// serves it.
[[nodiscard]] DrainedBy drained_by(const SubscribeOptions& options,
                                   const engine::ChannelHost& host) noexcept;
/// Throws std::invalid_argument with one sentence for options that cannot hold.
void check(const SubscribeOptions& options, bool has_mailbox);

/// Keeps a mailbox's core under its workers' care until the last feeder and reader are gone.
class MailboxHold final : public engine::Counted {
 public:
  /// Throws std::bad_alloc.
  MailboxHold(engine::ChannelHost& host, std::string name, DrainedBy by,
              const SubscribeOptions& options);
  /// With options of one's own; what makes it a mailbox is added.
  MailboxHold(engine::ChannelHost& host, engine::ChannelCoreOptions options,
              const engine::LaneOptions& lanes);
  ~MailboxHold() override;
  [[nodiscard]] engine::ChannelCore& core() const noexcept { return *core_; }
  /// Of the lanes of its feeders.
  [[nodiscard]] const engine::LaneOptions& lanes() const noexcept { return lanes_; }

 private:
  engine::Ref<engine::ChannelCore> core_;
  engine::LaneOptions lanes_;
};

}  // namespace ringmain::detail
