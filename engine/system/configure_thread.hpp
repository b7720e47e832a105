// What does a thread of the bus do first? It lives in somebody else's process: it gets no signals,
// and a name, a niceness and CPUs that an operator can see and choose.
#pragma once
#include <csignal>

namespace ringmain::engine {

struct WorkersOptions;

/// By the new thread. The kernel keeps 15 characters of `name`.
void configure_thread(const WorkersOptions& options, const char* name) noexcept;

/// By whoever starts threads: signals are for the program's own ones; those started meanwhile get
/// none.
class BlockedSignals {
 public:
  BlockedSignals() noexcept;
  ~BlockedSignals();
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  sigset_t before_;
};

}  // namespace ringmain::engine
