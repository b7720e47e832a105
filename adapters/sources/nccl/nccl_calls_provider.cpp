#include "adapters/sources/nccl/nccl_calls_provider.hpp"

#include <string>
#include <string_view>

#include "adapters/sources/nccl/nccl_calls_words.hpp"

namespace ringmain::nccl {

// A program's calls are seen only where they pass a library that was there before NCCL.
registry::Provider calls_provider() {
  return {
      .kind = registry::ProviderKind::source,
      .name = "nccl_calls",
      .summary =
          "what a program asks of NCCL, as it calls for it: also what the profiler "
          "plugin never hears of",
      .argument = "[ends,tags]",
      .argument_fault = [](std::string_view argument) { return CallsWords::read(argument).fault; },
      .run = {.environment = {{"LD_PRELOAD", "{libdir}/ringmain/libringmain_nccl_preload.so",
                               registry::EnvironmentEdit::How::prepend}},
              .at_launch = true,
              .hint = "or include nccl.hpp in the program"}};
}

}  // namespace ringmain::nccl
