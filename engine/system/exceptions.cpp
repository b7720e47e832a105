#include "engine/system/exceptions.hpp"

#include <new>

namespace ringmain::engine {

void throw_bad_alloc() {
  throw std::bad_alloc();
}

}  // namespace ringmain::engine
