// std::chrono's durations and clocks, without what else <chrono> has.
//
// In C++20 that is calendars and their formatting, for which libstdc++ includes <sstream>: a
// tenth of the time in which a file that subscribes compiles (bench/headers). It has the
// durations in a header of their own, which <mutex> includes as well.
#pragma once
#include <version>

#if defined(__GLIBCXX__) && __has_include(<bits/chrono.h>)
#include <bits/chrono.h>
#else
#include <chrono>
#endif
