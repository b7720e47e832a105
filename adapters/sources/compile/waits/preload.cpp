// How does ringmain see the wait counters of an unmodified PyTorch process? By being there, under
// the name that PyTorch looks for, before its first counter.
//
// A preload reaches every child as well, and one compile of PyTorch starts some eighty: compilers,
// linkers, workers. So this library needs nothing but the C library, and loads the rest of ringmain
// when PyTorch asks for the first time.
#include <atomic>
#include <climits>
#include <cstring>
#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

#include "adapters/sources/compile/waits/abi.hpp"

namespace ringmain::compile {
namespace {

using Offer = decltype(&ringmain_waits_offer);
using Attach = decltype(&ringmain_waits_attach);

constinit std::atomic<std::uint64_t> offered{0};
constinit Offer offer = nullptr;
constinit Attach attach = nullptr;

void say(const char* what, const char* why) noexcept {
  for (const char* part :
       {"ringmain: PyTorch's wait counters cannot be heard: ", what, why, "\n"}) {
    (void)!::write(STDERR_FILENO, part, std::strlen(part));
  }
}

/// Loads the library beside this one.
void load() noexcept {
  constexpr char kBeside[] = "libringmain_waits.so";
  Dl_info here{};
  char path[PATH_MAX];
  if (::dladdr(reinterpret_cast<void*>(&load), &here) == 0 || here.dli_fname == nullptr) return;
  const char* const slash = std::strrchr(here.dli_fname, '/');
  const auto folder = slash == nullptr ? 0 : static_cast<std::size_t>(slash + 1 - here.dli_fname);
  if (folder + sizeof kBeside > sizeof path) return;
  std::memcpy(path, here.dli_fname, folder);
  std::memcpy(path + folder, kBeside, sizeof kBeside);
  void* const library = ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const why = ::dlerror();
    return say(why == nullptr ? path : why, "; install ringmain again");
  }
  offer = reinterpret_cast<Offer>(::dlsym(library, "ringmain_waits_offer"));
  attach = reinterpret_cast<Attach>(::dlsym(library, "ringmain_waits_attach"));
}

void load_once() noexcept {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  ::pthread_once(&once, load);
}

}  // namespace
}  // namespace ringmain::compile

using namespace ringmain::compile;  // NOLINT(google-build-using-namespace): three C functions

extern "C" {

__attribute__((visibility("default"))) void c10_monitor_wait_counter_dynamic_backend_init_v1(
    abi::WaitBackend* out, const char* key, std::size_t key_bytes) {
  ++offered;
  load_once();
  if (offer != nullptr) offer(out, key, key_bytes);
}

__attribute__((visibility("default"))) int ringmain_wait_counter_attach(void* bus) {
  load_once();
  return attach == nullptr ? 0 : attach(bus);
}

__attribute__((visibility("default"))) std::uint64_t ringmain_wait_counter_keys() {
  return offered;
}
}
