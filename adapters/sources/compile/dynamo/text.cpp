#include "adapters/sources/compile/dynamo/text.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <optional>

#include "adapters/sources/compile/dynamo/lines.hpp"

namespace ringmain::compile {
namespace {

template <class T>
T number_in(std::string_view digits) noexcept {
  T number{};
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return read.ec == std::errc{} ? number : T{};
}

bool is_word(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

bool is_name(std::string_view text) noexcept {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_word);
}

/// What stands after `begin`, to the end of the text.
std::optional<std::string_view> after(std::string_view text, std::string_view begin) noexcept {
  const std::size_t at = text.find(begin);
  if (at == npos) return std::nullopt;
  return text.substr(at + begin.size());
}

/// How many arguments a "forward(…" has, and how long its list is; nullopt: it does not end.
struct Arguments {
  std::int32_t count = 0;
  std::size_t bytes = 0;
};
std::optional<Arguments> read_arguments(std::string_view text) noexcept {
  Arguments read;
  int depth = 0;
  char quote = 0;
  bool seen = false;  // anything but blanks since the last comma
  bool comment = false;
  std::size_t begin = 0;
  for (; read.bytes < text.size(); ++read.bytes) {
    const char c = text[read.bytes];
    if (comment) {
      comment = c != '\n';
    } else if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '#') {
      comment = true;
    } else if (depth == 0 && (c == ',' || c == ')')) {
      if (seen && trimmed(text.substr(begin, read.bytes - begin)) != "self") ++read.count;
      if (c == ')') return read;
      seen = false;
      begin = read.bytes + 1;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '[' || c == '(' || c == '{') {
      ++depth;
    } else if (c == ']' || c == ')' || c == '}') {
      --depth;
    } else if (c != ' ' && c != '\n' && c != '\t') {
      seen = true;
    }
  }
  return std::nullopt;
}

/// Is this line of a graph a call? Others give an input or an attribute a name, or forget one.
bool is_op(std::string_view line) noexcept {
  if (!is_word(line.front())) return false;
  std::size_t at = 0;
  while (at < line.size() && is_word(line[at])) ++at;
  std::string_view rest = line.substr(at);
  if (rest.starts_with(": \"")) {  // its type
    const std::size_t end = rest.find('"', 3);
    if (end == npos) return false;
    rest.remove_prefix(end + 1);
  }
  if (!rest.starts_with(" = ")) return false;
  rest.remove_prefix(3);
  const std::string_view value = trimmed(rest.substr(0, rest.find(';')));
  const bool attribute = value.starts_with("self.") && value.find_first_of("([ ") == npos;
  return !is_name(value) && !attribute;
}

}  // namespace

BreakText read_break(std::string_view text) noexcept {
  BreakText read;
  if (const auto place = after(text, "Graph break in user code at ")) {
    std::string_view rest = *place;
    const std::string_view line = trimmed(take_line(rest));
    const std::size_t colon = line.rfind(':');
    if (colon != npos) {
      read.file = line.substr(0, colon);
      read.line = number_in<std::uint32_t>(line.substr(colon + 1));
    }
  }
  std::string_view rest = text;
  for (const std::string_view begin : {"Graph Break Reason: ", "Reason: "}) {
    if (const auto found = after(text, begin)) {
      rest = *found;
      break;
    }
  }
  if (const auto found = after(text, "\nUser code traceback:")) {
    read.stack =
        found->substr(0, found->find("\nTraceback (most recent"));  // PyTorch's own follows
  }
  for (const std::string_view end : {"\nUser code traceback:", "\nTraceback (most recent"}) {
    rest = rest.substr(0, rest.find(end));
  }
  if (rest.starts_with("Encountered graph break when attempting to trace")) {
    const auto said = after(rest, "\n\n");
    if (said && !trimmed(*said).empty()) rest = *said;
  }
  read.explained = trimmed(rest);
  std::string_view lines = read.explained;
  read.reason = trimmed(take_line(lines));
  if (const auto code = after(read.explained, "/gb/")) {
    const std::size_t end = code->find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789");
    const std::string_view word = code->substr(0, end);
    if (word.starts_with("gb") && word.size() <= 16) read.code = word;
  }
  return read;
}

