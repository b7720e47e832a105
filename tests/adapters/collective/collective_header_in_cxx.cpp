// Is collective.h C++ too, of the oldest standard?
#include "tests/adapters/collective/collective_header.c"
