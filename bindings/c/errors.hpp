// How do errors leave the C interface? As a code, and a sentence kept for the calling thread.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <cxxabi.h>
#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>

#include "bus/result.hpp"

#include "bindings/c/ringmain.h"

namespace ringmain::c {

/// For asserting that a number of ringmain.h may be cast to the enumerator, and back.
constexpr bool same(auto number, auto enumerator) noexcept {
  return static_cast<std::uint32_t>(number) == static_cast<std::uint32_t>(enumerator);
}

/// Keeps `sentence` as this thread's last error, by address: it must live for ever. Returns `code`.
ringmain_code fail(ringmain_code code, const char* sentence) noexcept;
/// The same for a sentence that is put together: it is copied, and cut at 1 KiB. If there is no
/// memory for it, the last error says that.
ringmain_code fail(ringmain_code code, std::string_view sentence) noexcept;
ringmain_code fail(const Error& error) noexcept;

/// Runs `work`, which returns a code. What it throws becomes a code, but for its thread's end.
template <class Work>
ringmain_code guarded(Work&& work) {
  try {
    return std::forward<Work>(work)();
#ifdef __GLIBCXX__  // LLVM's runtime shows no such exception to handlers
  } catch (const abi::__forced_unwind&) {
    throw;  // pthread_cancel, pthread_exit: nobody may stop it
#endif
  } catch (const std::bad_alloc&) {
    return fail(RINGMAIN_NO_MEMORY, "out of memory; nothing was done, so it may be tried again");
  } catch (const std::invalid_argument& wrong) {
    return fail(RINGMAIN_REFUSED, std::string_view(wrong.what()));
  } catch (const std::exception& error) {
    return fail(RINGMAIN_SYSTEM, std::string_view(error.what()));
  } catch (...) {
    return fail(RINGMAIN_SYSTEM, "something unknown was thrown; this is a fault of ringmain");
  }
}

/// No struct is that long: a larger `bytes` was not set.
constexpr std::uint32_t kStructBytesMax = 4096;
/// What is wrong with the `bytes` of a struct that is called `name`: RINGMAIN_OK or a code.
ringmain_code check_bytes(std::uint32_t bytes, std::uint32_t bytes_min, const char* name);
/// `from` as this library knows it: members that the caller does not know are 0, and members that
/// this library does not know must be 0.
template <class Struct>
ringmain_code read_struct(const Struct* from, const char* name, Struct& to) {
  static_assert(std::is_trivially_copyable_v<Struct>);
  std::memset(&to, 0, sizeof to);
  if (from == nullptr) return RINGMAIN_OK;
  if (const auto code = check_bytes(from->bytes, sizeof to.bytes, name)) return code;
  const auto* at = reinterpret_cast<const unsigned char*>(from);
  for (std::size_t i = sizeof to; i < from->bytes; ++i) {
    if (at[i] != 0) {
      return fail(RINGMAIN_REFUSED, std::string(name) +
                                        " has a member that this ringmain does not know; leave it "
                                        "0, or use a newer ringmain");
    }
  }
  std::memcpy(&to, from, from->bytes < sizeof to ? from->bytes : sizeof to);
  to.bytes = sizeof to;
  return RINGMAIN_OK;
}
/// Fills `to` as far as its caller knows it: up to `to->bytes`, which stays as it is.
template <class Struct>
ringmain_code write_struct(const Struct& from, const char* name, Struct* to) {
  if (const auto code = check_bytes(to->bytes, sizeof to->bytes, name)) return code;
  const std::uint32_t bytes = to->bytes;
  std::memcpy(to, &from, bytes < sizeof from ? bytes : sizeof from);
  to->bytes = bytes;
  return RINGMAIN_OK;
}

}  // namespace ringmain::c
