// With NCCL's own header: has each function of the wrapper NCCL's type, and have our mirrors its
// layouts? That this is compiled is the test; it is where build/nccl is.
#include <cstddef>
#include <type_traits>

#include <nccl.h>

#include "adapters/sources/nccl/nccl.hpp"

namespace {

#define CHECK_TYPE(name) \
  static_assert(std::is_same_v<decltype(&::nccl##name), decltype(&ringmain::nccl::name)>, #name);
#define CHECK(name, ...) CHECK_TYPE(name)
#define CHECK_2(name, ...) CHECK_TYPE(name) CHECK_TYPE(name##Config)
#define CHECK_OF(result, name, ...) CHECK_TYPE(name)
RINGMAIN_NCCL_TWINNED(CHECK_2)
RINGMAIN_NCCL_ONE_WAY(CHECK)
RINGMAIN_NCCL_GROUP(CHECK)
RINGMAIN_NCCL_LIFE(CHECK)
RINGMAIN_NCCL_MEMORY(CHECK_OF)
RINGMAIN_NCCL_QUERY(CHECK_OF)

// What the library reads of them: nccl_life.cpp, nccl_stream.cpp.
static_assert(offsetof(ncclConfig_t, commName) == 48);
static_assert(offsetof(ncclCollConfig_t, userProfilerTag) == 56);
static_assert(sizeof(ncclConfig_t) == 120 && sizeof(ncclCollConfig_t) == 72);
static_assert(sizeof(ncclUniqueId) == 128 && sizeof(ncclResult_t) == 4);

}  // namespace
