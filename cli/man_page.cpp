// Source: groff_man(7); mandoc reads the same.
#include "cli/man_page.hpp"

#include <cstdint>
#include <cstdio>

namespace ringmain::cli {
namespace {

/// The number of the UTF-8 character at the front of `text`, which loses it.
std::uint32_t take_character(std::string_view& text) {
  const auto lead = static_cast<unsigned char>(text.front());
  text.remove_prefix(1);
  if (lead < 0xC0) return lead;
  std::uint32_t character = lead & (lead < 0xE0 ? 0x1Fu : lead < 0xF0 ? 0x0Fu : 0x07u);
  while (!text.empty() && (static_cast<unsigned char>(text.front()) & 0xC0u) == 0x80u) {
    character = character << 6 | (static_cast<unsigned char>(text.front()) & 0x3Fu);
    text.remove_prefix(1);
  }
  return character;
}

/// A character as roff shows it: unescaped, quotes and hyphens would become typographic ones.
void append_escaped(std::string& made, std::uint32_t character) {
  switch (character) {
    case '\\':
      made += "\\e";
      return;
    case '-':
      made += "\\-";
      return;
    case '\'':
      made += "\\(aq";
      return;
    case '"':
      made += "\\(dq";
      return;
    case '`':
      made += "\\(ga";
      return;
    case '^':
      made += "\\(ha";
      return;
    case '~':
      made += "\\(ti";
      return;
    default:
      break;
  }
  if (character < 0x80) {
    made += static_cast<char>(character);
    return;
  }
  char code[16];
  std::snprintf(code, sizeof code, "\\[u%04X]", static_cast<unsigned>(character));
  made += code;
}

/// One line that is text: a '.' in front would be a request.
std::string escaped(std::string_view text) {
  std::string made = text.starts_with('.') ? "\\&" : "";
  while (!text.empty()) append_escaped(made, take_character(text));
  return made;
}

std::string_view take_line(std::string_view& text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(line.size() + 1, text.size()));
  return line;
}

/// Lines of text flow; those that are indented stay as they are.
std::string flowing(std::string_view text) {
  std::string made;
  bool as_is = false;
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    const bool indented = line.starts_with("  ");
    if (indented != as_is) made += indented ? ".nf\n" : ".fi\n";
    as_is = indented;
    made += escaped(line) + "\n";
  }
  return made + (as_is ? ".fi\n" : "");
}

constexpr std::string_view kExit = "exit status: ";

/// Paragraphs, divided by empty lines; that on the exit status becomes a section.
std::string described(std::string_view details) {
  std::string made, exit_status;
  bool first = true;
  while (!details.empty()) {
    const std::size_t end = details.find("\n\n");
    std::string_view paragraph = details.substr(0, end);
    details.remove_prefix(end == details.npos ? details.size() : end + 2);
    if (paragraph.starts_with(kExit)) {
      paragraph.remove_prefix(kExit.size());
      exit_status = ".SH EXIT STATUS\n" + flowing(paragraph);
      continue;
    }
    made += (first ? "" : ".PP\n") + flowing(paragraph);
    first = false;
  }
  return made + exit_status;
}

/// "recorded: one thread, …": such a line begins a new one, others flow.
bool says_what_a_value_is(std::string_view line) {
  const std::size_t colon = line.find(':');
  return colon != line.npos && line.find(' ') > colon;
}

std::string item(std::string_view name, std::string_view value, std::string_view help) {
  std::string made = ".TP\n\\fB" + escaped(name) + "\\fR";
  if (!value.empty()) made += " \\fI" + escaped(value) + "\\fR";
  made += "\n";
  for (bool first = true; !help.empty(); first = false) {
    const std::string_view line = take_line(help);
    made += (!first && says_what_a_value_is(line) ? ".br\n" : "") + escaped(line) + "\n";
  }
  return made;
}

std::string call_of(const VerbPath& path) {
  std::string made = "ringmain";
  for (std::size_t i = 1; i < path.size(); ++i) made += " " + std::string(path[i]->name);
  return made;
}

std::string see_also(const VerbPath& path) {
  std::vector<std::string> pages;
  if (path.size() > 1) pages.push_back(page_name({path.begin(), path.end() - 1}));
  for (const Verb* nested : path.back()->verbs) {
    VerbPath below = path;
    below.push_back(nested);
    pages.push_back(page_name(below));
  }
  std::string made;
  for (const std::string& page : pages) {
    made += (made.empty() ? ".SH SEE ALSO\n" : ",\n") + (".BR " + escaped(page) + " (1)");
  }
  return made.empty() ? made : made + "\n";
}

}  // namespace

std::string page_name(const VerbPath& path) {
  std::string made = "ringmain";
  for (std::size_t i = 1; i < path.size(); ++i) made += "-" + std::string(path[i]->name);
  return made;
}

std::string man_page(const VerbPath& path, std::string_view version) {
  const Verb& verb = *path.back();
  const std::string name = page_name(path);
  std::string title = name;
  for (char& letter : title) {
    if (letter >= 'a' && letter <= 'z') letter = static_cast<char>(letter - 'a' + 'A');
  }
  const std::string_view summary =
      verb.summary.empty() ? "the event plane of a GPU training process" : verb.summary;
  std::string made =
      ".TH " + title + " 1 \"\" \"ringmain " + escaped(version) + "\" ringmain\n.nh\n.ad l\n";
  made += ".SH NAME\n" + escaped(name) + " \\- " + escaped(summary) + "\n";
  made += ".SH SYNOPSIS\n.B " + escaped(call_of(path)) + "\n";
  if (verb.verbs.empty()) made += escaped("[OPTION…]") + "\n";
  if (!verb.operands.empty()) made += escaped(verb.operands) + "\n";
  made += ".SH DESCRIPTION\n" + described(verb.details);
  if (!verb.verbs.empty()) {
    made += ".SH VERBS\n";
    for (const Verb* nested : verb.verbs) made += item(nested->name, "", nested->summary);
    made += item("help", "", "say more about a verb: " + call_of(path) + " help VERB");
  }
  made += ".SH OPTIONS\n";
  for (const Option& option : verb.options) made += item(option.name, option.value, option.help);
  made += item("-h, --help", "", "print a shorter form of this page");
  return made + see_also(path);
}

std::vector<VerbPath> verbs_below(const VerbPath& path) {
  std::vector<VerbPath> made{path};
  for (const Verb* nested : path.back()->verbs) {
    VerbPath below = path;
    below.push_back(nested);
    for (VerbPath& one : verbs_below(below)) made.push_back(std::move(one));
  }
  return made;
}

}  // namespace ringmain::cli
