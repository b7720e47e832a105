// A program with a communicator that tells a profiler plugin of collectives, as NCCL does.
//
// usage: front_end CYCLES COLLECTIVES [leave|hang]; leave: by _exit, with the communicator open;
// hang: the last collective's kernel does not end before standard input does, which is said
#include "tests/adapters/nccl/programs/front_end.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <unistd.h>

#include "tests/adapters/nccl/fake_plugin.hpp"

namespace abi = ringmain::nccl::abi;
using ringmain::nccl::FrontEnd;

namespace {

/// How often a plugin that was to be there anyway was told of a start.
int told_others() {
  const char* const fake = std::getenv("FAKE_PLUGIN");
  void* const library = fake == nullptr ? nullptr : ::dlopen(fake, RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) return 0;
  auto* const get = reinterpret_cast<decltype(&fake_plugin)>(::dlsym(library, "fake_plugin"));
  int starts = 0;
  for (const auto& call : get()->calls)
    starts += call.what == ringmain::nccl::FakeCall::start ? 1 : 0;
  return starts;
}

}  // namespace

int main(int count, char** words) {
  if (count < 3) return 2;
  const int cycles = std::atoi(words[1]), collectives = std::atoi(words[2]);
  if (const char* const fake = std::getenv("FAKE_PLUGIN")) {
    void* const library = ::dlopen(fake, RTLD_NOW | RTLD_LOCAL);
    reinterpret_cast<decltype(&fake_plugin)>(::dlsym(library, "fake_plugin"))()->wanted =
        abi::kColl;
  }
  int mask = 0;
  for (int cycle = 0; cycle < cycles; ++cycle) {
    FrontEnd front;
    if (!front.open()) return 3;
    mask = front.mask();
    const bool hangs = count == 4 && std::strcmp(words[3], "hang") == 0;
    for (int i = 0; i < collectives; ++i)
      front.collective(static_cast<std::uint64_t>(i), !hangs || i + 1 < collectives);
    if (hangs) {
      std::puts("hangs");
      std::fflush(stdout);
    }
    while (hangs && std::getchar() != EOF) {
    }
    if (count == 4 && !hangs) {
      std::printf("mask %#x\n", static_cast<unsigned>(mask));
      std::fflush(stdout);
      ::_exit(0);
    }
    front.close();
  }
  std::printf("mask %#x, others %d\n", static_cast<unsigned>(mask), told_others());
  return 0;
}
