#include "adapters/sources/cuda/cuda_factory.hpp"

#include <memory>
#include <new>
#include <string_view>
#include <utility>

#include "adapters/sources/cuda/cuda_options.hpp"
#include "adapters/sources/cuda/cuda_source.hpp"

namespace ringmain::cuda {
namespace {

/// Attached until it is destroyed.
class NamedSource final : public registry::Source {
 public:
  explicit NamedSource(cuda::Source source) : source_(std::move(source)) {}

 private:
  cuda::Source source_;
};

Result<std::unique_ptr<registry::Source>> open(Bus& bus, std::string_view argument) try {
  const auto options = Options::read(argument);
  if (!options) return options.error();
  auto attached = cuda::Source::attach(bus, options.value());
  if (!attached) return attached.error();
  return std::unique_ptr<registry::Source>(
      std::make_unique<NamedSource>(std::move(attached).value()));
} catch (const std::bad_alloc&) {
  return Error{Error::Code::no_memory, "there is no memory for the source cuda"};
}

}  // namespace
}  // namespace ringmain::cuda

void ringmain_cuda_factory(ringmain::registry::Factory* made) {
  *made = ringmain::registry::SourceFactory(&ringmain::cuda::open);
}
