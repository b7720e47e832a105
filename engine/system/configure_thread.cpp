#include "engine/system/configure_thread.hpp"

#include <cstdio>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/system/workers_options.hpp"

namespace ringmain::engine {

void configure_thread(const WorkersOptions& options, const char* name) noexcept {
  ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr);  // a callback must not cancel a worker
  char cut[16];
  std::snprintf(cut, sizeof cut, "%s", name);
  ::pthread_setname_np(::pthread_self(), cut);
  if (!options.cpus.empty()) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (int cpu : options.cpus) CPU_SET(static_cast<unsigned>(cpu), &set);
    ::sched_setaffinity(0, sizeof set, &set);
  }
  if (options.nice != 0) {
    const auto tid = static_cast<id_t>(::syscall(SYS_gettid));
    ::setpriority(PRIO_PROCESS, tid, ::getpriority(PRIO_PROCESS, tid) + options.nice);
  }
}

BlockedSignals::BlockedSignals() noexcept {
  sigset_t all;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before_);
}
BlockedSignals::~BlockedSignals() {
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

}  // namespace ringmain::engine
