// What does a thread of the bus do first? It lives in another program's process: it blocks signals,
// and takes a name, a niceness and CPUs that an operator can see and choose.
#pragma once
#include <csignal>

namespace ringmain::engine {

struct WorkersOptions;

/// By the new thread. The kernel keeps 15 characters of `name`.
void configure_thread(const WorkersOptions& options, const char* name) noexcept;

/// Blocks all signals in this thread while it lives: threads that are started meanwhile inherit
/// that, and signals go to the program's own threads.
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
