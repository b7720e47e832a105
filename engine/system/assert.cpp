#include "engine/system/assert.hpp"

#include <cstdio>
#include <cstdlib>

namespace ringmain::engine {

void broken(const char* promise, const char* file, int line) noexcept {
  std::fprintf(stderr,
               "ringmain: broken inside: %s (%s:%d); this is a fault of ringmain, please report it "
               "with this line\n",
               promise, file, line);
  std::abort();
}

}  // namespace ringmain::engine
