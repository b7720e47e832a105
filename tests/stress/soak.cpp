// Does it all hold for hours? Every scenario at once until the time is up, with figures every ten
// seconds; ends with another status than 0 at the first look that finds a fault.
#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#include "tests/stress/scenarios.hpp"
#include "tests/stress/totals.hpp"

namespace ringmain::stress {
namespace {

using Clock = std::chrono::steady_clock;

/// What is to be reached, in all runs together.
constexpr std::uint64_t kEventsWanted = 1'000'000'000;
constexpr std::uint64_t kRegistrationsWanted = 10'000'000;

struct Wishes {
  double minutes = 10;
  std::uint64_t seed =
      static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch().count()) %
      1'000'000'000;
  std::string resume;  // "": nothing is taken over
  bool json = false;
  bool memory = false;
};

constexpr const char* kHelp =
    "ringmain_soak [--minutes N] [--seed N] [--resume FILE] [--json]\n"
    "ringmain_soak --memory\n"
    "Runs every stress scenario at once for N minutes (10 without), checking all promises, and\n"
    "prints figures every ten seconds, with the time that is left to 10^9 events and 10^7\n"
    "registrations. Ends with 1 if a promise was broken, and says which; Ctrl-C ends it early.\n"
    "  --minutes N    how long; fractions are fine\n"
    "  --seed N       replays the choices of an earlier run\n"
    "  --resume FILE  goes on from the figures that another run left there, and leaves its own;\n"
    "                 begins anew where there is no such file. One run at a time\n"
    "  --json         each line of figures is one JSON object\n"
    "  --memory       instead: a large bus, and how much memory it takes\n";

/// Resident memory in MiB; 0 where the system does not say.
double resident_mib() {
  std::ifstream statm("/proc/self/statm");
  std::uint64_t all = 0;
  std::uint64_t resident = 0;
  statm >> all >> resident;
  return static_cast<double>(resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE))) /
         (1024 * 1024);
}

/// "reached", or how long it takes at this rate.
std::string left(std::uint64_t done, std::uint64_t wanted, double per_second) {
  if (done >= wanted) return "reached";
  if (per_second <= 0) return "not to be seen yet";
  const double seconds = static_cast<double>(wanted - done) / per_second;
  std::array<char, 32> text{};
  if (seconds < 5400)
    std::snprintf(text.data(), text.size(), "in %.0f min", seconds / 60);
  else
    std::snprintf(text.data(), text.size(), "in %.1f h", seconds / 3600);
  return text.data();
}

/// The figures of all runs so far; rates are this run's.
class Figures {
 public:
  Figures(const Wishes& wishes, const Totals& before, const Tally& tally, const Faults& faults)
      : wishes_(wishes), before_(before), tally_(tally), faults_(faults) {}

  [[nodiscard]] Totals totals() const {
    Totals t = before_;
    t.add(tally_);
    ++t.runs;
    t.seconds += static_cast<std::uint64_t>(seconds());
    t.seed = wishes_.seed;
    t.faults += faults_.count();
    return t;
  }
  /// Prints them, and leaves them in the file. False: that cannot be written.
  [[nodiscard]] bool tell() const {
    const Totals t = totals();
    if (wishes_.json)
      print_json(t);
    else
      print_text(t);
    std::fflush(stdout);
    if (wishes_.resume.empty()) return true;
    const std::string complaint = save(wishes_.resume, t);
    if (!complaint.empty()) std::fprintf(stderr, "ringmain_soak: %s.\n", complaint.c_str());
    return complaint.empty();
  }

