// Does it all hold for hours? Every scenario at once until the time is up, with figures every ten
// seconds; ends with another status than 0 at the first look that finds a fault.
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <mutex>
#include <string>
#include <thread>

#include "ringmain/tests/stress/scenarios.hpp"

namespace ringmain::stress {
namespace {

struct Wishes {
  double minutes = 10;
  std::uint64_t seed =
      static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch().count()) %
      1'000'000'000;
  bool json = false;
};

constexpr const char* kHelp =
    "ringmain_soak [--minutes N] [--seed N] [--json]\n"
    "Runs every stress scenario at once for N minutes (10 without), checking all promises, and\n"
    "prints figures every ten seconds. Ends with 1 if a promise was broken, and says which.\n"
    "  --minutes N   how long; fractions are fine\n"
    "  --seed N      replays the choices of an earlier run\n"
    "  --json        each line of figures is one JSON object\n";

/// Resident memory in MiB; 0 where the system does not say.
double resident_mib() {
  std::ifstream statm("/proc/self/statm");
  std::uint64_t all = 0;
  std::uint64_t resident = 0;
  statm >> all >> resident;
  return static_cast<double>(resident) * 4096 / (1024 * 1024);
}

void print(const Wishes& wishes, double seconds, const Tally& t, const Faults& f) {
  const char* form =
      wishes.json
          ? "{\"seconds\": %.0f, \"events\": %llu, \"heard\": %llu, \"dropped\": %llu, "
            "\"subscriptions\": %llu, \"threads\": %llu, \"buses\": %llu, \"rss_mib\": %.1f, "
            "\"faults\": %llu, \"seed\": %llu}\n"
          : "%6.0f s  %llu events, heard %llu times, %llu dropped  %llu subscriptions, %llu "
            "threads, %llu buses  %.1f MiB  %llu faults  (seed %llu)\n";
  const auto n = [](std::uint64_t v) { return static_cast<unsigned long long>(v); };
  std::printf(form, seconds, n(t.events), n(t.heard), n(t.dropped), n(t.subscriptions),
              n(t.threads), n(t.buses), resident_mib(), n(f.count()), n(wishes.seed));
  std::fflush(stdout);
}

int soak(const Wishes& wishes) {
  Tally tally;
  Faults faults;
  std::atomic<bool> over{false};
  const Until until{~std::uint64_t{0}, &over};
  const auto start = std::chrono::steady_clock::now();
  const auto end = start + std::chrono::duration<double>(wishes.minutes * 60);
  const auto seconds = [start] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  // The oracle's tables are finite, and what a bus has counted is only checked at its end: scenes
  // of a few hundred publishers, one after the other.
  const auto scenes = [&](bool ring) {
    for (std::uint64_t i = 0; until.more(i); ++i) {
      steady({.workers = 1 + static_cast<unsigned>(i % 3), .ring = ring, .large = i % 5 == 4},
             {200, &over}, wishes.seed + i, tally, faults);
    }
  };
  std::vector<std::thread> all;
  all.emplace_back([&] { scenes(false); });
  all.emplace_back([&] { scenes(true); });
  all.emplace_back([&] {
    for (std::uint64_t i = 0; until.more(i); ++i)
      thread_churn(2, i % 2 == 0, {5000, &over}, tally, faults);
  });
  all.emplace_back([&] { registration_storm(2, until, wishes.seed, tally, faults); });
  all.emplace_back([&] { inline_storm(2, until, wishes.seed, tally, faults); });
  all.emplace_back([&] { resets_in_callbacks(2, until, tally, faults); });
  all.emplace_back([&] { lifecycles(until, wishes.seed, tally, faults); });
  all.emplace_back([&] { channels_and_patterns(2, until, wishes.seed, tally, faults); });
  std::mutex mutex;
  std::condition_variable never;
  std::unique_lock lock(mutex);
  while (std::chrono::steady_clock::now() < end && faults.count() == 0) {
    const auto next = std::min<std::chrono::steady_clock::time_point>(
        std::chrono::steady_clock::now() + std::chrono::seconds(10),
        std::chrono::time_point_cast<std::chrono::steady_clock::duration>(end));
    never.wait_until(lock, next, [&] { return std::chrono::steady_clock::now() >= next; });
    print(wishes, seconds(), tally, faults);
  }
  over = true;
  for (auto& t : all) t.join();
  print(wishes, seconds(), tally, faults);
  if (faults.count() == 0) return 0;
  std::fprintf(stderr, "ringmain_soak: %llu promises were broken (seed %llu); the first:\n%s",
               static_cast<unsigned long long>(faults.count()),
               static_cast<unsigned long long>(wishes.seed), faults.words().c_str());
  return 1;
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
    } else if ((word == "--minutes" || word == "--seed") && i + 1 < argc) {
      value = argv[++i];
    }
    char* rest = nullptr;
    if (word == "--help" || word == "-h") {
      std::fputs(kHelp, stdout);
      std::exit(0);
    } else if (word == "--json" && value.empty()) {
      wishes.json = true;
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
  return ringmain::stress::soak(ringmain::stress::read(argc, argv));
}