PlaceText take_place(std::string_view& stack) noexcept {
  constexpr std::string_view kFile = "  File \"";
  constexpr std::string_view kLine = "\", line ";
  constexpr std::string_view kName = ", in ";
  while (!stack.empty()) {
    std::string_view line = take_line(stack);
    if (!line.starts_with(kFile)) continue;
    line.remove_prefix(kFile.size());
    const std::size_t at = line.rfind(kLine);
    const std::size_t name = at == npos ? npos : line.find(kName, at + kLine.size());
    if (name == npos) continue;
    PlaceText place;
    place.file = line.substr(0, at);
    place.line = number_in<std::uint32_t>(line.substr(at + kLine.size(), name - at - kLine.size()));
    place.function = trimmed(line.substr(name + kName.size()));
    if (stack.starts_with("    ")) place.code = trimmed(take_line(stack));
    return place;
  }
  return {};
}

ReasonText read_reason(std::string_view text) noexcept {
  ReasonText read;
  text = trimmed(text);
  const std::size_t colon = text.find(": ");
  const std::size_t slash = text.find('/');
  const std::string_view id = text.substr(0, colon);
  if (colon != npos && slash < colon && id.find_first_not_of("0123456789/") == npos) {
    const auto frame = id.substr(0, slash);
    const auto recompile = id.substr(slash + 1);
    if (!frame.empty() && !recompile.empty() && recompile.find('/') == npos) {
      read.frame = number_in<std::int32_t>(frame);
      read.recompile = number_in<std::int32_t>(recompile);
      text.remove_prefix(colon + 2);
    }
  }
  std::string_view line = take_line(text);
  read.condition = trimmed(line.substr(0, line.find("  #")));
  read.place = take_comments(line);
  read.stack = text;
  std::string_view stack = text;
  while (!stack.empty()) {  // whole paths, where the comment shortens
    const PlaceText place = take_place(stack);
    if (place.line > 0) read.place = place;
  }
  return read;
}

GraphText read_graph(std::string_view text) noexcept {
  GraphText read;
  const auto list = after(text, "def forward(");
  if (!list) return read;
  const auto arguments = read_arguments(*list);
  if (!arguments) return read;
  read.inputs = arguments->count;
  read.ops = 0;
  std::string_view rest = list->substr(arguments->bytes);
  (void)take_line(rest);  // "):" and what may stand after it
  while (!rest.empty()) {
    const std::string_view line = trimmed(take_line(rest));
    if (line.starts_with("return")) break;  // what follows are graphs within this one
    if (!line.empty() && is_op(line)) ++read.ops;
  }
  return read;
}

GuardsText read_guards(std::string_view text) noexcept {
  GuardsText read;
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    if (line.starts_with("Guard latency = ")) {
      const auto us = number_in<double>(line.substr(16));
      if (us > 0 && us < 1e12) read.check_ns = std::llround(us * 1000);
      continue;
    }
    const std::size_t branch = line.find("+- ");
    if (branch == npos || line.substr(0, branch).find_first_not_of("| ") != npos) continue;
    const std::string_view name = line.substr(branch + 3);
    const std::size_t end = name.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
    if (end != npos && end > 0 && name[end] == ':') ++read.count;  // a manager has small letters
  }
  return read;
}

LimitText read_limit(std::string_view reason) noexcept {
  LimitText read;
  std::string_view lines = reason;
  const std::string_view line = take_line(lines);  // others mention the limit in a hint further on
  if (line.find("recompile limit") == npos && line.find("recompile_limit") == npos &&
      line.find("cache_size_limit") == npos) {
    return read;
  }
  read.is = true;
  read.accumulated = reason.find("accumulated") != npos;
  if (const auto set = after(reason, "currently set to ")) {
    read.limit = number_in<std::uint32_t>(*set);
  }
  return read;
}

ResumeText read_resume(std::string_view name) noexcept {
  constexpr std::string_view kBegin = "torch_dynamo_resume_in_";
  ResumeText read;
  const std::size_t at = name.rfind("_at_");
  if (!name.starts_with(kBegin) || at == npos || at < kBegin.size()) return read;
  const std::string_view line = name.substr(at + 4);
  if (line.empty() || line.find_first_not_of("0123456789") != npos) return read;
  read.line = number_in<std::uint32_t>(line);
  if (read.line > 0) read.function = name.substr(kBegin.size(), at - kBegin.size());
  return read;
}

}  // namespace ringmain::compile
