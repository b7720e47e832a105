// The search: plays scenarios under many schedules, or looks for a planted fault.
//
//   interleave_search                                every scenario, some thousand schedules each
//   interleave_search --scenario park --seconds 60   one of them, for a while
//   interleave_search --fault stale-signal           the scenarios that should find it must do so
//   interleave_search --scenario park --seed 77 --story     one schedule again, step by step
//   interleave_search --list                         scenarios and faults
// RINGMAIN_INTERLEAVE_SECONDS: so long for each scenario, from a seed of the time. Exit status: 0
// as wanted, 1 not, 2 wrong usage.
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <unistd.h>

#include "tests/interleave/rig.hpp"
#include "tests/interleave/scenarios.hpp"

namespace ringmain::interleave {

const std::vector<Scenario> kScenarios = {
    {"park", "is every accepted event heard though workers park?", &park},
    {"flush", "is all that was accepted before flush() heard when it returns?", &flush},
    {"stop_drain", "does stop(drain) deliver exactly what was accepted?", &stop_drain},
    {"stop_abort", "is all that stop(abort) discards counted?", &stop_abort},
    {"blocked", "does a blocked publisher go on, and end with stop()?", &blocked},
    {"leases", "does a stuck callback hold up its own channel only?", &leases},
    {"lanes", "does a lane's next publisher begin where the last one ended?", &lanes},
    {"segments",
     "is all heard in order though segments come back, also to a lane's next publisher?",
     &segments},
    {"turns", "does every channel that waits get its turn before others get many?", &turns},
    {"detach", "is nothing called and nothing left once detaching returned?", &detach},
    {"deferred", "may callbacks close each other?", &deferred},
    {"mailboxes", "do mailboxes come and go without mistaking one for the other?", &mailboxes},
    {"pull", "does a reader that sleeps wake for every event and for stop()?", &pull},
    {"again", "is a mailbox taken for the one that had its place?", &again},
    {"rarely", "is a sleeping worker taken for one that was woken long ago?", &rarely},
    {"accounts", "is nothing said to be at fault while others publish?", &accounts},
    {"handlers", "may a signal handler publish in the middle of a publish?", &handlers},
    {"parallel", "is all heard once though several workers hear one channel?", &parallel},
    {"merged", "are the events of many lanes heard in one order?", &merged},
    {"own_thread", "does a subscriber's own thread hear all, and end?", &own_thread},
    {"coalesced", "is the newest of each key heard, and is there room for it?", &coalesced},
    {"rests", "does nobody wait for a worker that rests?", &rests},
    {"thread_lanes", "do lanes come back from threads that end?", &thread_lanes},
    {"inline_calls", "are captures that publishers call destroyed once, and not in their way?",
     &inline_calls},
    {"evicts", "is the newest heard and the rest counted where the oldest are dropped?", &evicts},
    {"house", "does the housekeeper wake whenever it is notified?", &house},
    {"presence", "is nobody inside after the wait for those who come and go?", &presence},
    {"presence_once", "is a thread that comes back at once waited for once?", &presence_once},
    {"presence_ends", "is nobody inside after the wait though threads end and hand on records?",
     &presence_ends},
    {"presence_handed_on", "does a record that is handed on show who is inside?",
     &presence_handed_on},
    {"exit_key", "is each thread's end told once, though several ask first?", &exit_key},
    {"flight_ring", "is what a ring of records holds read whole at every step of its writer?",
     &flight_ring},
    {"recording_ends", "is nothing written once a recording's end was waited for, and all before?",
     &recording_ends},
    {"tokens", "is each tenant ended and taken out once, whoever comes back too late?", &tokens},
    {"notes", "are a token's words its tenant's, and is each ended once?", &notes},
};

namespace {

struct Fault {
  const char* name;
  const char* scenarios;
  bool planted;  // its text is still in the engine
};
const std::vector<Fault> kFaults = {
#include <faults.inc>
};

struct Asked {
  std::string_view scenario, fault;
  std::uint64_t seed = 1, schedules = 3000;
  double seconds = 0;
  bool one = false, story = false, list = false;
};

/// For the handler of signals: a crash is a fault that was found.
struct {
  const char* scenario = "";
  std::uint64_t seed = 0;
  bool wanted = false;
} now;

void crashed(int signal) {
  char words[200];
  const int n = std::snprintf(words, sizeof words, "%s: %s crashes (signal %d) at seed %llu\n",
                              now.wanted ? "found" : "fails", now.scenario, signal,
                              static_cast<unsigned long long>(now.seed));
  (void)!::write(1, words, static_cast<std::size_t>(n));
  ::_exit(now.wanted ? 0 : 1);
}

void catch_crashes() {
  static char room[64 * 1024];
  stack_t stack{};
  stack.ss_sp = room;
  stack.ss_size = sizeof room;
  ::sigaltstack(&stack, nullptr);
  struct sigaction action {};
  action.sa_handler = &crashed;
  action.sa_flags = SA_ONSTACK;
  for (const int signal : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL})
    ::sigaction(signal, &action, nullptr);
}

struct Found {
  Outcome outcome;
  std::uint64_t seed = 0, schedules = 0, steps = 0;
};

/// Plays until a schedule fails, or enough were played.
Found search(const Scenario& scenario, const Asked& asked, int fault) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration<double>(asked.seconds);
  now.scenario = scenario.name;
  now.wanted = fault >= 0;
  Found found;
  for (std::uint64_t seed = asked.seed;; ++seed) {
    now.seed = found.seed = seed;
    found.outcome = play({seed, fault, asked.story}, scenario.play);
    ++found.schedules;
    found.steps += found.outcome.steps;
    if (!found.outcome.holds || asked.one) return found;
    if (asked.seconds > 0 ? Clock::now() >= end : found.schedules >= asked.schedules) return found;
  }
}

