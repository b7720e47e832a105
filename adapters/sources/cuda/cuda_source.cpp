#include "adapters/sources/cuda/cuda_source.hpp"

#include <utility>

#include "adapters/sources/cuda/cuda_callback.hpp"
#include "adapters/sources/cuda/cuda_control.hpp"

namespace ringmain::cuda {

Source::Source(std::shared_ptr<Attachment> attached) noexcept : attached_(std::move(attached)) {}

Source& Source::operator=(Source&& other) noexcept {
  if (this == &other) return *this;
  (void)detach();  // the old one ends here
  attached_ = std::move(other.attached_);
  return *this;
}

Source::~Source() {
  (void)detach();  // whatever it answers, no call of this one begins to be published
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

Result<bool> Source::lend(std::string_view to) {
  return Control::instance().lend(attached_, to);
}
Result<bool> Source::take_back() {
  return Control::instance().take_back(attached_);
}

Counts Source::counts() const noexcept {
  if (!attached_) return {};
  const SourceNotice now = notice_of(*attached_, SourceState::attached);
  return {now.published, now.refused, now.suppressed, now.unkept};
}

SourceState Source::state() const noexcept {
  return attached_ ? Control::instance().state(attached_) : SourceState::detached;
}

std::optional<SourceState> Source::state_in_process(const Bus* bus) {
  Control& control = Control::instance();
  const auto current = control.current();
  if (!current || (bus != nullptr && bus != &current->bus)) return std::nullopt;
  return control.state(current);
}
Result<bool> Source::lend_in_process(std::string_view to) {
  Control& control = Control::instance();
  return control.lend(control.current(), to);
}
Result<bool> Source::take_back_in_process() {
  Control& control = Control::instance();
  return control.take_back(control.current());
}

}  // namespace ringmain::cuda
