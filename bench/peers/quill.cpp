// Peer: quill, version 4 or later. It has no callback that could count, so only the publishing
// side's cost in a burst is measured, until its backend says that all is written.
#include <quill/Backend.h>
#include <quill/Frontend.h>
#include <quill/LogMacros.h>
#include <quill/Logger.h>
#include <quill/sinks/NullSink.h>
#include <vector>

#include "bench/events.hpp"
#include "bench/questions.hpp"
#include "bench/repetition.hpp"

namespace ringmain::bench {
namespace {

quill::Logger* logger() {
  static quill::Logger* const made = [] {
    pin(cores().worker);  // its backend thread inherits the core
    quill::Backend::start();
    pin(cores().publisher);
    return quill::Frontend::create_or_get_logger(
        "bench", quill::Frontend::create_or_get_sink<quill::NullSink>("null"));
  }();
  return made;
}

void burst(Repetition& repetition) {
  quill::Logger* const log = logger();
  std::vector<double> ns;
  for (int i = 0; i < 8; ++i) {
    const std::int64_t since = ticks();
    for (std::uint64_t number = 0; number < 1024; ++number) {
      const Payload event = make_event<Payload>(number, 0);
      LOG_INFO(log, "{} {} {} {}", event.number, event.sent, event.more[0], event.more[1]);
    }
    ns.push_back(ns_since(since) / 1024);
    log->flush_log();
  }
  ns.erase(ns.begin());  // its queue was made meanwhile
  repetition.value(median(ns));
}

[[maybe_unused]] const bool kAdded = add("publish_live", "quill", {}, burst);

}  // namespace
}  // namespace ringmain::bench
