// A rank does not come to an all-reduce. A watchdog finds it, the recorders' dumps are written, and
// only then the group is given up. `ringmain fr analyze --grace 0 FOLDER` names the rank.
//
// usage: example_flight_dumps [FOLDER]
// Writes FOLDER/rank_0 … rank_3; without one, below the system's folder for temporary files.
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ringmain/adapters/sources/collective/collective_watchdog.hpp>
#include <ringmain/adapters/sources/collective/flight_recorder_hook.hpp>
#include <ringmain/adapters/sources/collective/loopback.hpp>

namespace collective = ringmain::collective;
namespace loopback = ringmain::collective::loopback;

constexpr int kRanks = 4;
constexpr int kSleeps = 2;

int main(int argc, char** argv) {
  const std::filesystem::path folder =
      argc > 1 ? std::filesystem::path(argv[1])
               : std::filesystem::temp_directory_path() / "ringmain-flight-example";
  ::setenv("TORCHCOMM_FR_DUMP_TEMP_FILE", (folder / "rank_").c_str(), 1);

  ringmain::Bus bus;
  const loopback::World world = loopback::World::make(bus, {.name = "dp", .ranks = kRanks}).value();
  // Ranks are threads here; in a job each process has one recorder.
  std::vector<std::unique_ptr<collective::FlightRecorderHook>> recorders;
  for (int rank = 0; rank < kRanks; ++rank) {
    recorders.push_back(std::make_unique<collective::FlightRecorderHook>(
        collective::FlightRecorderOptions{.max_entries = 100, .isolated = true}));
    if (!recorders.back()->register_with_comm(world.rank(rank).comm())) return 1;
  }
  const auto write_dumps = [&recorders](const collective::OverdueOperation& overdue) {
    std::printf("%s of %s is overdue on rank %d\n", std::string(overdue.op.view()).c_str(),
                std::string(overdue.group.view()).c_str(), overdue.rank);
    for (int rank = 0; rank < kRanks; ++rank) {
      const auto written = recorders[static_cast<std::size_t>(rank)]->dump_file(rank);
      std::puts(written ? written.value().c_str() : written.error().message.c_str());
    }
  };
  const collective::Watchdog watchdog =
      collective::Watchdog::make(bus, {.from_issue = std::chrono::milliseconds(200),
                                       .from_start = std::chrono::milliseconds(200),
                                       .period = std::chrono::milliseconds(20),
                                       .before_abort = write_dumps,
                                       .aborts = true})
          .value();

  world.run([](loopback::Rank& rank) {
    std::array<float, 4> gradients{};
    (void)rank.all_reduce({.tensor = loopback::Values(gradients)});
    if (rank.rank() == kSleeps) return;
    (void)rank.all_reduce(
        {.tensor = loopback::Values(gradients)});  // until the watchdog gives it up
  });
  return std::filesystem::exists(folder / "rank_3") ? 0 : 1;
}
