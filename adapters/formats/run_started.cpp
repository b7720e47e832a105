#include "adapters/formats/output_open.hpp"

namespace ringmain::formats {

void keep_run_started(const char* started) noexcept {
  run_started_at_start = started;
}

}  // namespace ringmain::formats
