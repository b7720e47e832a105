// ringmain-nccl-conformance: does a profiler plugin do what NCCL needs of it?
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <unistd.h>
#include <vector>

#include "adapters/formats/json_text.hpp"

#include "tests/harness/nccl/judge.hpp"
#include "tests/harness/nccl/options.hpp"

namespace ringmain::nccl_conformance {
namespace {

struct Judged {
  Trial trial;
  Outcome outcome;
};

/// What distinguishes one run of a scenario from the next.
std::string variant_of(const Trial& trial) {
  std::string text = "v" + std::to_string(trial.version) + "/" + text_of(trial.options.release);
  const bool random = std::string(trial.scenario->name) == "random";
  return random ? text + ", seed " + std::to_string(trial.options.seed) : text;
}

/// The releases that call a version in different ways. A release has its newest version called as
/// it is, with NULL where older versions get something converted: v4's release is 2.27, v5's 2.28.
std::vector<Release> releases_of(int version) {
  if (version == native_version(Release::r2_28)) {
    return {Release::r2_28, Release::r2_30, Release::r2_32};
  }
  return {Release::r2_30, Release::r2_32};
}

std::vector<Trial> trials_of(const Options& options, const std::vector<int>& versions) {
  std::vector<Trial> trials;
  std::vector<const Scenario*> scenarios = options.scenarios;
  for (const Scenario* one = kScenarios; options.scenarios.empty() && one->name != nullptr; ++one) {
    scenarios.push_back(one);
  }
  for (const Scenario* scenario : scenarios) {
    const int rounds = std::string(scenario->name) == "random" ? options.rounds : 1;
    for (const int version : versions) {
      const auto releases = options.releases.empty() ? releases_of(version) : options.releases;
      for (const Release release : releases) {
        if (version > native_version(release)) continue;
        for (int round = 0; round < rounds; ++round) {
          Stage::Options chosen{release, options.seed + static_cast<std::uint64_t>(round),
                                options.serial, options.own_mask};
          trials.push_back({options.plugin, scenario, version, chosen, options.patience_s});
        }
      }
    }
  }
  return trials;
}

void print_text(const std::vector<Judged>& all) {
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Trial& trial = all[i].trial;
    const bool first = i == 0 || all[i - 1].trial.scenario != trial.scenario;
    if (first) std::printf("%-13s %s\n", trial.scenario->name, trial.scenario->says);
    for (const Finding& finding : all[i].outcome.findings) {
      std::printf("  FAIL %s, %s: %s\n", finding.rule.c_str(), variant_of(trial).c_str(),
                  finding.text.c_str());
    }
    if (all[i].outcome.harness_failed) {
      std::printf("  the harness failed, %s: %s\n", variant_of(trial).c_str(),
                  all[i].outcome.said.c_str());
    }
  }
}

void print_json(const Options& options, const std::vector<int>& versions,
                const std::vector<Finding>& opening, const std::vector<Judged>& all, int passed,
                int failed) {
  formats::JsonText json;
  const auto findings = [&](const std::vector<Finding>& list) {
    json.key("findings").open('[');
    for (const Finding& finding : list) {
      json.open('{').key("rule").text(finding.rule).key("text").text(finding.text).close('}');
    }
    json.close(']');
  };
  json.open('{').key("plugin").text(options.plugin).key("versions").open('[');
  for (const int version : versions) json.number(version);
  json.close(']');
  findings(opening);
  json.key("runs").open('[');
  for (const Judged& one : all) {
    json.open('{').key("scenario").text(one.trial.scenario->name);
    json.key("abi").number(one.trial.version).key("release");
    json.text(text_of(one.trial.options.release)).key("seed").number(one.trial.options.seed);
    json.key("calls").number(one.outcome.calls);
    findings(one.outcome.findings);
    if (one.outcome.harness_failed) json.key("harness_failed").text(one.outcome.said);
    json.close('}');
  }
  json.close(']').key("passed").number(passed);
  json.key("failed").number(failed);
  std::printf("%s\n", json.close('}').str().c_str());
}

/// Each release knows versions up to one: of those that are there none is called by those named.
std::string nothing_to_play(const Options& options, const std::vector<int>& versions) {
  std::string sentence = "nothing is played: of the plugin there is to be called";
  for (const int version : versions) sentence += " v" + std::to_string(version);
  for (const Release release : options.releases) {
    sentence += std::string(", and NCCL ") + text_of(release) + " knows none above v" +
                std::to_string(native_version(release));
  }
  return sentence;
}

int run(const Options& options) {
  std::vector<Finding> opening;
  const std::vector<int> versions = versions_of(options.plugin, options.versions, opening);
  const std::vector<Trial> trials = trials_of(options, versions);
  if (trials.empty() && opening.empty()) return wrong(nothing_to_play(options, versions));
  std::vector<Judged> all;
  int passed = 0;
  int failed = opening.empty() ? 0 : 1;
  bool harness_failed = false;
  for (const Trial& trial : trials) {
    all.push_back({trial, judge(trial)});
    ++(all.back().outcome.findings.empty() ? passed : failed);
    harness_failed = harness_failed || all.back().outcome.harness_failed;
  }
  if (options.json) {
    print_json(options, versions, opening, all, passed, failed);
  } else {
    for (const Finding& finding : opening) {
      std::printf("  FAIL %s: %s\n", finding.rule.c_str(), finding.text.c_str());
    }
    print_text(all);
    std::printf("%d passed, %d failed\n", passed, failed);
  }
  if (harness_failed) return kHarnessFailed;
  return failed != 0 ? kDoesNot : kConforms;
}

/// Each trial has what is freed overwritten, but the C library's caches of threads keep small
/// blocks as they were. They can be left out only from a program's start on.
void leave_out_caches(char** words) {
  if (std::getenv("GLIBC_TUNABLES") != nullptr) return;
  (void)::setenv("GLIBC_TUNABLES", "glibc.malloc.tcache_count=0", 1);
  (void)::execv("/proc/self/exe", words);  // or it goes on with them
}

}  // namespace
}  // namespace ringmain::nccl_conformance

int main(int count, char** words) {
  using namespace ringmain::nccl_conformance;
  leave_out_caches(words);
  Options options;
  const int status = read_options(count, words, RINGMAIN_VERSION, options);
  if (status >= 0) return status;
  try {
    return run(options);
  } catch (const std::exception& thrown) {
    std::fprintf(stderr, "ringmain-nccl-conformance: stopped: %s\n", thrown.what());
    return kHarnessFailed;
  }
}
