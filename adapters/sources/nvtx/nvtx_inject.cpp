// The library that a program's NVTX loads. It is called once for each copy of NVTX's headers in the
// process, at the first NVTX call through it.
#include <atomic>
#include <string>
#include <type_traits>

#include "adapters/launch/chained.hpp"
#include "adapters/run.hpp"
#include "adapters/sources/nvtx/nvtx_source.hpp"
#include "adapters/sources/nvtx/nvtx_steps.hpp"

extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(
    ringmain::nvtx::abi::GetExportTable get) noexcept;

namespace ringmain::nvtx {
namespace {

/// The tool that was there before `ringmain run`; nullptr if there was none.
abi::Initialize find_chained() {
  return run::chained<std::remove_pointer_t<abi::Initialize>>(
      "RINGMAIN_NVTX_CHAIN", "InitializeInjectionNvtx2", "NVTX tool", "NVTX_INJECTION64_PATH",
      &InitializeInjectionNvtx2);
}

/// Reads once which ranges are steps. Ranges are heard also if that is wrong.
void take_argument(Bus& bus) {
  static std::atomic<bool> taken{false};
  const std::string argument = taken.exchange(true) ? "" : run::argument_of("nvtx");
  if (argument.empty()) return;
  if (const auto said = publish_steps(bus, argument); !said)
    run::could_not_attach("nvtx", "no steps are heard: " + said.error().message);
}

}  // namespace
}  // namespace ringmain::nvtx

/// 0: not attached. The copy then forgets this library, and the program goes on without it.
int InitializeInjectionNvtx2(ringmain::nvtx::abi::GetExportTable get) noexcept try {
  using namespace ringmain;
  static const nvtx::abi::Initialize chained = nvtx::find_chained();
  if (Bus* const bus = run::join("nvtx")) {
    nvtx::take_argument(*bus);
    const auto attached = nvtx::attach(*bus, get, chained);
    if (attached) return 1;
    static std::atomic<bool> said{false};  // a program may have many copies of NVTX
    if (!said.exchange(true)) run::could_not_attach("nvtx", attached.error().message);
  }
  return chained != nullptr ? chained(get) : 0;
} catch (...) {
  return 0;  // out of memory
}
