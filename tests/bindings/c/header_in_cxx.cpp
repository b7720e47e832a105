// Is ringmain.h C++ too, of the oldest standard?
#include "ringmain/tests/bindings/c/header.c"
