// What a call of the library throws, as an error: for programs that are built without exceptions.
#pragma once
#include <new>
#include <stdexcept>
#include <system_error>
#include <type_traits>

#include "../result.hpp"

namespace ringmain::detail {

inline Error out_of_memory() noexcept {
  return {Error::Code::no_memory, "out of memory"};  // short: it is not allocated
}

template <class F>
Result<std::invoke_result_t<F>> or_error(F f) noexcept {
  try {
    return f();
  } catch (const std::invalid_argument& wrong) {
    return Error{Error::Code::refused, wrong.what()};
  } catch (const std::system_error& failed) {
    return Error{Error::Code::system, failed.what()};
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  }
}

}  // namespace ringmain::detail
