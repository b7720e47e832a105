// What is the mailbox of a subscription, who drains it, and how long does it live? Not for users of
// the library.
//
// A mailbox is a channel core of its own, with the same lanes, ledger and workers. Feeders write to
// its lanes. It is let go of when the last feeder and its reader are gone.
#pragma once
#include <cstdint>
#include <string>

#include "../../engine/channel/channel_core.hpp"

#include "../options.hpp"

namespace ringmain::detail {

enum class DrainedBy : std::uint8_t { workers, own_thread, its_user };
/// Who drains the mailbox of a subscriber that has one. A manual bus has no threads: deliver()
/// serves it.
[[nodiscard]] DrainedBy drained_by(const SubscribeOptions& options,
                                   const engine::ChannelHost& host) noexcept;
/// Throws std::invalid_argument with one sentence for options that cannot hold.
void check(const SubscribeOptions& options, bool has_mailbox);

/// Keeps a mailbox's core with its workers until the last feeder and reader are gone.
class MailboxHold final : public engine::Counted {
 public:
  /// Throws std::bad_alloc.
  MailboxHold(engine::ChannelHost& host, std::string name, DrainedBy by,
              const SubscribeOptions& options);
  /// With the caller's options, to which is added what makes it a mailbox.
  MailboxHold(engine::ChannelHost& host, engine::ChannelCoreOptions options,
              const engine::LaneOptions& lanes);
  ~MailboxHold() override;
  [[nodiscard]] engine::ChannelCore& core() const noexcept { return *core_; }
  /// The options of its feeders' lanes.
  [[nodiscard]] const engine::LaneOptions& lanes() const noexcept { return lanes_; }

 private:
  engine::Ref<engine::ChannelCore> core_;
  engine::LaneOptions lanes_;
};

}  // namespace ringmain::detail
