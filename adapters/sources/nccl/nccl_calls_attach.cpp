// Where do the calls go that a program makes of NCCL, in a run that has asked for them? To the
// wrapper, whose functions have NCCL's own types.
#include <chrono>
#include <exception>
#include <string_view>
#include <utility>

#include "adapters/run.hpp"
#include "adapters/sources/nccl/nccl.hpp"
#include "adapters/sources/nccl/nccl_calls_words.hpp"
#include "adapters/sources/nccl/nccl_preload.hpp"

namespace ringmain::nccl {
namespace {

constexpr std::string_view kSource = "nccl_calls";

bool attach(const Functions& originals) {
  Bus* const bus = run::join(kSource);
  if (bus == nullptr) return false;
  const CallsWords words = CallsWords::read(run::argument_of(kSource));
  CallsOptions options;
  options.completions = words.ends;
  options.tags = words.tags;
  options.before_abort = [] { run::flush(std::chrono::seconds(2)); };
  use_functions(originals);
  auto attached = Calls::attach(*bus, options);
  if (!attached) {
    run::could_not_attach(kSource, attached.error().message);
    return false;
  }
  // Never destroyed: the program calls NCCL until it is gone.
  static Calls* const kept = new Calls(std::move(attached).value());
  (void)kept;
  return true;
}

template <class F>
AnyFunction* any(F* function) {
  return reinterpret_cast<AnyFunction*>(function);
}

}  // namespace
}  // namespace ringmain::nccl

int ringmain_nccl_attach(ringmain::nccl::Targets* targets) noexcept try {
  using namespace ringmain::nccl;
  if (!attach(*targets)) return 0;
  // What this NCCL has not is not offered.
  const auto put = [targets](Function which, AnyFunction* ours) {
    AnyFunction*& place = targets->at[static_cast<unsigned>(which)];
    if (place != nullptr) place = ours;
  };
#define RINGMAIN_NCCL_PUT(name, ...) put(Function::name, any(&name));
#define RINGMAIN_NCCL_PUT_2(name, ...) \
  RINGMAIN_NCCL_PUT(name)              \
  RINGMAIN_NCCL_PUT(name##Config)
  RINGMAIN_NCCL_TWINNED(RINGMAIN_NCCL_PUT_2)
  RINGMAIN_NCCL_ONE_WAY(RINGMAIN_NCCL_PUT)
  RINGMAIN_NCCL_GROUP(RINGMAIN_NCCL_PUT)
  RINGMAIN_NCCL_LIFE(RINGMAIN_NCCL_PUT)
  return 1;
} catch (const std::exception& thrown) {
  ringmain::run::could_not_attach("nccl_calls", thrown.what());
  return 0;
}
