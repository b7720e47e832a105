// Finds CUPTI as the source does and says what came of it, a line for each thing.
//
//   find_cupti [--load FILE]… [--subscribe]… [PATH]
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <string>

#include "adapters/sources/cuda/cupti_library.hpp"

// A CUPTI that refuses a subscriber keeps what it had taken until then.
extern "C" const char* __lsan_default_suppressions() {
  return "leak:libcupti.so\n";
}

namespace {

void hears_nothing(void*, ringmain::cuda::abi::Domain, std::uint32_t, const void*) {}

void subscribe(const ringmain::cuda::Cupti& cupti) {
  std::string owner;
  ringmain::cuda::abi::Result code = -1;
  const auto subscriber = cupti.subscribe(&hears_nothing, nullptr, &owner, &code);
  std::printf("subscribe: code %d, owner \"%s\", %s\n", code, owner.c_str(),
              subscriber ? "done" : subscriber.error().message.c_str());
}

}  // namespace

int main(int count, char** words) {
  std::string wanted;
  int subscriptions = 0;
  for (int i = 1; i < count; ++i) {
    if (std::strcmp(words[i], "--load") == 0 && i + 1 < count) {
      if (::dlopen(words[++i], RTLD_LAZY) == nullptr) std::printf("load: %s\n", ::dlerror());
    } else if (std::strcmp(words[i], "--subscribe") == 0) {
      ++subscriptions;
    } else {
      wanted = words[i];
    }
  }
  const auto cupti = ringmain::cuda::Cupti::open(wanted);
  if (!cupti) {
    std::printf("error: %s\n", cupti.error().message.c_str());
    return 0;
  }
  std::printf("path: %s\nversion: %u\nwarning: %s\n", cupti.value()->path.c_str(),
              cupti.value()->version, cupti.value()->warning.c_str());
  for (; subscriptions > 0; --subscriptions) subscribe(*cupti.value());
  return 0;
}
