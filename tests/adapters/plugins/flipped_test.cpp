// What does a plugin with one wrong bit do? Each copy is tried in a process of its own.
#include <csignal>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "adapters/registry.hpp"

#include "tests/adapters/plugins/plugin_files.hpp"

namespace ringmain::registry {
namespace {

using tests::Folder;
using tests::fs::path;

enum Verdict : int { kRefused = 0, kWorks = 1, kBadSentence = 2 };

/// Loads the plugin as any program would, and says how that went.
Verdict try_plugin(const path& folder) {
  Registry registry;
  registry.search(folder.string());
  const auto loaded = registry.load(ProviderKind::sink, "tally");
  if (loaded) return kWorks;
  const std::string& message = loaded.error().message;
  const bool fine = message.find("tally.so") != std::string::npos && message.size() > 30 &&
                    message.find('\n') == std::string::npos;
  return fine ? kRefused : kBadSentence;
}

/// The verdict of a child, or 100 + the signal that ended it.
int verdict_of_child(const path& folder) {
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit no_core{0, 0};
    (void)::setrlimit(RLIMIT_CORE, &no_core);
    ::_exit(try_plugin(folder));
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
}

class FlippedTest : public testing::Test {
 protected:
  FlippedTest()
      : library_(folder_.take(TALLY)),
        manifest_(tests::text_of(tests::manifest_of(library_))),
        good_(tests::text_of(library_)) {}

  /// How many of `copies` ended in each way.
  std::map<int, int> verdicts(int copies) {
    std::map<int, int> all;
    std::mt19937 random(2718);
    for (int i = 0; i < copies; ++i) {
      std::string flipped = good_;
      // Half of them where the loader looks: headers and dynamic tables.
      const std::size_t at = random() % (i % 2 == 0 ? good_.size() : std::size_t{4096});
      flipped[at] = static_cast<char>(flipped[at] ^ (1 << random() % 8));
      tests::write(library_, flipped);
      ++all[verdict_of_child(folder_.path())];
    }
    return all;
  }

  const Folder folder_;
  const path library_;
  const std::string manifest_;
  const std::string good_;
};

TEST_F(FlippedTest, EachOf500GetsOneSentenceWhereTheManifestHoldsTheSum) {
  EXPECT_EQ(verdict_of_child(folder_.path()), kWorks);
  EXPECT_EQ(verdicts(500), (std::map<int, int>{{kRefused, 500}}));
}

}  // namespace
}  // namespace ringmain::registry
