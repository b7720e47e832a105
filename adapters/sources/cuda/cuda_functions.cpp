#include "adapters/sources/cuda/cuda_functions.hpp"

#include <array>
#include <cstdio>
#include <dlfcn.h>
#include <new>
#include <string_view>

#include "adapters/sources/cuda/cuda_control.hpp"

namespace ringmain::cuda {
namespace detail {
constinit std::array<Gate, call_rows().size()> gates{};
}  // namespace detail

constinit std::atomic<Kinds> attended_kinds{0};

namespace {

using detail::AnyFunction;
using Functions = std::array<std::atomic<AnyFunction*>, call_rows().size()>;

constinit Functions found{}, replaced{};
constinit std::atomic<AnyFunction*> found_device{nullptr}, replaced_device{nullptr};
constinit std::atomic<void*> runtime{nullptr};
constexpr const char* kGetDevice = "cudaGetDevice";
constexpr std::int32_t kInsufficientDriver = 35, kCallRequiresNewerDriver = 36;

/// As the runtime's library exports it: "cudaEventRecord_ptsz".
struct Symbol {
  explicit Symbol(const CallRow& row) noexcept {
    std::snprintf(text.data(), text.size(), "%.*s%s", static_cast<int>(row.name.size()),
                  row.name.data(), row.per_thread_stream ? "_ptsz" : "");
  }
  std::array<char, 64> text;
};

/// Not found among what the process has loaded for all: a runtime that it keeps to itself, or one
/// that the loader finds. It stays.
void* library() noexcept {
  void* there = runtime;
  if (there != nullptr) return there;
  for (const int mode : {RTLD_NOW | RTLD_NOLOAD, RTLD_NOW}) {
    for (const char* name : {"libcudart.so.13", "libcudart.so.12"}) {
      if (there == nullptr) there = ::dlopen(name, mode);
    }
  }
  runtime = there;
  return there;
}
AnyFunction* find(const char* name) noexcept {
  void* place = ::dlsym(RTLD_DEFAULT, name);
  if (place == nullptr) {
    if (void* const there = library()) place = ::dlsym(there, name);
  }
  return reinterpret_cast<AnyFunction*>(place);
}

/// Not while somebody has the source's lock: then the next call does it.
void settle_when_free(std::size_t place) noexcept {
  try {
    Control::instance().try_settle_gate(place);
  } catch (const std::bad_alloc&) {  // so does the next call here
  }
}

}  // namespace

void settle_gate(std::size_t place) noexcept {
  const bool wanted = (attended_kinds & bit_of(call_rows()[place].call.kind)) != 0;
  AnyFunction* const other = replaced[place];
  detail::gates[place].attended = wanted || other != nullptr;
  detail::gates[place].plain = wanted ? nullptr : other != nullptr ? other : found[place].load();
}

void attend_to(Kinds kinds) noexcept {
  attended_kinds = kinds;
  for (std::size_t place = 0; place < call_rows().size(); ++place) {
    if (call_rows()[place].domain == CallDomain::runtime) settle_gate(place);
  }
}

AnyFunction* function_of(std::size_t place, AnyFunction* linked) noexcept {
  if (AnyFunction* const other = replaced[place]) return other;
  if (linked != nullptr) return linked;
  if (AnyFunction* const known = found[place]) return known;
  AnyFunction* const made = find(Symbol(call_rows()[place]).text.data());
  found[place] = made;
  if (made != nullptr) settle_when_free(place);
  return made;
}

std::int32_t why_no_function() noexcept {
  return find(kGetDevice) == nullptr ? kInsufficientDriver : kCallRequiresNewerDriver;
}

std::int32_t current_device(AnyFunction* linked) noexcept {
  AnyFunction* function = replaced_device;
  if (function == nullptr) function = linked;
  if (function == nullptr) function = found_device;
  if (function == nullptr) found_device = function = find(kGetDevice);
  std::int32_t device = kNoDevice;
  if (function == nullptr || reinterpret_cast<int (*)(int*)>(function)(&device) != 0)
    return kNoDevice;
  return device;
}

bool detail::replace_function(std::string_view name, AnyFunction* function) {
  if (name == kGetDevice) {
    replaced_device = function;
    return true;
  }
  bool known = false;
  for (std::size_t place = 0; place < call_rows().size(); ++place) {
    const CallRow& row = call_rows()[place];
    if (row.domain != CallDomain::runtime || name != Symbol(row).text.data()) continue;
    replaced[place] = function;
    Control::instance().settle_gate_now(place);
    known = true;  // and on: an older form of a call has a row of its own
  }
  return known;
}

}  // namespace ringmain::cuda
