// Says with its exit status whether it takes itself for a program that was linked statically.
#include "adapters/sources/cuda/cupti_places.hpp"

int main() {
  return ringmain::cuda::is_static_program() ? 0 : 1;
}
