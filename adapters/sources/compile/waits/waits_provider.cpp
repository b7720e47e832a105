#include "adapters/sources/compile/waits/waits_provider.hpp"

namespace ringmain::compile {

// PyTorch looks for what hears its wait counters before the first of them.
registry::Provider waits_provider() {
  return {.kind = registry::ProviderKind::source,
          .name = "torch_waits",
          .summary = "what PyTorch waits for in C++: compiles, process groups, devices",
          .run = {.environment = {{"LD_PRELOAD", "{libdir}/ringmain/libringmain_wait_counter.so",
                                   registry::EnvironmentEdit::How::prepend}},
                  .at_launch = true}};
}

}  // namespace ringmain::compile
