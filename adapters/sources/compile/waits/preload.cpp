// How does ringmain see the wait counters of an unmodified PyTorch process? A library with the name
// that PyTorch looks for is in the process before its first counter.
//
// A preload reaches every child as well, and one compile of PyTorch starts some eighty: compilers,
// linkers, workers. So this library needs nothing but the C library, and loads the rest of ringmain
// when PyTorch asks for the first time.
#include <atomic>
#include <dlfcn.h>
#include <pthread.h>
#include <type_traits>

#include "adapters/launch/library_beside.hpp"
#include "adapters/launch/say.hpp"
#include "adapters/sources/compile/waits/abi.hpp"

namespace ringmain::compile {
namespace {

using Offer = decltype(&ringmain_waits_offer);
using Attach = decltype(&ringmain_waits_attach);

constinit std::atomic<std::uint64_t> offered{0};
constinit Offer offer = nullptr;
constinit Attach attach = nullptr;

void load() noexcept {
  const run::LibraryBeside rest("libringmain_waits.so", RTLD_NOW | RTLD_LOCAL);
  if (!rest) {
    return run::say(
        {"PyTorch's wait counters cannot be heard: ", rest.why(), "; install ringmain again"});
  }
  offer = rest.function<std::remove_pointer_t<Offer>>("ringmain_waits_offer");
  attach = rest.function<std::remove_pointer_t<Attach>>("ringmain_waits_attach");
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
