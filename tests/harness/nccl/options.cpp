#include "tests/harness/nccl/options.hpp"

#include <charconv>
#include <cstdio>
#include <optional>
#include <string_view>
#include <system_error>

#include "tests/harness/nccl/rules.hpp"

namespace ringmain::nccl_conformance {
namespace {

constexpr char kProgram[] = "ringmain-nccl-conformance";
constexpr double kPatienceMost = 86'400;
constexpr std::uint64_t kRoundsMost = 1'000'000;

void print_help() {
  std::printf(
      "usage: %s --plugin FILE [OPTION…]\n"
      "\n"
      "Calls a profiler plugin of NCCL's as NCCL calls it, from as many threads, with what NCCL "
      "gets "
      "wrong,\n"
      "and says by name which rules the plugin breaks. Needs no GPU and no NCCL. Each scenario "
      "runs "
      "in a\n"
      "process of its own, once for each ABI version that the plugin exports (v4 to v7) and for "
      "each "
      "way\n"
      "in which releases call.\n"
      "\n"
      "exit status: 0, the plugin conforms; 1, it does not; 2, a wrong call; 3, the harness "
      "failed.\n"
      "\n"
      "options:\n"
      "  --plugin FILE       the library; a name without / is looked for as the loader does\n"
      "  --scenario NAME     this one only; may be repeated\n"
      "  --abi N             this ABI version only, 4 to 7; may be repeated\n"
      "  --release R         as 2.28, 2.30, 2.31 or 2.32 calls; may be repeated; without, 2.30 and "
      "2.32,\n"
      "                      and for v5 also 2.28, of which it is the newest version\n"
      "  --seed N            of what is random, 1 without\n"
      "  --rounds N          of the scenario random, each with a further seed; 5 without\n"
      "  --own-mask          the mask stays as the plugin sets it; without, it has all types, as "
      "NCCL's\n"
      "                      RAS may set it\n"
      "  --serial            one thread at a time, in an order that the seed repeats\n"
      "  --patience SECONDS  that a function may take while nothing else is called; 10 without\n"
      "  --json              one JSON object\n"
      "  --list              the scenarios and the rules\n"
      "  --version           the version\n"
      "  -h,--help           this text\n",
      kProgram);
}

void print_list() {
  std::printf("scenarios:\n");
  for (const Scenario* one = kScenarios; one->name != nullptr; ++one) {
    std::printf("  %-13s %s\n", one->name, one->says);
  }
  std::printf("rules:\n");
  for (const Rule* one = kRules; one->name != nullptr; ++one) {
    std::printf("  %-28s %s\n", one->name, one->says);
  }
}

/// The whole text as a number; nothing if it is none, or too large.
template <class Number>
std::optional<Number> number(std::string_view text) {
  Number read{};
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, read);
  if (text.empty() || error != std::errc() || stopped != end) return {};
  return read;
}

const Scenario* scenario_of(std::string_view name) {
  for (const Scenario* one = kScenarios; one->name != nullptr; ++one) {
    if (name == one->name) return one;
  }
  return nullptr;
}

/// An option with a value; a sentence if the value is wrong.
std::string take(std::string_view option, const std::string& value, Options& options) {
  const std::optional<std::uint64_t> given = number<std::uint64_t>(value);
  if (option == "--plugin") {
    options.plugin = value;
    return value.empty() ? "--plugin wants a file" : "";
  }
  if (option == "--scenario") {
    const Scenario* const scenario = scenario_of(value);
    options.scenarios.push_back(scenario);
    return scenario == nullptr ? "there is no scenario '" + value + "' (--list)" : "";
  }
  if (option == "--release") {
    for (const Release release : {Release::r2_28, Release::r2_30, Release::r2_31, Release::r2_32}) {
      if (value != text_of(release)) continue;
      options.releases.push_back(release);
      return "";
    }
    return "--release is 2.28, 2.30, 2.31 or 2.32";
  }
  if (option == "--patience") {
    options.patience_s = number<double>(value).value_or(0);
    const bool possible = options.patience_s > 0 && options.patience_s <= kPatienceMost;
    return possible ? "" : "--patience wants seconds, up to a day, not '" + value + "'";
  }
  if (!given) return std::string(option) + " wants a number, not '" + value + "'";
  if (option == "--seed") options.seed = *given;
  if (option == "--rounds") {
    if (*given < 1 || *given > kRoundsMost) return "--rounds is 1 to 1000000, not '" + value + "'";
    options.rounds = static_cast<int>(*given);
  }
  if (option != "--abi") return "";
  options.versions.push_back(static_cast<int>(*given));
  return *given >= 4 && *given <= 7 ? "" : "--abi is 4, 5, 6 or 7";
}

bool takes_value(std::string_view option) {
  for (const char* known :
       {"--plugin", "--scenario", "--abi", "--release", "--seed", "--rounds", "--patience"}) {
    if (option == known) return true;
  }
  return false;
}

}  // namespace

int wrong(const std::string& sentence) {
  std::fprintf(stderr, "%s: %s; --help says what it takes\n", kProgram, sentence.c_str());
  return kWrongUsage;
}

const char* text_of(Release release) noexcept {
  constexpr const char* kTexts[] = {"2.28", "2.30", "2.31", "2.32"};
  return kTexts[static_cast<std::size_t>(release)];
}

int read_options(int count, char** words, const char* version, Options& options) {
  for (int i = 1; i < count; ++i) {
    std::string word = words[i];
    std::optional<std::string> value;
    if (const std::size_t equals = word.find('='); word.starts_with("--") && equals != word.npos) {
      value = word.substr(equals + 1);
      word.resize(equals);
    }
    if (takes_value(word)) {
      if (!value && ++i < count) value = words[i];
      if (!value) return wrong(word + " wants a value");
      if (const std::string sentence = take(word, *value, options); !sentence.empty()) {
        return wrong(sentence);
      }
      continue;
    }
    if (value) return wrong("there is no option '" + word + "' with a value");
    if (word == "--own-mask") {
      options.own_mask = true;
    } else if (word == "--serial") {
      options.serial = true;
    } else if (word == "--json") {
      options.json = true;
    } else if (word == "--list") {
      return print_list(), kConforms;
    } else if (word == "--version") {
      return std::printf("%s %s\n", kProgram, version), kConforms;
    } else if (word == "-h" || word == "--help") {
      return print_help(), kConforms;
    } else {
      return wrong("there is no option '" + word + "'");
    }
  }
  return options.plugin.empty() ? wrong("--plugin names the library") : -1;
}

}  // namespace ringmain::nccl_conformance
