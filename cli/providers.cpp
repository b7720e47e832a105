// `ringmain providers`: which sources, sinks and bridges are there, and from where? Do they load?
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "adapters/formats/json_text.hpp"
#include "adapters/registry.hpp"

#include "cli/provider_names.hpp"
#include "cli/terminal.hpp"
#include "cli/verbs.hpp"
#include "cli/watchers.hpp"

namespace ringmain::cli {
namespace {

using registry::ProviderInfo;

std::string_view state_word(ProviderInfo::State state) {
  switch (state) {
    case ProviderInfo::State::not_loaded:
      return "not loaded";
    case ProviderInfo::State::loaded:
      return "loaded";
    case ProviderInfo::State::failed:
      return "failed";
  }
  return "?";
}

std::string joined(const std::vector<std::string>& words) {
  std::string made;
  for (const std::string& word : words) made += (made.empty() ? "" : ", ") + word;
  return made;
}

/// "json_lines:FILE", "heartbeat[:MS]".
std::string call_of(const ProviderInfo& info) {
  if (info.argument.empty()) return info.name;
  if (info.argument.front() != '[') return info.name + ":" + info.argument;
  return info.name + "[:" + info.argument.substr(1);
}

void print_text(const std::vector<ProviderInfo>& all) {
  std::size_t widest = 0;
  for (const ProviderInfo& info : all) widest = std::max(widest, call_of(info).size());
  for (const ProviderInfo& info : all) {
    std::string line(to_string(info.kind));
    line.resize(8, ' ');
    line += call_of(info);
    line.resize(8 + widest + 2, ' ');
    line += info.summary;
    if (!info.tags.empty()) line += " (" + joined(info.tags) + ")";
    std::printf("%s\n", line.c_str());
    if (!info.from.empty()) std::printf("%*s from %s\n", 9, "", info.from.c_str());
  }
}

void print_json(const std::vector<ProviderInfo>& all, const std::vector<std::string>& faults) {
  formats::JsonText json;
  json.open('{').key("providers").open('[');
  for (const ProviderInfo& info : all) {
    json.open('{').key("kind").text(to_string(info.kind)).key("name").text(info.name);
    json.key("argument").text(info.argument).key("summary").text(info.summary);
    json.key("tags").open('[');
    for (const std::string& tag : info.tags) json.text(tag);
    json.close(']').key("from").text(info.from).key("state").text(state_word(info.state));
    json.key("fault").text(info.fault).key("runs").boolean(info.run.refused.empty()).close('}');
  }
  json.close(']').key("faults").open('[');
  for (const std::string& fault : faults) json.text(fault);
  std::printf("%s\n", json.close(']').close('}').str().c_str());
}

int run(const Arguments& arguments) {
  registry::Registry& registry = known_providers();
  const std::vector<std::string> none;
  const auto& without = arguments.has("--all") ? none : registry::hidden_tags();
  std::vector<std::string> faults = registry.faults();
  if (arguments.has("--check")) {
    for (const ProviderInfo& info : registry.list(without)) {
      if (auto loaded = registry.load(info.kind, info.name); !loaded) {
        faults.push_back(loaded.error().message);
      }
      if (const std::string missing = no_watcher(info.run); !missing.empty()) {
        faults.push_back("source " + info.name + " hears nothing: " + missing);
      }
    }
  }
  const auto all = registry.list(without);
  arguments.has("--json") ? print_json(all, faults) : print_text(all);
  std::fflush(stdout);
  for (const std::string& fault : faults) (void)failed(fault);
  return faults.empty() ? kDone : kFailed;
}

}  // namespace

registry::Registry& known_providers() {
  static registry::Registry& registry = []() -> registry::Registry& {
    registry::Registry& all = registry::Registry::process();
    (void)all.add(replay::provider());  // fails if a plugin has the name: the plugin keeps it
    return all;
  }();
  return registry;
}

const Verb& providers_verb() {
  static const Option kOptions[] = {
      {"--all", "", "also those with the tags debug and experimental"},
      {"--check", "", "load each of them and say which fail"},
      {"--json", "", "the list as one JSON object"}};
  static const Verb kVerb{
      "providers",
      "",
      "list sources, sinks and bridges, also those of plugins",
      "What --source and --sink may name: what comes with ringmain, and the plugins of the folder\n"
      "ringmain/plugins beside its library and of RINGMAIN_PLUGINS (folders, manifests and\n"
      "libraries, divided by ':'). Nothing is loaded for that.\n\n"
      "exit status: 0; 1 where a plugin cannot be used, which is said on standard error; 2 for a\n"
      "wrong call.",
      kOptions,
      run};
  return kVerb;
}

}  // namespace ringmain::cli
