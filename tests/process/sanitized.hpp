// Does a sanitizer watch this build? It has its own malloc, threads and clock, and is slower.
#pragma once
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define RINGMAIN_TESTS_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define RINGMAIN_TESTS_SANITIZED 1
#endif
#endif

namespace ringmain::tests {
constexpr bool is_sanitized() {
#ifdef RINGMAIN_TESTS_SANITIZED
  return true;
#else
  return false;
#endif
}
}  // namespace ringmain::tests
