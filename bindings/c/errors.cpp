#include "bindings/c/errors.hpp"

#include <algorithm>
#include <cstdlib>
#include <pthread.h>

namespace ringmain::c {
namespace {

enum : std::size_t { kSentenceMax = 1024 };

thread_local const char* last __attribute__((tls_model("initial-exec"))) = "";

/// Room for this thread's sentences. A key rather than a thread_local with a destructor:
/// registering one of those ends the process when memory is out.
struct Rooms {
  pthread_key_t key{};
  bool made = ::pthread_key_create(&key, std::free) == 0;
  [[nodiscard]] char* mine() const noexcept {
    if (!made) return nullptr;
    if (void* room = ::pthread_getspecific(key)) return static_cast<char*>(room);
    void* room = std::malloc(kSentenceMax);
    if (room != nullptr && ::pthread_setspecific(key, room) != 0) {
      std::free(room);
      return nullptr;
    }
    return static_cast<char*>(room);
  }
};
const Rooms rooms;  // made while the library loads

}  // namespace

ringmain_code fail(ringmain_code code, const char* sentence) noexcept {
  last = sentence;
  return code;
}

ringmain_code fail(ringmain_code code, std::string_view sentence) noexcept {
  char* room = rooms.mine();
  if (room == nullptr) return fail(code, "out of memory, also for the sentence that says why");
  const std::size_t n = std::min(sentence.size(), kSentenceMax - 1);
  std::memmove(room, sentence.data(), n);  // the sentence may point into the last one
  room[n] = '\0';
  last = room;
  return code;
}

ringmain_code fail(const Error& error) noexcept {
  switch (error.code) {
    case Error::Code::refused:
      return fail(RINGMAIN_REFUSED, std::string_view(error.message));
    case Error::Code::not_found:
      return fail(RINGMAIN_NOT_FOUND, std::string_view(error.message));
    case Error::Code::conflict:
      return fail(RINGMAIN_CONFLICT, std::string_view(error.message));
    case Error::Code::no_memory:
      return fail(RINGMAIN_NO_MEMORY, std::string_view(error.message));
    case Error::Code::system:
      break;
  }
  return fail(RINGMAIN_SYSTEM, std::string_view(error.message));
}

ringmain_code check_bytes(std::uint32_t bytes, std::uint32_t bytes_min, const char* name) {
  if (bytes > bytes_min && bytes <= kStructBytesMax) return RINGMAIN_OK;
  return fail(RINGMAIN_REFUSED, std::string(name) + ".bytes is " + std::to_string(bytes) +
                                    "; set it to sizeof(" + name + ")");
}

}  // namespace ringmain::c

using ringmain::c::last;

extern "C" {

const char* ringmain_last_error(void) {
  return last;
}

const char* ringmain_code_name(ringmain_code code) {
  switch (code) {
    case RINGMAIN_OK:
      return "ok";
    case RINGMAIN_UNHEARD:
      return "unheard";
    case RINGMAIN_FULL:
      return "full";
    case RINGMAIN_CLOSED:
      return "closed";
    case RINGMAIN_WOULD_DEADLOCK:
      return "would_deadlock";
    case RINGMAIN_NO_MEMORY:
      return "no_memory";
    case RINGMAIN_TOO_DEEP:
      return "too_deep";
    case RINGMAIN_VETOED:
      return "vetoed";
    case RINGMAIN_FORKED:
      return "forked";
    case RINGMAIN_REFUSED:
      return "refused";
    case RINGMAIN_CONFLICT:
      return "conflict";
    case RINGMAIN_NOT_FOUND:
      return "not_found";
    case RINGMAIN_SYSTEM:
      return "system";
    case RINGMAIN_DEFERRED:
      return "deferred";
    case RINGMAIN_TIMEOUT:
      return "timeout";
    case RINGMAIN_NOT_ATTACHED:
      return "not_attached";
    case RINGMAIN_EMPTY:
      return "empty";
    default:
      return "unknown";
  }
}

}  // extern "C"
