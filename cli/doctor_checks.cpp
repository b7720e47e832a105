#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <dlfcn.h>
#include <fstream>
#include <sched.h>
#include <simdjson.h>
#include <string>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <zlib.h>

#include "engine/system/atomics.hpp"
#include "engine/system/clock.hpp"

#include "bus/bus.hpp"

#include "cli/doctor.hpp"
#include "cli/provider_names.hpp"
#include "cli/terminal.hpp"
#include "cli/watchers.hpp"

namespace ringmain::cli {
namespace {

using State = Finding::State;
constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

std::string first_line(const char* path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

/// The cost of one `f()` in ns: the best of five rounds, so that a busy machine does not count.
template <class F>
double cost_ns(int times, F f) {
  std::int64_t best = INT64_MAX;
  for (int round = 0; round < 5; ++round) {
    const std::int64_t begin = engine::now_ns();
    for (int i = 0; i < times; ++i) f();
    best = std::min(best, engine::now_ns() - begin);
  }
  return static_cast<double>(best) / times;
}

Finding library() {
  Dl_info info{};
  const auto* inside = reinterpret_cast<const void*>(&rank_identity);
  const bool known = ::dladdr(inside, &info) != 0 && info.dli_fname != nullptr;
  return {"library", State::good,
          "ringmain " RINGMAIN_VERSION " at " + std::string(known ? info.dli_fname : "(unknown)"),
          ""};
}

Finding cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  const bool known = ::sched_getaffinity(0, sizeof set, &set) == 0;
  const int allowed =
      known ? CPU_COUNT(&set) : static_cast<int>(std::thread::hardware_concurrency());
  Finding f{"cores", State::good, std::to_string(allowed) + " to run on", ""};
  const std::string quota = first_line("/sys/fs/cgroup/cpu.max");
  if (!quota.empty() && !quota.starts_with("max")) f.found += ", cgroup quota " + quota + " (us)";
  if (allowed < 2) {
    f.state = State::note;
    f.mend =
        "publishers and workers take turns on one core; allow two or more (taskset, container)";
  }
  return f;
}

Finding barrier() {
  if (!engine::barrier_is_fence()) {
    const double heavy = cost_ns(200, [] { engine::asymmetric_fence_heavy(); });
    return {"barrier", State::good,
            "membarrier: publishing needs no fence; a parking worker pays " + duration_text(heavy),
            ""};
  }
  const double fence = cost_ns(10000, [] { engine::asymmetric_fence_light_or_full(); });
  const bool asked = std::getenv("RINGMAIN_BARRIER") != nullptr;
  return {
      "barrier", State::note, "fences: each publish pays two, at " + duration_text(fence) + " each",
      asked ? "unset RINGMAIN_BARRIER to use membarrier where the system has it"
            : "the system refuses membarrier; allow that call in the container's seccomp profile"};
}

/// How long from the call that wakes a thread until it runs, and how long the call takes.
Finding waking() {
  constexpr int kTimes = 200;
  engine::Atomic<std::uint32_t> key{0};
  std::atomic<std::int64_t> woke_at{0};
  std::atomic<bool> waiting{false};
  std::jthread sleeper([&](const std::stop_token& stop) {
    std::uint32_t seen = 0;
    while (!stop.stop_requested()) {
      waiting = true;
      while (key.load() == seen) (void)engine::futex_wait(key, seen, 1'000'000'000);
      woke_at = engine::now_ns();
      seen = key.load();
    }
  });
  std::array<std::int64_t, kTimes> slept{};
  std::array<std::int64_t, kTimes> called{};
  for (int i = 0; i < kTimes; ++i) {
    while (!waiting.exchange(false)) std::this_thread::yield();
    const std::int64_t settled = engine::now_ns() + 50'000;  // until it really sleeps
    while (engine::now_ns() < settled) std::this_thread::yield();
    woke_at = 0;
    const std::int64_t begin = engine::now_ns();
    key.fetch_add(1);
    engine::futex_wake(key, 1);
    called[static_cast<std::size_t>(i)] = engine::now_ns() - begin;
    while (woke_at == 0) std::this_thread::yield();
    slept[static_cast<std::size_t>(i)] = woke_at - begin;
  }
  while (!waiting.exchange(false)) std::this_thread::yield();
  sleeper.request_stop();
  key.fetch_add(1);
  engine::futex_wake(key, 1);
  std::sort(slept.begin(), slept.end());
  std::sort(called.begin(), called.end());
  const auto median = static_cast<double>(slept[kTimes / 2]);
  Finding f{"waking", State::good,
            "a parked worker runs after " + duration_text(median) +
                " (median), and waking it costs " +
                duration_text(static_cast<double>(called[kTimes / 2])),
            ""};
  if (median > 200'000) {
    f.state = State::note;
    f.mend =
        "the first event after a pause comes that late; a longer RINGMAIN_SPIN_US keeps workers up";
  }
  return f;
}

Finding clock_cost() {
  const double cost = cost_ns(20000, [] { (void)engine::now_ns(); });
  const std::string source =
      first_line("/sys/devices/system/clocksource/clocksource0/current_clocksource");
  Finding f{"clock", State::good,
            "CLOCK_MONOTONIC, " + duration_text(cost) + " a look" +
                (source.empty() ? "" : ", from " + source),
            ""};
  if (cost > 250) {
    f.state = State::note;
    f.mend = "stamps cost a system call each; a faster clock source (tsc, kvm-clock) avoids that";
  }
  return f;
}

std::string limit_text(rlim_t limit) {
  return limit == RLIM_INFINITY ? "no limit" : bytes_text(limit);
}

Finding memory() {
  std::uint64_t available = 0;
  std::ifstream in("/proc/meminfo");
  for (std::string word; in >> word;) {
    if (word == "MemAvailable:" && in >> available) break;
  }
  available *= 1024;
  rlimit space{};
  rlimit threads{};
  ::getrlimit(RLIMIT_AS, &space);
  ::getrlimit(RLIMIT_NPROC, &threads);
  Finding f{"memory", State::good,
            bytes_text(available) + " available; address space: " + limit_text(space.rlim_cur) +
                "; threads: " +
                (threads.rlim_cur == RLIM_INFINITY ? "no limit" : with_commas(threads.rlim_cur)),
            ""};
  const std::string group = first_line("/sys/fs/cgroup/memory.max");
  if (!group.empty() && group != "max") {
    f.found += "; cgroup: " + bytes_text(std::strtoull(group.c_str(), nullptr, 10));
  }
  if (available < 256 * kMiB || (space.rlim_cur != RLIM_INFINITY && space.rlim_cur < 1024 * kMiB)) {
    f.state = State::note;
    f.mend = "a replay may hold 1 GiB; give it less with --memory-max, or raise ulimit -v";
  }
  return f;
}

Finding temporary_folder() {
  const char* chosen = std::getenv("TMPDIR");
  const std::string folder = chosen != nullptr && *chosen != '\0' ? chosen : "/var/tmp";
  struct statvfs space {};
  if (::access(folder.c_str(), W_OK | X_OK) != 0 || ::statvfs(folder.c_str(), &space) != 0) {
    return {"temporary files", State::note,
            folder + " cannot be written to: " + std::generic_category().message(errno),
            "traces from a pipe, or larger than --memory-max, need it; set TMPDIR"};
  }
  return {"temporary files", State::good,
          folder + ", " + bytes_text(std::uint64_t{space.f_bavail} * space.f_frsize) + " free", ""};
}

Finding libraries() {
  return {"libraries", State::good,
          "zlib " + std::string(::zlibVersion()) +
              ", simdjson " SIMDJSON_STRINGIFY(SIMDJSON_VERSION) + " (" +
              simdjson::get_active_implementation()->name() + ")",
          ""};
}

/// Of a source that needs one of several libraries: which are there?
Finding watchers(const registry::ProviderInfo& source) {
  const registry::RunNeeds& needs = source.run;
  const std::string title = needs.watched.substr(needs.watched.find(' ') + 1);  // no article
  Finding f{title, State::good, "", ""};
  for (const registry::Watcher& one : needs.watchers) {
    const bool built = is_built(one);
    f.found += (f.found.empty() ? "" : "; ") + one.watches +
               (built ? " can be watched" : " cannot: its watcher was not built");
    if (built) continue;
    f.state = State::note;
    f.mend +=
        f.mend.empty() ? "for ringmain run --source " + source.name + " there, install " : ", ";
    f.mend += one.package;
  }
  if (!f.mend.empty()) f.mend += " and build ringmain again";
  return f;
}

Finding rank() {
  const RankIdentity& me = rank_identity();
  return {"rank", State::good,
          std::to_string(me.rank) + " of " + std::to_string(me.world_size) + " on " + me.host +
              (me.launcher == "none" ? ", no launcher" : ", said by " + me.launcher) +
              (me.job.empty() ? "" : ", job " + me.job),
          ""};
}

struct Ping {
  std::uint64_t n = 0;
};
constexpr auto describe(EventOf<Ping>) {
  return event("doctor.ping", field<&Ping::n>("n", Unit::count));
}

/// Makes a bus, sends some events through it, and checks its accounts.
Finding workers() {
  constexpr std::uint64_t kEvents = 10'000;
  try {
    Bus bus;
    auto configured = bus.configure<Ping>(ChannelOptions{.latency_every = 1});
    if (!configured) return {"workers", State::problem, configured.error().message, "report this"};
    auto& pings = *configured.value();
    std::uint64_t heard = 0;
    auto said = pings.subscribe([&heard](const Ping&) { ++heard; });
    auto publisher = pings.publisher({.capacity_events = 1024, .overflow = Overflow::block});
    if (!publisher) return {"workers", State::problem, publisher.error().message, "report this"};
    const std::int64_t begin = engine::now_ns();
    for (std::uint64_t n = 0; n < kEvents; ++n) (void)publisher.value().publish({n});
    const bool flushed = bus.flush(std::chrono::seconds(10));
    const double seconds = static_cast<double>(engine::now_ns() - begin) / 1e9;
    said.reset();
    const auto books = bus.verify_accounting();
    if (!flushed || heard != kEvents || !books) {
      return {"workers", State::problem,
              with_commas(heard) + " of " + with_commas(kEvents) + " events arrived" +
                  (books ? "" : "; " + books.error().message),
              "report this with the output of ringmain doctor --json"};
    }
    return {"workers", State::good,
            plural(bus.workers(), "worker") + " started; " + with_commas(kEvents) +
                " events arrived, at " + rate_text(static_cast<double>(kEvents) / seconds),
            ""};
  } catch (const std::system_error& thrown) {
    return {"workers", State::problem, std::string("no thread can be started: ") + thrown.what(),
            "raise the number of threads allowed (ulimit -u, or the container's pids limit)"};
  }
}

}  // namespace

std::vector<Finding> examine() {
  std::vector<Finding> all{library(),    workers(), barrier(),   waking(),          cores(),
                           clock_cost(), memory(),  libraries(), temporary_folder()};
  for (const registry::ProviderInfo& one : known_providers().list({})) {
    if (!one.run.watchers.empty()) all.push_back(watchers(one));
  }
  all.push_back(examine_cuda());
  all.push_back(examine_nccl());
  all.push_back(examine_flight());
  all.push_back(examine_door());
  all.push_back(rank());
  return all;
}

}  // namespace ringmain::cli
