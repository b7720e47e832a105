#include "cli/doctor.hpp"

#include <algorithm>
#include <cstdio>
#include <iterator>

#include "adapters/formats/json_text.hpp"

#include "cli/terminal.hpp"
#include "cli/verbs.hpp"

namespace ringmain::cli {
namespace {

using State = Finding::State;

void print_text(const std::vector<Finding>& findings, std::size_t problems, std::size_t notes) {
  const bool colours = coloured(stdout);
  std::size_t width = 0;
  for (const Finding& f : findings) width = std::max(width, f.name.size());
  for (const Finding& f : findings) {
    const std::string mark = f.state == State::good   ? painted(colours, Colour::green, "ok  ")
                             : f.state == State::note ? painted(colours, Colour::yellow, "note")
                                                      : painted(colours, Colour::red, "BAD ");
    std::printf("%s  %-*s  %s\n", mark.c_str(), static_cast<int>(width), f.name.c_str(),
                f.found.c_str());
    if (!f.mend.empty()) {
      std::printf("      %-*s  -> %s\n", static_cast<int>(width), "", f.mend.c_str());
    }
  }
  if (problems > 0) {
    std::printf("\n%s\n",
                painted(colours, Colour::red,
                        plural(problems, "thing") + " must be mended before ringmain works.")
                    .c_str());
  } else {
    std::printf("\n%s%s\n", painted(colours, Colour::green, "ringmain works here.").c_str(),
                notes > 0 ? (" " + plural(notes, "note") +
                             (notes == 1 ? " above says" : " above say") + " what could be better.")
                                .c_str()
                          : "");
  }
}

void print_json(const std::vector<Finding>& findings, std::size_t problems) {
  formats::JsonText json;
  json.open('{').key("ok").boolean(problems == 0);
  json.key("version").text(RINGMAIN_VERSION).key("findings").open('[');
  for (const Finding& f : findings) {
    constexpr const char* kStates[] = {"good", "note", "problem"};
    static_assert(std::size(kStates) == static_cast<std::size_t>(State::problem) + 1);
    json.open('{').key("name").text(f.name);
    json.key("state").text(kStates[static_cast<int>(f.state)]);
    json.key("found").text(f.found).key("mend").text(f.mend).close('}');
  }
  json.close(']').close('}');
  std::printf("%s\n", json.str().c_str());
}

int run(const Arguments& arguments) {
  const std::vector<Finding> findings = examine();
  const auto count = [&](State state) {
    return static_cast<std::size_t>(std::count_if(
        findings.begin(), findings.end(), [state](const Finding& f) { return f.state == state; }));
  };
  if (arguments.has("--json")) {
    print_json(findings, count(State::problem));
  } else {
    print_text(findings, count(State::problem), count(State::note));
  }
  return count(State::problem) == 0 ? kDone : kFailed;
}

}  // namespace

const Verb& doctor_verb() {
  static const Option kOptions[] = {{"--json", "", "one JSON object, for programs"}};
  static const Verb kVerb{"doctor",
                          "",
                          "say what works on this machine, and how to mend what does not",
                          "Looks at the machine, measures what waking and fencing cost, starts "
                          "workers and sends events\n"
                          "through them. Exit status 1 if something must be mended.",
                          kOptions,
                          run};
  return kVerb;
}

}  // namespace ringmain::cli
