// `ringmain man`: the manual's pages, made of what --help says.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "cli/man_page.hpp"
#include "cli/verbs.hpp"

namespace ringmain::cli {
namespace {

int write_all(const std::filesystem::path& folder) {
  std::error_code why;
  std::filesystem::create_directories(folder, why);
  if (why) return failed(folder.string() + " cannot be made: " + why.message());
  for (const VerbPath& path : verbs_below({&program()})) {
    const std::filesystem::path file = folder / (page_name(path) + ".1");
    std::ofstream page(file, std::ios::binary | std::ios::trunc);
    page << man_page(path, RINGMAIN_VERSION);
    page.close();
    if (!page) return failed(file.string() + " cannot be written");
  }
  return kDone;
}

/// Of a page's name, as man wants it: "ringmain-fr-merge", or "fr-merge".
bool find_page(const std::string& name, VerbPath& path) {
  for (const VerbPath& one : verbs_below({&program()})) {
    const std::string page = page_name(one);
    if (page != name && page != "ringmain-" + name) continue;
    path = one;
    return true;
  }
  return false;
}

int run(const Arguments& arguments) {
  const auto folder = arguments.value("--all");
  if (folder && !arguments.operands().empty()) {
    return wrong_usage("man", "--all writes every page, so it takes no verb");
  }
  if (folder && folder->empty()) return wrong_usage("man", "--all wants a folder");
  if (folder) return write_all(*folder);
  VerbPath path{&program()};
  std::vector<std::string> words = arguments.operands();
  if (words.size() == 1 && find_page(words.front(), path)) words.clear();
  for (const std::string& word : words) {
    const Verb* found = nullptr;
    std::vector<std::string_view> known;
    for (const Verb* nested : path.back()->verbs) {
      known.push_back(nested->name);
      if (nested->name == word) found = nested;
    }
    if (found == nullptr) {
      return wrong_usage("man", "there is no verb '" + word + "'" + did_you_mean(word, known));
    }
    path.push_back(found);
  }
  std::fputs(man_page(path, RINGMAIN_VERSION).c_str(), stdout);
  return kDone;
}

}  // namespace

const Verb& man_verb() {
  static const Option kOptions[] = {
      {"--all", "FOLDER",
       "write every page there, as ringmain.1, ringmain-run.1, ringmain-fr-merge.1 and so on"}};
  static const Verb kVerb{
      .name = "man",
      .operands = "[VERB]…",
      .summary = "print a page of the manual, for man",
      .details =
          "Prints the page of the program, or of the verb that is named, in the language of\n"
          "man(7). A page's name has '-' between words: that of 'ringmain fr merge' is\n"
          "ringmain-fr-merge, and all of fr merge, fr-merge and ringmain-fr-merge name it here.\n"
          "An installed copy has them all where man looks; without one:\n\n"
          "  ringmain man fr merge | man -l -\n\n"
          "exit status: 0; 1 where a page could not be written; 2 for a wrong call.",
      .options = kOptions,
      .run = run};
  return kVerb;
}

}  // namespace ringmain::cli
