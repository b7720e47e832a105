// Something is done after any instruction of something else: the processor stops after each one.
#pragma once
#include <csignal>

#include "tests/process/sanitized.hpp"

namespace ringmain::tests {

/// Not inside of ThreadSanitizer, which holds locks at any access.
constexpr bool stops_after_each_instruction() {
#if defined(__x86_64__)
  return !is_watched_by_tsan();
#else
  return false;
#endif
}

/// Calls `act` in a signal handler after the `at`-th instruction of what runs in it.
class Stopped {
 public:
  Stopped(long at, void (*act)(void*), void* with) {
    at_ = at;
    act_ = act;
    with_ = with;
    count_ = 0;
    struct sigaction action {};
    action.sa_sigaction = [](int, siginfo_t*, void*) {
      count_ = count_ + 1;
      if (count_ == at_) act_(with_);
    };
    action.sa_flags = SA_SIGINFO;
    ::sigaction(SIGTRAP, &action, &before_);
  }
  Stopped(const Stopped&) = delete;
  Stopped& operator=(const Stopped&) = delete;
  ~Stopped() { ::sigaction(SIGTRAP, &before_, nullptr); }
  /// False: `f` has fewer instructions.
  template <class F>
  [[nodiscard]] bool run(F f) {
#if defined(__x86_64__)
    asm volatile(
        "leaq -128(%%rsp), %%rsp\n pushfq\n orq $0x100, (%%rsp)\n popfq\n leaq 128(%%rsp), %%rsp"
        :
        :
        : "memory", "cc");
    f();
    asm volatile(
        "leaq -128(%%rsp), %%rsp\n pushfq\n andq $-0x101, (%%rsp)\n popfq\n leaq 128(%%rsp), "
        "%%rsp"
        :
        :
        : "memory", "cc");
#else
    f();
#endif
    return count_ >= at_;
  }

 private:
  static inline volatile long at_, count_;
  static inline void (*act_)(void*);
  static inline void* with_;
  struct sigaction before_ {};
};

}  // namespace ringmain::tests