 private:
  [[nodiscard]] double seconds() const {
    return std::chrono::duration<double>(Clock::now() - start_).count();
  }
  [[nodiscard]] double rate(std::uint64_t now, std::uint64_t before) const {
    return static_cast<double>(now - before) / std::max(seconds(), 1e-3);
  }
  void print_json(const Totals& t) const {
    std::string line = "{";
    for (const auto& [name, member] : Totals::names())
      line += "\"" + std::string(name) + "\": " + std::to_string(t.*member) + ", ";
    std::printf(
        "%s\"events_per_second\": %.0f, \"subscriptions_per_second\": %.0f, "
        "\"rss_mib\": %.1f}\n",
        line.c_str(), rate(t.events, before_.events), rate(t.subscriptions, before_.subscriptions),
        resident_mib());
  }
  void print_text(const Totals& t) const {
    const auto n = [](std::uint64_t v) { return static_cast<unsigned long long>(v); };
    const double events = rate(t.events, before_.events);
    const double registrations = rate(t.subscriptions, before_.subscriptions);
    std::printf("%6llu s  %llu events (%.0f/s; 10^9 %s)  %llu registrations (%.0f/s; 10^7 %s)\n",
                n(t.seconds), n(t.events), events, left(t.events, kEventsWanted, events).c_str(),
                n(t.subscriptions), registrations,
                left(t.subscriptions, kRegistrationsWanted, registrations).c_str());
    std::printf(
        "          heard %llu times, %llu in order; %llu dropped, %llu evicted, %llu "
        "coalesced, %llu vetoed; %llu notices\n",
        n(t.heard), n(t.ordered), n(t.dropped), n(t.evicted), n(t.coalesced), n(t.vetoed),
        n(t.told));
    std::printf("          %llu threads, %llu buses  %.1f MiB  %llu faults  (seed %llu)\n",
                n(t.threads), n(t.buses), resident_mib(), n(t.faults), n(wishes_.seed));
  }

  const Wishes& wishes_;
  const Totals& before_;
  const Tally& tally_;
  const Faults& faults_;
  const Clock::time_point start_ = Clock::now();
};

/// All scenarios, each in a thread, until they are told that it is over.
class Scenarios {
 public:
  Scenarios(std::uint64_t seed, Tally& tally, Faults& faults)
      : seed_(seed), tally_(tally), faults_(faults) {
    for (const LaneKind lane : {LaneKind::segments, LaneKind::ring})
      threads_.emplace_back([this, lane] { scenes(lane); });
    threads_.emplace_back([this] {
      for (std::uint64_t i = 0; until_.more(i); ++i)
        thread_churn(2, i % 2 == 0 ? LaneKind::ring : LaneKind::segments, {5000, &over_}, tally_,
                     faults_);
    });
    for (auto* storm : {&registration_storm, &inline_storm, &channels_and_patterns, &order_storm,
                        &interest_storm, &parallel_storm})
      threads_.emplace_back([this, storm] { storm(2, until_, seed_, tally_, faults_); });
    threads_.emplace_back([this] { resets_in_callbacks(2, until_, tally_, faults_); });
    threads_.emplace_back([this] { lifecycles(until_, seed_, tally_, faults_); });
  }
  Scenarios(const Scenarios&) = delete;
  Scenarios& operator=(const Scenarios&) = delete;
  ~Scenarios() {
    over_ = true;
    for (auto& t : threads_) t.join();
  }

 private:
  // The oracle's tables are finite, and what a bus has counted is only checked at its end: scenes
  // of a few hundred publishers, one after the other.
  void scenes(LaneKind lane) {
    for (std::uint64_t i = 0; until_.more(i); ++i) {
      steady({.workers = 1 + static_cast<unsigned>(i % 3), .lane = lane, .large = i % 5 == 4},
             {200, &over_}, seed_ + i, tally_, faults_);
    }
  }

  const std::uint64_t seed_;
  Tally& tally_;
  Faults& faults_;
  std::atomic<bool> over_{false};
  const Until until_{~std::uint64_t{0}, &over_};
  std::vector<std::thread> threads_;
};

sigset_t ending() {
  sigset_t all;
  ::sigemptyset(&all);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::sigaddset(&all, signal);
  return all;
}

/// Sleeps until then. Returns the signal that ended it early, or 0.
int wait_until(Clock::time_point then) {
  const sigset_t wanted = ending();
  for (;;) {
    const auto rest =
        std::chrono::duration_cast<std::chrono::nanoseconds>(then - Clock::now()).count();
    if (rest <= 0) return 0;
    const timespec limit{rest / 1'000'000'000, rest % 1'000'000'000};
    const int signal = ::sigtimedwait(&wanted, nullptr, &limit);
    if (signal > 0) return signal;
  }
}

