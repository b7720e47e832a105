// What must hold, whoever calls: our own mistake ends the process with a sentence, in release too.
// For what a caller may get wrong there are codes and exceptions.
#pragma once

namespace ringmain::engine {

/// Prints which promise was broken and where, and aborts. Allocates nothing.
[[noreturn, gnu::cold, gnu::noinline]] void broken(const char* promise, const char* file,
                                                   int line) noexcept;

}  // namespace ringmain::engine

/// Where nothing is published or handed out: it costs a branch.
#define RINGMAIN_ASSERT(holds) \
  ((holds) ? static_cast<void>(0) : ::ringmain::engine::broken(#holds, __FILE__, __LINE__))
