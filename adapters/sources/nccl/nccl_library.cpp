// Where are NCCL's functions? In a library that the process has loaded, or that the loader finds.
#include <cstring>
#include <dlfcn.h>
#include <link.h>
#include <string>

#include "adapters/launch/original.hpp"
#include "adapters/sources/nccl/nccl_calls_attachment.hpp"

namespace ringmain::nccl {
namespace detail {

constinit Gate gates[kFunctions] = {};

namespace {

std::atomic<bool> given{false};  // by use_functions()

/// One that the process has loaded, whoever may see its names: Python's packages load NCCL for
/// themselves.
int find_loaded(dl_phdr_info* library, std::size_t, void* found) noexcept {
  const char* const slash = std::strrchr(library->dlpi_name, '/');
  const char* const file = slash == nullptr ? library->dlpi_name : slash + 1;
  if (std::strncmp(file, "libnccl.so", 10) != 0) return 0;
  *static_cast<std::string*>(found) = library->dlpi_name;
  return 1;
}

void fill(Functions& functions, void* library) noexcept {
  for (unsigned i = 0; i < kFunctions; ++i)
    functions.at[i] = run::found_in<AnyFunction>(library, kFunctionRows[i].symbol);
}

void look() {
  if (given) return;
  auto functions = load_functions(nullptr);
  if (functions && !given) use_functions(functions.value());
}

}  // namespace

AnyFunction* find(Function which) noexcept {
  try {
    // Not std::call_once(): a library whose memory of threads is found without a call cannot use
    // the C++ library's where that was loaded late, as in a Python that has imported PyTorch.
    static const bool looked = (look(), true);
    (void)looked;
  } catch (...) {  // no memory: the next call looks
    return nullptr;
  }
  return gates[static_cast<unsigned>(which)].function;
}

namespace {
void set_gates_once(bool attended) noexcept {
  for (unsigned i = 0; i < kFunctions; ++i) {
    const auto which = static_cast<Function>(i);
    const bool told = which < Function::GroupStart ||
                      (which >= Function::CommInitRank && which < Function::MemAlloc);
    gates[i].plain = attended && told ? nullptr : gates[i].function.load();
  }
}
}  // namespace

/// Opens the gates, or has each call ask. What nobody is told of needs none. Whoever writes them
/// last has seen what is right: threads look for functions while others attach.
void set_gates() noexcept {
  for (bool attended = heard_here();;) {
    set_gates_once(attended);
    const bool now = heard_here();
    if (now == attended) return;
    attended = now;
  }
}

}  // namespace detail

Result<Functions> load_functions(const char* file) try {
  void* library = nullptr;
  if (file == nullptr) {
    std::string loaded;
    ::dl_iterate_phdr(detail::find_loaded, &loaded);
    if (!loaded.empty()) library = ::dlopen(loaded.c_str(), RTLD_NOW | RTLD_NOLOAD);
    file = "libnccl.so.2";
  }
  if (library == nullptr) library = ::dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const why = ::dlerror();
    return Error{Error::Code::refused,
                 std::string("NCCL could not be loaded: ") + (why == nullptr ? file : why)};
  }
  Functions functions;
  detail::fill(functions, library);
  return functions;
} catch (const std::bad_alloc&) {
  return Error{Error::Code::refused, "there is no memory to look for NCCL"};
}

void use_functions(const Functions& functions) noexcept {
  detail::given = true;
  for (unsigned i = 0; i < kFunctions; ++i) detail::gates[i].function = functions.at[i];
  detail::set_gates();
}

}  // namespace ringmain::nccl
