// ringmain-probe: loads one plugin, looks at its table, and says in one sentence what is wrong.
#include <csignal>
#include <cstdio>
#include <dlfcn.h>
#include <sys/resource.h>
#include <unistd.h>

#include "adapters/plugins/probe.hpp"

int main(int count, char** words) {
  if (count != 2) {
    std::fputs("usage: ringmain-probe PLUGIN.so\n", stderr);
    return 2;
  }
  sigset_t none;
  ::sigemptyset(&none);
  (void)::sigprocmask(SIG_SETMASK, &none, nullptr);  // the parent had them blocked
  (void)::signal(SIGALRM, SIG_DFL);
  const rlimit no_core{0, 0};
  (void)::setrlimit(RLIMIT_CORE, &no_core);  // a damaged plugin may crash here
  ::alarm(9);                                // or never end
  void* const handle = ::dlopen(words[1], RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    std::puts(::dlerror());
    return 1;
  }
  const auto looked = ringmain::registry::look_at_table(handle);
  if (looked.table != nullptr) {
    ::dlclose(handle);  // the plugin's end must not crash either
    return 0;
  }
  std::puts(looked.fault.c_str());
  return 1;
}
