// How do NVTX's headers and a library that they load talk to each other? The ABI of NVTX 3 without
// NVIDIA's headers; tests/adapters/nvtx compares it with the real ones.
//
// Each copy of the headers (in the program, in each shared library) has a table of pointers to its
// function pointers. It loads the library, calls InitializeInjectionNvtx2 with a function that
// gives its table, and from then on calls what the library put there.
#pragma once
#include <cstddef>
#include <cstdint>

namespace ringmain::nvtx::abi {

using Function = void (*)();
using GetExportTable = const void* (*)(std::uint32_t id);
using Initialize = int (*)(GetExportTable);

constexpr std::uint32_t kCallbacks = 1;  // the export table that is wanted
struct Callbacks {
  std::size_t struct_bytes;
  int (*table_of_module)(std::int32_t module, Function*** table, unsigned* count);
};

enum Module : std::int32_t { kCore = 1, kCore2 = 5, kSync = 6 };
enum Core : unsigned {
  kMarkEx = 1,
  kMarkA,
  kMarkW,
  kRangeStartEx,
  kRangeStartA,
  kRangeStartW,
  kRangeEnd,
  kRangePushEx,
  kRangePushA,
  kRangePushW,
  kRangePop,
  kNameCategoryA,
  kNameCategoryW,
  kCoreSize = 16
};
enum Core2 : unsigned {
  kDomainMarkEx = 1,
  kDomainRangeStartEx,
  kDomainRangeEnd,
  kDomainRangePushEx,
  kDomainRangePop,
  kDomainResourceCreate,
  kDomainResourceDestroy,
  kDomainNameCategoryA,
  kDomainNameCategoryW,
  kDomainRegisterStringA,
  kDomainRegisterStringW,
  kDomainCreateA,
  kDomainCreateW,
  kDomainDestroy,
  kCore2Size = 16
};
enum Sync : unsigned { kSyncUserCreate = 1, kSyncSize = 7 };

using Handle = void*;  // of a domain, a registered string, a resource
using RangeId = std::uint64_t;
constexpr int kNoTracking = -2;  // NVTX_NO_PUSH_POP_TRACKING

union MessageValue {
  const char* ascii;
  const wchar_t* wide;
  Handle registered;
};
enum MessageType : std::int32_t { kAscii = 1, kWide = 2, kRegistered = 3 };
constexpr std::int32_t kArgb = 1;
constexpr std::int32_t kExtendedPayload = static_cast<std::int32_t>(0xDFBD0009);

struct EventAttributes {
  std::uint16_t version;
  std::uint16_t bytes;
  std::uint32_t category;
  std::int32_t color_type;
  std::uint32_t color;
  std::int32_t payload_type;
  std::int32_t reserved;
  union Value {
    std::uint64_t u64;
    std::int64_t i64;
    double f64;
    std::uint32_t u32;
    std::int32_t i32;
    float f32;
  } payload;
  std::int32_t message_type;
  MessageValue message;
};
struct ResourceAttributes {
  std::uint16_t version;
  std::uint16_t bytes;
  std::int32_t identifier_type;
  std::uint64_t identifier;
  std::int32_t message_type;
  MessageValue message;
};
struct SyncAttributes {
  std::uint16_t version;
  std::uint16_t bytes;
  std::int32_t message_type;
  MessageValue message;
};

}  // namespace ringmain::nvtx::abi
