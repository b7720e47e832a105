// Which buffer does work on a stream touch? CUDA's calls do not say: launches of kernels are not
// heard, and their arguments have no types. Who launches the work knows, and publishes it.
//
//   uses.publish({.address = a, .bytes = n, .stream = s, .thread = tid, .by = kScale,
//                 .access = cuda::Access::write});
#pragma once
#include <cstdint>

#include "cuda.hpp"

namespace ringmain::cuda {

enum class Access : std::uint8_t { read, write };

/// `cuda.buffer_use`: work that reads or writes a buffer was put on a stream. Published by the
/// thread that puts it there, beside the launch and between its other calls on that stream, so that
/// the place in the stream is right.
struct BufferUse {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  std::uint64_t stream = kNoStream;  // 0: the legacy default stream, 2: the thread's own
  std::uint32_t context = 0;         // CUPTI's number; 0: not known
  std::int32_t device = kNoDevice;
  std::int32_t thread = 0;  // the one that put it there, as Linux numbers it
  Name by;                  // what uses it: the kernel or the operation
  Access access = Access::read;
};
constexpr auto describe(EventOf<BufferUse>) {
  using E = BufferUse;
  return event("cuda.buffer_use", field<&E::address>("address", Unit::address),
               field<&E::bytes>("bytes", Unit::bytes), field<&E::access>("access", "read,write"),
               field<&E::stream>("stream", Unit::stream), field<&E::by>("by"),
               field<&E::device>("device", Unit::device), field<&E::context>("context", Unit::id),
               field<&E::thread>("thread", Unit::id));
}

}  // namespace ringmain::cuda
