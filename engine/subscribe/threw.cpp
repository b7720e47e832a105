#include "engine/subscribe/threw.hpp"

#include <cstdio>
#include <cstdlib>
#include <cxxabi.h>
#include <exception>

#include "engine/watch/house_inbox.hpp"

namespace ringmain::engine {
namespace {

/// Keeps the text of the exception that is being handled.
void keep_words(Throws& throws) noexcept {
  try {
    throw;
  } catch (const std::exception& e) {
    throws.say(e.what());
  } catch (...) {
    throws.say("(not a std::exception)");
  }
}

/// Call it in a catch. `wakes`: this thread may make a system call, so that the throw is told soon.
void note_throw(Subscriber& subscriber, bool wakes) noexcept {
  if (abi::__cxa_current_exception_type() == nullptr) {
    // pthread_exit() or pthread_cancel(): to swallow that would end the process with no
    // explanation.
    std::fprintf(stderr,
                 "ringmain: callback '%s' ended its thread, which belongs to the bus; return or "
                 "throw instead\n",
                 subscriber.name.c_str());
    std::abort();
  }
  if (subscriber.detach_on_throw) subscriber.gate.close();
  std::uint32_t news = Throws::kThrew;
  if (subscriber.throws.too_many(now_ns())) {
    subscriber.gate.bar();
    news |= Throws::kQuarantined;
  }
  if (!subscriber.throws.wants_words(news)) return;
  keep_words(subscriber.throws);
  subscriber.throws.news(news);
  if (subscriber.news != nullptr) subscriber.news->note_news(wakes);
}

}  // namespace

void subscriber_threw(Subscriber& subscriber) noexcept {
  subscriber.count(subscriber.threw, 1);
  note_throw(subscriber, true);
}

Judgement inline_threw(Subscriber& subscriber) noexcept {
  subscriber.threw.add(1, Writers::many);
  note_throw(subscriber, false);
  return {.veto = subscriber.veto_on_throw, .threw = true, .why = subscriber.threw_id};
}

}  // namespace ringmain::engine
