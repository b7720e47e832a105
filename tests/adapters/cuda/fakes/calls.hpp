// The calls of calls.inc as types: number, name and parameter struct of each.
#pragma once
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "tests/adapters/cuda/fakes/cuda_types.hpp"

namespace ringmain::fake {

struct Row {
  int domain;
  std::uint32_t cbid;
  const char* name;      // "cudaMalloc_v3020", as cuptiGetCallbackName says it
  const char* function;  // "cudaMalloc"
};
struct NoParams {};

// In these macros a name is only pasted or quoted: CUDA's headers make macros of some.
#ifndef FAKE_CUDA_REAL_HEADERS
#define FAKE_DRIVER_CALL(number, name, fields) \
  struct name##_params {                       \
    fields                                     \
  };
#define FAKE_DRIVER_CALL_WITHOUT(number, name)
#define FAKE_RUNTIME_CALL(number, name, fields) \
  struct name##_params {                        \
    fields                                      \
  };
#define FAKE_RUNTIME_CALL_WITHOUT(number, name)
#include "tests/adapters/cuda/fakes/calls.inc"
#undef FAKE_DRIVER_CALL
#undef FAKE_DRIVER_CALL_WITHOUT
#undef FAKE_RUNTIME_CALL
#undef FAKE_RUNTIME_CALL_WITHOUT
#define FAKE_SAME_NUMBER(number, theirs)
#define FAKE_SAME_FIELDS(ours, theirs, fields)
#else
#define FAKE_SAME_NUMBER(number, theirs) static_assert(number == theirs);
#define FAKE_SAME_FIELDS(ours, theirs, fields) \
  struct ours {                                \
    fields                                     \
  };                                           \
  static_assert(sizeof(ours) == sizeof(theirs));
#endif

/// What stands before "_v3020"; all of a driver's name.
constexpr std::size_t function_size(std::string_view name) {
  if (name.substr(0, 4) != "cuda") return name.size();
  return name.rfind("_v");
}
template <std::size_t Size>
struct Function {
  char text[Size + 1] = {};
  constexpr explicit Function(std::string_view name) {
    for (std::size_t i = 0; i < Size; ++i) text[i] = name[i];
  }
};

#define FAKE_CALL(domain, number, call, name, params)                             \
  struct call {                                                                   \
    using Params = params;                                                        \
    static constexpr Function<function_size(name)> kFunction{name};               \
    static constexpr Row row() { return {domain, number, name, kFunction.text}; } \
  };
#define FAKE_DRIVER_CALL(number, name, fields)             \
  FAKE_SAME_NUMBER(number, CUPTI_DRIVER_TRACE_CBID_##name) \
  FAKE_SAME_FIELDS(name##_fields, name##_params, fields)   \
  FAKE_CALL(1, number, name##_call, #name, name##_params)
#define FAKE_DRIVER_CALL_WITHOUT(number, name)             \
  FAKE_SAME_NUMBER(number, CUPTI_DRIVER_TRACE_CBID_##name) \
  FAKE_CALL(1, number, name##_call, #name, NoParams)
#define FAKE_RUNTIME_CALL(number, name, fields)             \
  FAKE_SAME_NUMBER(number, CUPTI_RUNTIME_TRACE_CBID_##name) \
  FAKE_SAME_FIELDS(name##_fields, name##_params, fields)    \
  FAKE_CALL(2, number, name##_call, #name, name##_params)
#define FAKE_RUNTIME_CALL_WITHOUT(number, name)             \
  FAKE_SAME_NUMBER(number, CUPTI_RUNTIME_TRACE_CBID_##name) \
  FAKE_CALL(2, number, name##_call, #name, NoParams)
#include "tests/adapters/cuda/fakes/calls.inc"

/// All of them.
#undef FAKE_DRIVER_CALL
#undef FAKE_DRIVER_CALL_WITHOUT
#undef FAKE_RUNTIME_CALL
#undef FAKE_RUNTIME_CALL_WITHOUT
#define FAKE_DRIVER_CALL(number, name, fields) name##_call::row(),
#define FAKE_DRIVER_CALL_WITHOUT(number, name) name##_call::row(),
#define FAKE_RUNTIME_CALL(number, name, fields) name##_call::row(),
#define FAKE_RUNTIME_CALL_WITHOUT(number, name) name##_call::row(),
inline constexpr Row kRows[] = {
#include "tests/adapters/cuda/fakes/calls.inc"
};

}  // namespace ringmain::fake
