#include "adapters/sources/nccl/nccl_source.hpp"

#include <utility>

#include "adapters/sources/nccl/nccl_control.hpp"

namespace ringmain::nccl {

Source::Source(std::shared_ptr<Attachment> attached) noexcept : attached_(std::move(attached)) {}

Source& Source::operator=(Source&& other) noexcept {
  if (this == &other) return *this;
  (void)detach();  // the old one ends here
  attached_ = std::move(other.attached_);
  return *this;
}

Source::~Source() {
  (void)detach();  // whatever it answers, nothing of this one begins to be published
}

Result<Source> Source::attach(Bus& bus, const Options& options) {
  auto made = Control::instance().attach(bus, options);
  if (!made) return made.error();
  return Source(std::move(made).value());
}

Detached Source::detach() noexcept {
  return attached_ ? Control::instance().detach(attached_) : Detached::was_not_attached;
}

Detached Source::leave(nanoseconds limit) noexcept {
  return attached_ ? Control::instance().leave(attached_, limit) : Detached::was_not_attached;
}

std::uint32_t Source::tell_stalled() noexcept {
  const Inside in;
  return in && attached_ && in.to() == attached_.get() ? watch(in, true) : 0;
}
std::uint32_t Source::tell_stalled_in_process() noexcept {
  const Inside in;
  return in ? watch(in, true) : 0;
}

Counts Source::counts() noexcept {
  return switchboard.counts.now();
}

}  // namespace ringmain::nccl
