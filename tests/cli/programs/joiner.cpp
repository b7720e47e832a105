// A program with a source of its own, which joins the run if the run asks for that source.
// usage: joiner [not | in_vain | forks_meanwhile]
#include <atomic>
#include <clocale>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "adapters/registry.hpp"
#include "adapters/run.hpp"

namespace {
struct Joined {
  std::uint64_t number;
  double half;
};
constexpr auto describe(ringmain::EventOf<Joined>) {
  return ringmain::event("program.joined", ringmain::field<&Joined::number>("number"),
                         ringmain::field<&Joined::half>("half"));
}
/// A sink that takes its time to open: until the program lets it.
std::atomic<int> opening{0};  // 1: it opens; 2: it may

class SlowSink final : public ringmain::registry::Sink {
 public:
  SlowSink() {
    opening = 1;
    opening.notify_all();
    opening.wait(1);
  }
  explicit SlowSink(std::string_view) : SlowSink() {}
  void hear(const ringmain::EventView&) override {}
};

/// Forks while another thread joins for the first time. Its child joins, too, and ends.
int fork_while_another_joins() {
  ::setenv("RINGMAIN_RUN_STARTED", "1", 1);
  ::setenv("RINGMAIN_RUN_SOURCES", "injected", 1);
  ::setenv("RINGMAIN_RUN_SINKS", "slow", 1);
  auto slow = ringmain::registry::sink_provider<SlowSink>({.name = "slow"});
  if (!ringmain::registry::Registry::process().add(std::move(slow))) return 2;
  std::thread other([] { (void)ringmain::run::join("injected"); });
  opening.wait(0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(30);  // where it waits for ever
    opening = 3;
    const bool joined = ringmain::run::join("injected") != nullptr;
    ringmain::run::could_not_attach("injected", "it was forked");
    ringmain::run::flush(ringmain::nanoseconds(1));
    std::_Exit(joined ? 1 : opening != 3 ? 2 : 0);  // 2: it opened a sink of its own
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  opening = 2;
  opening.notify_all();
  other.join();
  std::printf("%d\n", status);
  return 0;
}

}  // namespace

int main(int count, char** words) {
  const std::string_view way = count > 1 ? words[1] : "";
  std::setlocale(LC_ALL, "");
  if (way == "not") return 0;
  if (way == "forks_meanwhile") return fork_while_another_joins();
  ringmain::Bus* bus = ringmain::run::join("injected");
  std::puts(bus == nullptr ? "not asked for" : "joined");
  if (bus == nullptr) return 0;
  if (way == "in_vain") {
    ringmain::run::could_not_attach("injected", "the program has no ranges");
    return 0;
  }
  for (std::uint64_t i = 0; i < 30; ++i) bus->channel<Joined>().post({i, 0.5});
  return ringmain_run_join("injected") == bus ? 0 : 1;
}
