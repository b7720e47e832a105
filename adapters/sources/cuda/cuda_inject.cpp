// The library that the driver loads into a program when CUDA is initialised there, for
// `ringmain run --source cuda`.
//
// The driver calls InitializeInjection inside the program's first call that initialises CUDA, in
// that thread. A tool that the program was to have anyway is loaded first: if it takes CUPTI's one
// place, the place is its.
#include <atomic>
#include <cerrno>
#include <exception>
#include <utility>

#include "adapters/launch/chained.hpp"
#include "adapters/run.hpp"
#include "adapters/sources/cuda/cuda_options.hpp"
#include "adapters/sources/cuda/cuda_source.hpp"

extern "C" __attribute__((visibility("default"))) int InitializeInjection() noexcept;

namespace ringmain::cuda {
namespace {

void start_chained() {
  auto* const chained =
      run::chained<int()>("RINGMAIN_CUDA_CHAIN", "InitializeInjection", "CUDA tool",
                          "CUDA_INJECTION64_PATH", &InitializeInjection);
  if (chained != nullptr) (void)chained();
}

void attach() {
  Bus* const bus = run::join("cuda");
  if (bus == nullptr) return;
  const auto options = Options::read(run::argument_of("cuda"));
  if (!options) return run::could_not_attach("cuda", options.error().message);
  auto attached = Source::attach(*bus, options.value());
  if (!attached) return run::could_not_attach("cuda", attached.error().message);
  // Never destroyed: the program calls CUDA until it is gone.
  static Source* const kept = new Source(std::move(attached).value());
  run::at_end([](nanoseconds limit) { (void)kept->leave(limit); });
}

}  // namespace
}  // namespace ringmain::cuda

/// Once in a process; a second call does nothing. 1: the driver goes on with the program.
int InitializeInjection() noexcept {
  using namespace ringmain;
  static std::atomic<bool> called{false};
  if (called.exchange(true)) return 1;
  const int saved = errno;
  try {
    cuda::start_chained();
    cuda::attach();
  } catch (const std::exception& thrown) {
    run::could_not_attach("cuda", thrown.what());
  }
  errno = saved;
  return 1;
}
