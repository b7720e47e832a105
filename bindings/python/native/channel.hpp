// How does Python publish on a channel? By field names, or as rows of bytes.
#pragma once
#include <string>

#include "engine/channel/channel_core.hpp"

#include "bus/publisher.hpp"

#include "bindings/python/native/layout.hpp"

namespace ringmain::python {

/// Keeps the channel's core alive, so it may outlive the bus: publishing then returns `closed`.
class Channel {
 public:
  explicit Channel(engine::ChannelCore& core)
      : core_(&core), layout_(&Layout::of(*static_cast<const Schema*>(core.options().schema))) {}

  [[nodiscard]] engine::ChannelCore& core() const noexcept { return *core_; }
  [[nodiscard]] const Layout& layout() const noexcept { return *layout_; }
  [[nodiscard]] std::string_view name() const noexcept { return core_->options().name; }
  [[nodiscard]] bool wanted() const noexcept { return core_->line.heard(); }
  /// One event of schema().bytes, on this thread's lane, with the GIL held: nothing here waits.
  PublishResult publish(const std::byte* event) const noexcept;
  /// `rows`: a buffer of whole events, back to back.
  BatchResult publish_rows(nb::handle rows) const;

 private:
  engine::Ref<engine::ChannelCore> core_;
  const Layout* layout_;
};

/// Classes Layout, Channel, PublishResult, BatchResult; define(), name(), name_text(), described().
void bind_channel(nb::module_& m);
/// The events that this version of ringmain describes in C++.
[[nodiscard]] std::vector<const Schema*> described_events();

}  // namespace ringmain::python
