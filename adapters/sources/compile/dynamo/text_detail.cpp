// Guards one by one, and bytecode.
#include <charconv>

#include "adapters/sources/compile/dynamo/lines.hpp"
#include "adapters/sources/compile/dynamo/text.hpp"

namespace ringmain::compile {

PlaceText take_comments(std::string_view& line) noexcept {
  constexpr std::string_view kMark = "  # ";
  PlaceText place;
  for (std::size_t at = line.rfind(kMark); at != npos; at = line.rfind(kMark)) {
    const std::string_view said = trimmed(line.substr(at + kMark.size()));
    line = trimmed(line.substr(0, at));
    const std::size_t in = said.rfind(" in ");
    const std::size_t colon = said.rfind(':', in);
    std::uint32_t number = 0;
    if (place.file.empty() && in != npos && colon != npos) {
      const std::string_view digits = said.substr(colon + 1, in - colon - 1);
      const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), number);
      if (read.ec == std::errc{} && read.ptr == digits.data() + digits.size()) {
        place.file = said.substr(0, colon);
        place.line = number;
        place.function = said.substr(in + 4);
        continue;
      }
    }
    place.code = said;
  }
  return place;
}

GuardText GuardTree::next() {
  GuardText read;
  while (!rest_.empty()) {
    const std::string_view line = take_line(rest_);
    const std::size_t branch = line.find("+- ");
    if (branch == npos || line.substr(0, branch).find_first_not_of("| ") != npos) continue;
    std::string_view name = line.substr(branch + 3);
    const std::size_t depth = branch / 2;
    if (sources_.size() > depth) sources_.resize(depth);
    const std::size_t end = name.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
    if (end != npos && end > 0 && name[end] == ':') {
      read.kind = name.substr(0, end);
      for (const std::string_view source : sources_) {
        if (!source.empty()) read.source = source;
      }
      name.remove_prefix(end + 1);
      read.place = take_comments(name);
      read.check = trimmed(name);
      return read;
    }
    sources_.resize(depth);  // a manager, of what stands below it
    const std::size_t source = name.find("source=");
    std::string_view said = source == npos ? std::string_view{} : name.substr(source + 7);
    for (const std::string_view stop : {", accessed_by=", ", type=<"})
      said = said.substr(0, said.find(stop));
    sources_.push_back(said);
  }
  return read;
}

BytecodeText read_bytecode(std::string_view text) noexcept {
  BytecodeText read;
  while (!text.empty()) {
    std::string_view line = trimmed(take_line(text));
    // "40  >>  116 POP_TOP": the number before the name is where it stands.
    const std::size_t name = line.find_first_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ");
    if (name == npos || name == 0) continue;
    const std::string_view before = trimmed(line.substr(0, name));
    const std::size_t blank = before.find_last_of(' ');
    const std::string_view digits = before.substr(blank == npos ? 0 : blank + 1);
    std::int32_t offset = 0;
    const auto number = std::from_chars(digits.data(), digits.data() + digits.size(), offset);
    if (number.ec != std::errc{} || number.ptr != digits.data() + digits.size() || offset < 0)
      continue;
    ++read.instructions;
    if (offset < (1 << 30) && offset + 2 > read.bytes) read.bytes = offset + 2;
  }
  return read;
}

}  // namespace ringmain::compile
