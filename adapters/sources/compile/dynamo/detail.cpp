// The long events, published only where somebody wants them: stacks, guards one by one, code.
#include <algorithm>
#include <vector>

#include "adapters/sources/compile/dynamo/interpreter.hpp"
#include "adapters/sources/compile/dynamo/text.hpp"

namespace ringmain::compile {
namespace {

constexpr std::size_t kFramesMost = 256;  // of very deep stacks the innermost
constexpr std::size_t kGuardsMost = 8192;
constexpr std::size_t kPartsMost = 4096;  // 3 MB of code

}  // namespace

void Interpreter::publish_stack(Here& here, StackFrame::Of of, std::uint64_t number,
                                std::string_view traceback) {
  if (!details_.stacks) return;
  std::vector<PlaceText> places;
  for (PlaceText place = take_place(traceback); place.line > 0; place = take_place(traceback)) {
    places.push_back(place);
  }
  const std::size_t first = places.size() > kFramesMost ? places.size() - kFramesMost : 0;
  for (std::size_t i = first; i < places.size(); ++i) {
    StackFrame said;
    static_cast<Id&>(said) = here.id;
    said.of = of;
    said.number = number;
    said.index = static_cast<std::uint32_t>(i);
    said.count = static_cast<std::uint32_t>(places.size());
    said.line = places[i].line;
    said.file = Name(places[i].file);
    said.function = Name(places[i].function);
    said.code = places[i].code;
    here.publish(said);
  }
}

void Interpreter::publish_stack(Here& here, std::uint64_t span, const Json& start) {
  simdjson::dom::array frames;
  if (!details_.stacks || start.object()["stack"].get(frames) != simdjson::SUCCESS) return;
  const std::uint32_t count = start.length("stack");
  std::uint32_t index = 0;
  for (const auto element : frames) {
    const Json frame(element);
    StackFrame said;
    static_cast<Id&>(said) = here.id;
    said.number = span;
    said.index = index++;
    said.count = count;
    if (said.index + kFramesMost < count) continue;
    said.line = frame.integer<std::uint32_t>("line");
    said.file = file_of(frame);
    said.function = frame.name("name");
    said.code = frame.text("loc");
    here.publish(said);
  }
}

void Interpreter::publish_guards(Here& here) {
  if (!details_.guards) return;
  GuardTree tree(here.record.payload);
  for (std::uint32_t index = 0; index < kGuardsMost; ++index) {
    const GuardText guard = tree.next();
    if (guard.kind.empty()) return;
    InstalledGuard said;
    static_cast<Id&>(said) = here.id;
    said.index = index;
    said.kind = Name(guard.kind);
    said.source = Name(guard.source);
    said.check = guard.check;
    said.line = guard.place.line;
    said.file = Name(guard.place.file);
    said.function = Name(guard.place.function);
    said.code = guard.place.code;
    here.publish(said);
  }
}

void Interpreter::publish_code(Here& here, Code code) {
  if (!details_.code) return;
  constexpr std::size_t kPart = decltype(code.text)::kBytesMax;
  std::string_view rest = here.record.payload;
  static_cast<Id&>(code) = here.id;
  code.bytes = static_cast<std::uint32_t>(std::min<std::size_t>(rest.size(), ~0u));
  std::vector<std::string_view> parts;
  while (!rest.empty() && parts.size() < kPartsMost) {
    // Whole lines where they fit; never within a letter.
    std::size_t size = std::min(rest.size(), kPart);
    if (size < rest.size()) {
      const std::size_t line = rest.rfind('\n', size - 1);
      size = line != rest.npos ? line + 1 : ringmain::detail::utf8_prefix(rest, kPart);
    }
    parts.push_back(rest.substr(0, std::max<std::size_t>(size, 1)));
    rest.remove_prefix(parts.back().size());
  }
  code.parts = static_cast<std::uint32_t>(parts.size());
  for (const std::string_view part : parts) {
    code.text = part;
    here.publish(code);
    ++code.part;
  }
}

Interpreter::Read Interpreter::on_bytecode(Here& here) {
  if (!details_.code) return Read::mapped;
  if (here.record.payload.empty()) return Read::bad_payload;
  const BytecodeText bytecode = read_bytecode(here.record.payload);
  const bool original = here.kind.ends_with("_ORIGINAL_BYTECODE");
  Code code;
  code.what = original ? Code::What::original : Code::What::modified;
  code.bytecode = bytecode.bytes;
  code.instructions = bytecode.instructions;
  code.function = Name(here.kind.substr(0, here.kind.size() - 18));
  publish_code(here, code);
  return Read::mapped;
}

}  // namespace ringmain::compile
