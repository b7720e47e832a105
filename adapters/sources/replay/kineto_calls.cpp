#include "adapters/sources/replay/kineto_calls.hpp"

#include <algorithm>

namespace ringmain::replay {
namespace {

bool equal_in_any_case(std::string_view text, std::string_view lower) {
  return std::equal(text.begin(), text.end(), lower.begin(), lower.end(), [](char a, char b) {
    return (a >= 'A' && a <= 'Z' ? static_cast<char>(a - 'A' + 'a') : a) == b;
  });
}

}  // namespace

KinetoSide side_of(std::string_view category) noexcept {
  struct Row {
    std::string_view category;
    KinetoSide side;
  };
  static constexpr Row kRows[] = {
      // the most frequent first
      {"cuda_runtime", KinetoSide::runtime_call},
      {"kernel", KinetoSide::gpu},
      {"gpu_memcpy", KinetoSide::gpu},
      {"gpu_memset", KinetoSide::gpu},
      {"cuda_driver", KinetoSide::driver_call},
      {"gpu_user_annotation", KinetoSide::gpu},
      {"cuda_sync", KinetoSide::gpu},
      {"cuda_event", KinetoSide::gpu},
      {"cuda_profiler_range", KinetoSide::gpu},
      {"concurrent_kernel", KinetoSide::gpu},
      {"hip_runtime", KinetoSide::runtime_call},
      {"hip_driver", KinetoSide::driver_call},
      {"runtime", KinetoSide::runtime_call},  // this and the next two: Kineto of 2021
      {"memcpy", KinetoSide::gpu},
      {"memset", KinetoSide::gpu},
  };
  if (category.size() < 6 || category == "cpu_op") return KinetoSide::other;
  for (const Row& row : kRows) {
    if (equal_in_any_case(category, row.category)) return row.side;
  }
  return KinetoSide::other;
}

bool is_kernel(std::string_view category) noexcept {
  return equal_in_any_case(category, "kernel") || equal_in_any_case(category, "concurrent_kernel");
}

cuda::Call call_of(const KinetoRecord& record, KinetoSide side) noexcept {
  if (const auto named = cuda::call_named(record.name)) return *named;
  return side == KinetoSide::driver_call ? cuda::driver_call(record.args.cbid)
                                         : cuda::runtime_call(record.args.cbid);
}

bool is_launch(std::string_view api) noexcept {
  return api.find("Launch") != std::string_view::npos;
}

}  // namespace ringmain::replay
