// The front end for programs in Python: one communicator, by functions for C.
#include <optional>

#include "tests/adapters/nccl/programs/front_end.hpp"

namespace {
std::optional<ringmain::nccl::FrontEnd> front;
std::uint64_t sequence = 0;
}  // namespace

extern "C" {
__attribute__((visibility("default"))) int played_open() {
  return front.emplace().open() ? 0 : 1;
}
__attribute__((visibility("default"))) void played_collective(int has_kernel) {
  front->collective(sequence++, has_kernel != 0);
}
__attribute__((visibility("default"))) void played_close() {
  front->close();
  front.reset();
}
}
