// What must hold whatever a caller does: a mistake of ringmain's own ends the process with a
// sentence, in release builds too. What a caller may get wrong gets a code or an exception instead.
#pragma once

namespace ringmain::engine {

/// Prints which promise was broken and where, and aborts. Allocates nothing.
[[noreturn, gnu::cold, gnu::noinline]] void broken(const char* promise, const char* file,
                                                   int line) noexcept;

}  // namespace ringmain::engine

/// Costs a branch: for places that are off the path of an event.
#define RINGMAIN_ASSERT(holds) \
  ((holds) ? static_cast<void>(0) : ::ringmain::engine::broken(#holds, __FILE__, __LINE__))
