// How the parts of real_front_end.hpp call NCCL.
#pragma once
#include "tests/harness/nccl/tests/real_front_end.hpp"

/// What the loader's own function for thread-local variables is given.
struct ThreadLocalPlace {
  std::size_t module;
  std::size_t offset;
};
extern "C" void* __tls_get_addr(ThreadLocalPlace* place);

namespace ringmain::nccl_conformance {

inline thread_local bool group_of_user = false;

int number_of(Datatype type) noexcept;

template <class Result, class... Arguments>
Result RealFrontEnd::call(const char* name, Arguments... arguments) const {
  return reinterpret_cast<Result (*)(Arguments...)>(symbol(name))(arguments...);
}

}  // namespace ringmain::nccl_conformance
