// Is ringmain.h C++ too, of the oldest standard?
#include "tests/bindings/c/header.c"
