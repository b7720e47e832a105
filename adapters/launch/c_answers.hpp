// How do functions for callers of C answer? By a code, and by a sentence for it where the caller
// has room for one.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <string_view>
#include <utility>

#include "bus/bus.hpp"

namespace ringmain::c_answers {

/// At most `why_bytes` with its zero; `why` may be nullptr.
inline void say(std::string_view sentence, char* why, std::size_t why_bytes) noexcept {
  if (why == nullptr || why_bytes == 0) return;
  const std::size_t bytes = std::min(sentence.size(), why_bytes - 1);
  std::memcpy(why, sentence.data(), bytes);
  why[bytes] = '\0';
}

/// Of a function that makes something.
enum MakeCode : int { kMade, kWrongOptions, kRefused, kNoMemory };

inline int refused(const Error& error, char* why, std::size_t why_bytes) noexcept {
  say(error.message, why, why_bytes);
  return error.code == Error::Code::no_memory ? kNoMemory : kRefused;
}

/// `make` gives a Result; what it holds goes to `keep`. Nothing is thrown.
template <class Make, class Keep>
int made_by(Make make, Keep keep, char* why, std::size_t why_bytes) noexcept {
  try {
    auto made = make();
    if (!made) return refused(made.error(), why, why_bytes);
    keep(std::move(made).value());
    return kMade;
  } catch (const std::bad_alloc&) {
    say("no memory is left", why, why_bytes);
    return kNoMemory;
  } catch (const std::exception& thrown) {
    say(thrown.what(), why, why_bytes);
    return kRefused;
  }
}

/// Attaches a Source to a Bus as its Options read `options`, nullptr for the defaults. `*made`
/// belongs to the caller.
template <class Source, class Options>
int attach(void* bus, const char* options, void** made, char* why, std::size_t why_bytes) noexcept {
  if (bus == nullptr || made == nullptr) {
    say(bus == nullptr ? "there is no bus to attach to: give one"
                       : "there is no place for the source: give one",
        why, why_bytes);
    return kWrongOptions;
  }
  bool is_read = false;
  const int code = made_by(
      [&]() -> Result<std::unique_ptr<Source>> {
        const Result<Options> read = Options::read(options == nullptr ? "" : options);
        if (!read) return read.error();
        is_read = true;
        auto room = std::make_unique<Source>();
        Result<Source> attached = Source::attach(*static_cast<Bus*>(bus), read.value());
        if (!attached) return attached.error();
        *room = std::move(attached).value();
        return room;
      },
      [&](std::unique_ptr<Source> ready) { *made = ready.release(); }, why, why_bytes);
  return code == kRefused && !is_read ? int{kWrongOptions} : code;
}

}  // namespace ringmain::c_answers