int soak(const Wishes& wishes) {
  // Blocked before there is any thread, so that all inherit it: the first one is waited for, the
  // second one ends the process.
  const sigset_t wanted = ending();
  ::pthread_sigmask(SIG_BLOCK, &wanted, nullptr);
  Totals before;
  std::string complaint;
  if (!wishes.resume.empty()) complaint = take_over(wishes.resume, before);
  if (complaint.empty() && !wishes.resume.empty()) complaint = save(wishes.resume, before);
  if (!complaint.empty()) {
    std::fprintf(stderr, "ringmain_soak: %s.\n", complaint.c_str());
    return 2;
  }
  Tally tally;
  Faults faults;
  const Figures figures(wishes, before, tally, faults);
  int signal = 0;
  bool kept = true;
  {
    const Scenarios scenarios(wishes.seed, tally, faults);
    const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                        std::chrono::duration<double>(wishes.minutes * 60));
    auto next = Clock::now() + std::chrono::seconds(10);
    while (signal == 0 && Clock::now() < end && faults.count() == 0) {
      signal = wait_until(std::min({end, next, Clock::now() + std::chrono::seconds(1)}));
      if (Clock::now() < next) continue;
      kept &= figures.tell();
      next += std::chrono::seconds(10);
    }
    ::pthread_sigmask(SIG_UNBLOCK, &wanted, nullptr);
  }
  kept &= figures.tell();
  if (faults.count() != 0) {
    std::fprintf(stderr, "ringmain_soak: %llu promises were broken (seed %llu); the first:\n%s",
                 static_cast<unsigned long long>(faults.count()),
                 static_cast<unsigned long long>(wishes.seed), faults.words().c_str());
    return 1;
  }
  if (signal != 0) return 128 + signal;  // as the program that started this expects
  return kept ? 0 : 2;
}

[[noreturn]] void refuse(const std::string& what) {
  std::fprintf(stderr, "ringmain_soak: %s; --help says what it takes.\n", what.c_str());
  std::exit(2);
}

Wishes read(int argc, char** argv) {
  Wishes wishes;
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    std::string value;
    if (const auto at = word.find('='); at != std::string::npos) {
      value = word.substr(at + 1);
      word.resize(at);
    } else if ((word == "--minutes" || word == "--seed" || word == "--resume") && i + 1 < argc) {
      value = argv[++i];
    }
    char* rest = nullptr;
    if (word == "--help" || word == "-h") {
      std::fputs(kHelp, stdout);
      std::exit(0);
    } else if (word == "--json" && value.empty()) {
      wishes.json = true;
    } else if (word == "--memory" && value.empty()) {
      wishes.memory = true;
    } else if (word == "--resume") {
      if (value.empty()) refuse("--resume wants a file");
      wishes.resume = value;
    } else if (word == "--minutes") {
      wishes.minutes = std::strtod(value.c_str(), &rest);
      if (value.empty() || *rest != '\0' || !(wishes.minutes > 0) || wishes.minutes > 1e6)
        refuse("--minutes wants a number above 0, not '" + value + "'");
    } else if (word == "--seed") {
      wishes.seed = std::strtoull(value.c_str(), &rest, 10);
      if (value.empty() || *rest != '\0')
        refuse("--seed wants a whole number, not '" + value + "'");
    } else {
      refuse("it does not know '" + word + "'");
    }
  }
  return wishes;
}

}  // namespace
}  // namespace ringmain::stress

int main(int argc, char** argv) {
  using namespace ringmain::stress;
  const Wishes wishes = read(argc, argv);
  if (!wishes.memory) return soak(wishes);
  Faults faults;
  if (memory_is_bounded(faults)) return 0;
  std::fprintf(stderr, "ringmain_soak: %s", faults.words().c_str());
  return 1;
}
