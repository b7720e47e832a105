// Plays one scenario by NCCL's own front end, or by the model of it, one thread at a time:
//   nccl_front_end SCENARIO SEED real LIBNCCL LAYOUT 2.32   the plugin is NCCL_PROFILER_PLUGIN's
//   nccl_front_end SCENARIO SEED model PLUGIN VERSION 2.32
// What the plugin was told is compared by who runs it. Below ringmain run its sinks are in this
// process, and so is what waits for them, however long other work keeps them: memory is looked at
// once they have it all.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <exception>
#include <limits>
#include <string>

#include "tests/harness/nccl/stage.hpp"
#include "tests/harness/nccl/tests/real_front_end.hpp"

namespace ringmain::nccl_conformance {
namespace {

const Scenario* scenario_of(const std::string& name) {
  for (const Scenario* one = kScenarios; one->name != nullptr; ++one) {
    if (name == one->name) return one;
  }
  return nullptr;
}

Release release_of(const std::string& text) {
  return text == "2.28"   ? Release::r2_28
         : text == "2.30" ? Release::r2_30
         : text == "2.31" ? Release::r2_31
                          : Release::r2_32;
}

int play(const Scenario& scenario, FrontEnd& front, Board& board, const Stage::Options& options) {
  board.name("main");
  Stage stage(front, board, options);
  scenario.play(stage);
  stage.leave();
  for (const Finding& finding : board.findings()) {
    std::printf("FAIL %s: %s\n", finding.rule.c_str(), finding.text.c_str());
  }
  return board.findings().empty() ? 0 : 1;
}

/// Below ringmain run, within its RINGMAIN_END_S: until its sinks have written all.
void bring_to_sinks() {
  using Flush = void(std::int64_t limit_ns);
  auto* const flush = reinterpret_cast<Flush*>(::dlsym(RTLD_DEFAULT, "ringmain_run_flush"));
  if (flush != nullptr) flush(std::numeric_limits<std::int64_t>::max());
}

int run(int count, char** words) {
  if (count != 7) return 2;
  const Scenario* const scenario = scenario_of(words[1]);
  if (scenario == nullptr) return 2;
  Board& board = Board::make();
  Stage::Options options{
      .seed = std::strtoull(words[2], nullptr, 10), .serial = true, .settle = bring_to_sinks};
  options.release = release_of(words[6]);
  if (std::string(words[3]) == "real") {
    if (!scenario->by_real_front_end) return 2;
    const Layout layout(words[5]);
    RealFrontEnd front(words[4], layout);
    return play(*scenario, front, board, options);
  }
  Model model(words[4], std::atoi(words[5]), options.release, board);
  return play(*scenario, model, board, options);
}

}  // namespace
}  // namespace ringmain::nccl_conformance

int main(int count, char** words) {
  try {
    return ringmain::nccl_conformance::run(count, words);
  } catch (const std::exception& thrown) {
    std::fprintf(stderr, "nccl_front_end: %s\n", thrown.what());
    return 3;
  }
}
