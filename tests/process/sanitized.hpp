// Does a sanitizer watch this build? It has its own malloc, threads and clock, and is slower.
#pragma once
#if defined(__has_feature)
#define RINGMAIN_TESTS_HAS(what) __has_feature(what)
#else
#define RINGMAIN_TESTS_HAS(what) 0
#endif

#if defined(__SANITIZE_THREAD__) || RINGMAIN_TESTS_HAS(thread_sanitizer)
#define RINGMAIN_TESTS_WATCHED_BY_TSAN 1
#else
#define RINGMAIN_TESTS_WATCHED_BY_TSAN 0
#endif

#if RINGMAIN_TESTS_WATCHED_BY_TSAN || defined(__SANITIZE_ADDRESS__) || \
    RINGMAIN_TESTS_HAS(address_sanitizer)
#define RINGMAIN_TESTS_SANITIZED 1
#else
#define RINGMAIN_TESTS_SANITIZED 0
#endif

namespace ringmain::tests {
/// ThreadSanitizer holds locks at any access, has one table of descriptors for all threads, and
/// lets no forked child have threads.
constexpr bool is_watched_by_tsan() {
  return RINGMAIN_TESTS_WATCHED_BY_TSAN != 0;
}

constexpr bool is_sanitized() {
  return RINGMAIN_TESTS_SANITIZED != 0;
}
}  // namespace ringmain::tests