unsigned long long shown(std::uint64_t n) {
  return n;
}

bool hold(const Scenario& scenario, const Asked& asked) {
  const auto began = std::chrono::steady_clock::now();
  const Found f = search(scenario, asked, -1);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  if (f.outcome.holds) {
    std::printf("holds: %s, %llu schedules from seed %llu, %llu steps, %.1f s\n", scenario.name,
                shown(f.schedules), shown(asked.seed), shown(f.steps), took.count());
  } else {
    std::printf(
        "fails: %s at seed %llu: %s\n  replay: interleave_search --scenario %s --seed %llu "
        "--story\n",
        scenario.name, shown(f.seed), f.outcome.what, scenario.name, shown(f.seed));
  }
  std::fflush(stdout);
  return f.outcome.holds;
}

bool find(const Fault& fault, const Asked& asked) {
  if (!fault.planted) {
    std::printf(
        "fails: the text of fault '%s' is not, or not once, in the engine any more; mend "
        "faults.txt\n",
        fault.name);
    return false;
  }
  const int number = static_cast<int>(&fault - kFaults.data());
  for (const Scenario& s : kScenarios) {
    if ((" " + std::string(fault.scenarios) + " ").find(" " + std::string(s.name) + " ") ==
        std::string::npos)
      continue;
    if (!asked.scenario.empty() && asked.scenario != s.name) continue;
    const Found f = search(s, asked, number);
    if (!f.outcome.holds) {
      std::printf("found: %s by %s at schedule %llu (seed %llu): %s\n", fault.name, s.name,
                  shown(f.schedules), shown(f.seed), f.outcome.what);
      return true;
    }
    std::printf("%s plays %llu schedules without finding %s\n", s.name, shown(f.schedules),
                fault.name);
  }
  std::printf("fails: fault '%s' is not found\n", fault.name);
  return false;
}

int wrong_usage(const std::string& what) {
  std::fprintf(stderr, "interleave_search: %s; the top of search.cpp says what it takes\n",
               what.c_str());
  return 2;
}

int list() {
  for (const Scenario& s : kScenarios) std::printf("scenario %-14s %s\n", s.name, s.question);
  for (const Fault& f : kFaults)
    std::printf("fault %-28s %s%s\n", f.name, f.scenarios, f.planted ? "" : " (text not found)");
  return 0;
}

int run(int argc, char** argv) {
  Asked asked;
  if (const char* seconds = std::getenv("RINGMAIN_INTERLEAVE_SECONDS")) {
    asked.seconds = std::atof(seconds);
    asked.seed =
        static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch().count());
  }
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    const bool flag = word == "--story" || word == "--list";
    const char* value = flag || i + 1 == argc ? nullptr : argv[++i];
    if (!flag && value == nullptr) return wrong_usage("'" + std::string(word) + "' wants a value");
    if (word == "--story")
      asked.story = true;
    else if (word == "--list")
      asked.list = true;
    else if (word == "--scenario")
      asked.scenario = value;
    else if (word == "--fault")
      asked.fault = value;
    else if (word == "--schedules")
      asked.schedules = std::strtoull(value, nullptr, 10);
    else if (word == "--seconds")
      asked.seconds = std::atof(value);
    else if (word == "--seed")
      asked.seed = std::strtoull(value, nullptr, 10), asked.one = true;
    else if (word == "--from")
      asked.seed = std::strtoull(value, nullptr, 10);
    else
      return wrong_usage("it does not know '" + std::string(word) + "'");
  }
  if (asked.list) return list();
  catch_crashes();
  bool good = true, any = false;
  if (!asked.fault.empty()) {
    for (const Fault& f : kFaults) {
      if (asked.fault == f.name) any = true, good = find(f, asked);
    }
    return any ? !good : wrong_usage("there is no fault '" + std::string(asked.fault) + "'");
  }
  for (const Scenario& s : kScenarios) {
    if (!asked.scenario.empty() && asked.scenario != s.name) continue;
    any = true;
    if (!hold(s, asked)) return 1;  // what it has left would harm the next one
  }
  return any ? !good : wrong_usage("there is no scenario '" + std::string(asked.scenario) + "'");
}

}  // namespace
}  // namespace ringmain::interleave

int main(int argc, char** argv) {
  return ringmain::interleave::run(argc, argv);
}
