#include "adapters/launch/main_thread.hpp"

#include <atomic>
#include <cerrno>
#include <pthread.h>
#include <thread>
#include <unistd.h>

#include "engine/system/configure_thread.hpp"

namespace ringmain::run {
namespace {

pthread_mutex_t held;  // by the main thread, for as long as it lives
pthread_t main_thread;
constinit std::atomic<bool> is_held{false};
constinit std::atomic<bool> in_order{false};

bool make_robust() noexcept {
  pthread_mutexattr_t robust;
  if (::pthread_mutexattr_init(&robust) != 0) return false;
  const bool made = ::pthread_mutexattr_setrobust(&robust, PTHREAD_MUTEX_ROBUST) == 0 &&
                    ::pthread_mutex_init(&held, &robust) == 0;
  (void)::pthread_mutexattr_destroy(&robust);
  return made;
}

}  // namespace

void hold_main_thread() noexcept {
  if (::getpid() != ::gettid() || is_held || !make_robust()) return;
  main_thread = ::pthread_self();
  is_held = ::pthread_mutex_lock(&held) == 0;
}

void hold_main_thread_of_child() noexcept {
  is_held = false;
  in_order = false;
  hold_main_thread();
}

bool is_main_thread(pthread_t thread) noexcept {
  return is_held && ::pthread_equal(thread, main_thread) != 0;
}

void main_thread_leaves_in_order() noexcept {
  in_order = true;
}

void watch_main_thread(void (*left)(bool in_order) noexcept) {
  if (!is_held) return;
  const engine::BlockedSignals blocked;
  std::thread([left] {
    (void)::pthread_setname_np(::pthread_self(), "ringmain:main");
    if (::pthread_mutex_lock(&held) != EOWNERDEAD) return;
    (void)::pthread_mutex_consistent(&held);
    left(in_order);
  }).detach();
}

}  // namespace ringmain::run
