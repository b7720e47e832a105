// Programs that are built without exceptions: their callbacks throw nothing, and headers say
// neither try nor throw.
#pragma once

#if defined(__cpp_exceptions)
#define RINGMAIN_TRY try
#define RINGMAIN_CATCH_ALL catch (...)
#define RINGMAIN_THROW_AGAIN throw
#else
#define RINGMAIN_TRY if (true)
#define RINGMAIN_CATCH_ALL else
#define RINGMAIN_THROW_AGAIN static_cast<void>(0)
#endif

namespace ringmain::engine {

/// Throws std::bad_alloc, which in a program that is built without exceptions ends it.
[[noreturn]] void throw_bad_alloc();

}  // namespace ringmain::engine
