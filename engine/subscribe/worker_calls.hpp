// How does a worker call a subscriber, though it may leave meanwhile? It shows whom it calls, and
// counts the call in the gate too until the subscriber has been called often.
//
// Two read-modify-writes for each run and subscriber cost as much as the rest of the call. So one
// that is called often is biased: the word that shows the call, on the worker's own line, is all
// that is written. Whoever closes its gate pays a barrier and looks at the workers' words, once in
// its life. Model: tests/model/biased_gate.pml.
#pragma once
#include <cstdint>

#include "shown.hpp"

namespace ringmain::engine {

enum class Entered : std::uint8_t {
  shown,    // it may be called
  counted,  // it may be called
  refused   // it may not
};

/// Where a call is not only shown.
[[nodiscard]] Entered enter_counted(Subscriber& subscriber) noexcept;

/// Worker: before a call. leave_call() must follow, also where it was refused.
[[nodiscard, gnu::always_inline]] inline Entered enter_call(Subscriber& subscriber,
                                                            Shown& word) noexcept {
  word.store(&subscriber, std::memory_order_release);  // g.shown
  asymmetric_fence_light();  // l.shown: where that is not enough, nobody is biased
  if (subscriber.gate.open_to_shown()) [[likely]]
    return Entered::shown;
  return enter_counted(subscriber);
}

/// Worker: after it. True: the caller must destroy the captures.
[[nodiscard, gnu::always_inline]] inline bool leave_call(Subscriber& subscriber, Shown& word,
                                                         Entered entered) noexcept {
  // Before the count goes down: who finds the count 0 and a call shown waits for who shows it.
  word.store(nullptr, std::memory_order_release);  // g.shown
  if (entered != Entered::shown) [[unlikely]]
    return subscriber.gate.leave(&subscriber);
  asymmetric_fence_light();  // l.shown
  if (!subscriber.gate.closed()) [[likely]]
    return false;
  return subscriber.gate.leave_closed(&subscriber);
}

}  // namespace ringmain::engine
