#include "adapters/sources/cuda/cuda_ending.hpp"

#include <cstdint>
#include <cstdlib>

namespace ringmain::cuda {
namespace {
constexpr std::int64_t kEndWaitNsMax = 5'000'000'000;
}

constinit Ending ending;

void Ending::watch_for() noexcept {
  if (watched_for_.exchange(true)) return;
  if (std::atexit([] { ending.begin(); }) != 0) watched_for_ = false;  // the next one tries again
}

void Ending::begin() noexcept {
  begun_ = true;
  (void)asking_.wait_until_none(kEndWaitNsMax);
}

Error too_late() {
  return {Error::Code::refused,
          "the source of CUDA's calls is not attached, lent or taken back while the process ends: "
          "do it before exit()"};
}

}  // namespace ringmain::cuda
