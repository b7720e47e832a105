// pthread_cond_clockwait(), of glibc 2.30, taken where it is there. It is looked for when the
// library is loaded: dlsym() waits for whoever loads, who may wait for the mutex that a caller
// holds.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <time.h>

typedef int ClockWait(pthread_cond_t*, pthread_mutex_t*, clockid_t, const struct timespec*);
static ClockWait* native_clockwait;
__attribute__((constructor(101))) static void find_clockwait(void) {
  native_clockwait = (ClockWait*)dlsym(RTLD_DEFAULT, "pthread_cond_clockwait");
}

static const long kSecond = 1000000000;
static long long nanoseconds(const struct timespec* time) {
  return time->tv_sec * (long long)kSecond + time->tv_nsec;
}

// Elsewhere it waits by the wall clock, at most a second, so that a clock that is set holds nobody
// up: a wake-up without a reason, which every caller expects.
int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                           const struct timespec* until) {
  if (native_clockwait != NULL) return native_clockwait(condition, mutex, clock, until);
  if (clock == CLOCK_REALTIME) return pthread_cond_timedwait(condition, mutex, until);
  if (clock != CLOCK_MONOTONIC) return EINVAL;
  struct timespec now;
  (void)clock_gettime(clock, &now);
  long long left = nanoseconds(until) - nanoseconds(&now);
  if (left <= 0) left = 0;
  if (left > kSecond) left = kSecond;
  struct timespec wall;
  (void)clock_gettime(CLOCK_REALTIME, &wall);
  const long long end = nanoseconds(&wall) + left;
  wall.tv_sec = (time_t)(end / kSecond);
  wall.tv_nsec = (long)(end % kSecond);
  const int woken = pthread_cond_timedwait(condition, mutex, &wall);
  if (woken != ETIMEDOUT) return woken;
  (void)clock_gettime(clock, &now);
  return nanoseconds(until) > nanoseconds(&now) ? 0 : ETIMEDOUT;
}
