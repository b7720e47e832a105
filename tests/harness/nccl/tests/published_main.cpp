// Does ringmain's plugin publish exactly what it was told?
//   nccl_published PLUGIN SCENARIO ABI 2.30|2.32 SEED
//
// A bus of this process hears every channel while the model plays one scenario. Each span that the
// plugin took must be one event, with what NCCL said of it, of its communicator and of its parent;
// nothing else may be published, and the plugin's own counts must say the same.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iterator>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "bus/bus.hpp"

#include "events/nccl.hpp"
#include "events/nccl_source.hpp"

#include "adapters/sources/nccl/nccl_source.hpp"

#include "tests/harness/nccl/model.hpp"
#include "tests/harness/nccl/stage.hpp"
#include "tests/harness/nccl/tests/spans.hpp"

namespace ringmain::nccl_conformance {
namespace {

/// The line of each event.
class Heard {
 public:
  template <class... Events>
  void on(Bus& bus) {
    (subscriptions_.push_back(bus.channel<Events>().subscribe([this](const Events& event) {
      const std::lock_guard guard(lock_);
      lines.push_back(line_of(event));
    })),
     ...);
  }
  std::vector<std::string> lines;

 private:
  std::mutex lock_;
  std::vector<Subscription> subscriptions_;
};

/// Prints the first few lines of `lines`, which only one side has.
void print(const char* who, const std::vector<std::string>& lines) {
  for (std::size_t i = 0; i < lines.size() && i < 5; ++i) {
    std::printf("FAIL only %s: %s\n", who, lines[i].c_str());
  }
}

int compare(const CallLog& log, std::vector<std::string> said, int version) {
  std::vector<std::string> told = lines_of(log, version);
  std::sort(told.begin(), told.end());
  std::sort(said.begin(), said.end());
  std::vector<std::string> missing;
  std::vector<std::string> invented;
  std::set_difference(told.begin(), told.end(), said.begin(), said.end(),
                      std::back_inserter(missing));
  std::set_difference(said.begin(), said.end(), told.begin(), told.end(),
                      std::back_inserter(invented));
  print("told to the plugin", missing);
  print("published", invented);
  std::printf("%zu spans were told, %zu events published\n", told.size(), said.size());
  return missing.empty() && invented.empty() ? 0 : 1;
}

/// What is played is never more at once than there is room for.
int check_counts(const nccl::Counts& counts, std::size_t told) {
  if (counts.no_room != 0) {
    std::printf("FAIL %llu spans found no room\n", static_cast<unsigned long long>(counts.no_room));
    return 1;
  }
  const bool balanced = counts.started == counts.stopped + counts.stale + counts.aborted;
  if (balanced && counts.started == told && counts.refused == 0) return 0;
  std::printf(
      "FAIL counts: told %zu, started %llu, stopped %llu, stale %llu, aborted %llu, refused "
      "%llu\n",
      told, static_cast<unsigned long long>(counts.started),
      static_cast<unsigned long long>(counts.stopped),
      static_cast<unsigned long long>(counts.stale),
      static_cast<unsigned long long>(counts.aborted),
      static_cast<unsigned long long>(counts.refused));
  return 1;
}

const Scenario* scenario_of(const std::string& name) {
  for (const Scenario* one = kScenarios; one->name != nullptr; ++one) {
    if (name == one->name) return one;
  }
  return nullptr;
}

int run(char** words) {
  const Scenario* const scenario = scenario_of(words[2]);
  if (scenario == nullptr) return 2;
  const int version = std::atoi(words[3]);
  Bus bus;
  Heard heard;
  heard.on<nccl::Api, nccl::Operation, nccl::Group, nccl::Launch, nccl::ProxyOp, nccl::ProxyStep,
           nccl::ProxyControl, nccl::KernelChannel, nccl::KernelPhase, nccl::CopyEngine, nccl::Net>(
      bus);
  nccl::Options options;
  options.kernel_channels = nccl::KernelChannels::always;
  // A lane holds all that is told, so that nothing is refused however busy the machine is. Each is
  // touched when it is made, for each thread and kind: so it holds little more.
  options.lane_events = words[2] == std::string_view("full") ? 1 << 16 : 1 << 14;
  auto source = nccl::Source::attach(bus, options);
  if (!source) {
    std::printf("FAIL %s\n", source.error().message.c_str());
    return 1;
  }
  Board& board = Board::make();
  CallLog log;
  const Release release = std::string(words[4]) == "2.30" ? Release::r2_30 : Release::r2_32;
  {
    Model model(words[1], version, release, board);
    model.write_down(&log);
    Stage stage(
        model, board,
        {.release = release, .seed = std::strtoull(words[5], nullptr, 10), .own_mask = true});
    scenario->play(stage);
    stage.leave();
  }
  (void)source.value().detach();
  (void)bus.stop();
  int failed = compare(log, heard.lines, version);
  const std::size_t told = lines_of(log, version).size();
  failed |= check_counts(nccl::Source::counts(), told);
  if (told > options.lane_events) {
    std::printf("FAIL lanes hold %u events, and some may have to wait\n", options.lane_events);
    failed = 1;
  }
  for (const Finding& finding : board.findings()) {
    std::printf("FAIL %s: %s\n", finding.rule.c_str(), finding.text.c_str());
    failed = 1;
  }
  return failed;
}

}  // namespace
}  // namespace ringmain::nccl_conformance

int main(int count, char** words) {
  try {
    return count == 6 ? ringmain::nccl_conformance::run(words) : 2;
  } catch (const std::exception& thrown) {
    std::fprintf(stderr, "nccl_published: %s\n", thrown.what());
    return 3;
  }
}
