#include "adapters/sources/nccl/nccl_factory.hpp"

#include <memory>
#include <new>
#include <string_view>
#include <utility>

#include "adapters/sources/nccl/nccl_options.hpp"
#include "adapters/sources/nccl/nccl_source.hpp"

namespace ringmain::nccl {
namespace {

/// Attached until it is destroyed.
class NamedSource final : public registry::Source {
 public:
  explicit NamedSource(nccl::Source source) : source_(std::move(source)) {}

 private:
  nccl::Source source_;
};

Result<std::unique_ptr<registry::Source>> open(Bus& bus, std::string_view argument) try {
  const auto options = Options::read(argument);
  if (!options) return options.error();
  auto attached = nccl::Source::attach(bus, options.value());
  if (!attached) return attached.error();
  return std::unique_ptr<registry::Source>(
      std::make_unique<NamedSource>(std::move(attached).value()));
} catch (const std::bad_alloc&) {
  return Error{Error::Code::no_memory, "there is no memory for the source nccl"};
}

}  // namespace
}  // namespace ringmain::nccl

void ringmain_nccl_factory(ringmain::registry::Factory* made) {
  *made = ringmain::registry::SourceFactory(&ringmain::nccl::open);
}
