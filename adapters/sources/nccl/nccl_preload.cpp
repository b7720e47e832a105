// Which of a program's calls to NCCL come through here? Those of the table that somebody may be
// told of. This small library is preloaded into every process of the command.
//
// What it passes them to is found at the first call: a Python program loads its NCCL long after its
// start, often for itself alone, and a process that never calls NCCL pays for mapping a few pages.
// NCCL calls some of its own functions by their symbols, which come here, too: whoever watches
// recognises them.
#include "adapters/sources/nccl/nccl_preload.hpp"

#include <atomic>
#include <cstring>
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>

#include "adapters/launch/library_beside.hpp"
#include "adapters/launch/original.hpp"
#include "adapters/launch/say.hpp"
#include "adapters/run.h"
#include "adapters/sources/nccl/nccl_types.hpp"

namespace ringmain::nccl {
namespace {

constinit std::atomic<AnyFunction*> targets[kFunctions] = {};

/// One that was loaded by dlopen, as Python's packages do: its loader alone sees its names.
int find_loaded(dl_phdr_info* library, std::size_t, void* found) noexcept {
  const char* const slash = std::strrchr(library->dlpi_name, '/');
  const char* const file = slash == nullptr ? library->dlpi_name : slash + 1;
  if (std::strncmp(file, "libnccl.so", 10) != 0) return 0;
  *static_cast<void**>(found) = ::dlopen(library->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
  return 1;
}

void could_not_attach(const char* why) noexcept {
  const run::LibraryBeside rest("../" RINGMAIN_RUN_FILE, RTLD_LAZY | RTLD_LOCAL);
  using Say = decltype(ringmain_run_could_not_attach);
  if (auto* const tell = rest.function<Say>("ringmain_run_could_not_attach"))
    return tell("nccl_calls", why);
  run::say({"source nccl_calls could not attach: ", why});
}

void attach(Functions& found) noexcept {
  const run::LibraryBeside library("libringmain_nccl_calls.so", RTLD_NOW | RTLD_LOCAL);
  if (!library) return could_not_attach(library.why());
  auto* const enter = library.function<decltype(ringmain_nccl_attach)>("ringmain_nccl_attach");
  if (enter == nullptr)
    return could_not_attach("it has no ringmain_nccl_attach; install ringmain again");
  (void)enter(&found);
}

void resolve_all() noexcept {
  static constinit Functions found{};
  void* library = nullptr;
  for (unsigned i = 0; i < kFunctions; ++i)
    found.at[i] = run::original<AnyFunction>(kFunctionRows[i].symbol);
  if (found.at[static_cast<unsigned>(Function::GroupStart)] == nullptr) {
    ::dl_iterate_phdr(find_loaded, &library);
    for (unsigned i = 0; i < kFunctions; ++i)
      found.at[i] = run::found_in<AnyFunction>(library, kFunctionRows[i].symbol);
  }
  if (found.at[static_cast<unsigned>(Function::GroupStart)] != nullptr) attach(found);
  for (unsigned i = 0; i < kFunctions; ++i) targets[i] = found.at[i];
}

[[gnu::noinline, gnu::cold]] AnyFunction* resolve(Function which) noexcept {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  ::pthread_once(&once, resolve_all);
  return targets[static_cast<unsigned>(which)];
}

/// A function that the program has linked, and its NCCL has not, it could not have called. One that
/// looks for it among all that is loaded, dlsym(RTLD_DEFAULT), has found it here, where it cannot
/// be hidden: what a library offers is settled before NCCL is known.
[[gnu::noinline, gnu::cold]] ncclResult_t missing(Function which) noexcept {
  static constinit std::atomic<bool> said{false};
  if (!said.exchange(true)) {
    run::say({kFunctionRows[static_cast<unsigned>(which)].symbol,
              " was called, which the program's NCCL does not have: a program that looks for "
              "functions by dlsym(RTLD_DEFAULT) finds them in ringmain's preload; it answers "
              "ncclSystemError, and without the source nccl_calls it is not found"});
  }
  return ncclSystemError;
}

template <class... A>
ncclResult_t pass_on(Function which, A... arguments) noexcept {
  AnyFunction* target = targets[static_cast<unsigned>(which)];
  if (target == nullptr) [[unlikely]]
    target = resolve(which);
  if (target == nullptr) return missing(which);
  return reinterpret_cast<ncclResult_t (*)(A...)>(target)(arguments...);
}

}  // namespace

extern "C" {
#pragma GCC visibility push(default)

#define RINGMAIN_NCCL_PASS_NONE(name) \
  ncclResult_t nccl##name() {         \
    return pass_on(Function::name);   \
  }
#define RINGMAIN_NCCL_PASS(name, since, parameters, names, ...) \
  ncclResult_t nccl##name parameters {                          \
    return pass_on(Function::name, RINGMAIN_NCCL_PLAIN names);  \
  }
#define RINGMAIN_NCCL_PASS_2(name, since, parameters, names, ...)              \
  RINGMAIN_NCCL_PASS(name, since, parameters, names)                           \
  ncclResult_t nccl##name##Config(RINGMAIN_NCCL_PLAIN parameters,              \
                                  const ncclCollConfig_t* config) {            \
    return pass_on(Function::name##Config, RINGMAIN_NCCL_PLAIN names, config); \
  }
RINGMAIN_NCCL_TWINNED(RINGMAIN_NCCL_PASS_2)
RINGMAIN_NCCL_ONE_WAY(RINGMAIN_NCCL_PASS)
RINGMAIN_NCCL_LIFE(RINGMAIN_NCCL_PASS)
RINGMAIN_NCCL_PASS_NONE(GroupStart)
RINGMAIN_NCCL_PASS_NONE(GroupEnd)
ncclResult_t ncclGroupSimulateEnd(ncclSimInfo_t* simInfo) {
  return pass_on(Function::GroupSimulateEnd, simInfo);
}

#pragma GCC visibility pop
}

}  // namespace ringmain::nccl
