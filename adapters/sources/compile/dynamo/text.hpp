// What is in the texts that PyTorch's structured trace carries? Reasons of graph breaks and of
// recompiles, graphs and guards are written for people; here are the parts that events have fields
// for.
//
// All of it is guesswork on bytes that anybody may have written: what is not found stays empty, and
// nothing is read outside the text. Views point into the given text. Costs a pass over the text.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

namespace ringmain::compile {

/// Of the artifact dynamo_graph_break_reason.
struct BreakText {
  std::string_view file;
  std::uint32_t line = 0;
  std::string_view code;       // gb0025
  std::string_view reason;     // "Call to `torch._dynamo.graph_break()`"
  std::string_view explained;  // from the reason on, as PyTorch's own exception has it
  std::string_view stack;      // the user's, outermost first: for take_place()
};
[[nodiscard]] BreakText read_break(std::string_view text) noexcept;

/// Of one frame of a traceback as Python writes it.
struct PlaceText {
  std::string_view file;  // "": there is no further one
  std::uint32_t line = 0;
  std::string_view function;
  std::string_view code;  // the line's text, where it stands there
};
/// The next frame; `stack` is shortened by it.
[[nodiscard]] PlaceText take_place(std::string_view& stack) noexcept;

/// What stands as comments after a guard, "…  # k == 2  # m.py:67 in f", which `line` loses.
[[nodiscard]] PlaceText take_comments(std::string_view& line) noexcept;

/// Of one cached code's reason in the artifact recompile_reasons: "6/1: k == 3   # def …".
struct ReasonText {
  std::int32_t frame = -1;
  std::int32_t recompile = -1;
  std::string_view condition;  // "k == 3"
  PlaceText place;             // of the code that asked for it, as far as it is said
  std::string_view stack;      // of that code, for take_place()
};
[[nodiscard]] ReasonText read_reason(std::string_view text) noexcept;

/// Of dynamo_output_graph: the code of a module with its graph as forward().
struct GraphText {
  std::int32_t ops = -1;
  std::int32_t inputs = -1;
};
[[nodiscard]] GraphText read_graph(std::string_view text) noexcept;

/// Of dynamo_cpp_guards_str: the tree of guards.
struct GuardsText {
  std::uint32_t count = 0;
  std::int64_t check_ns = 0;
};
[[nodiscard]] GuardsText read_guards(std::string_view text) noexcept;

/// One guard of that tree.
struct GuardText {
  std::string_view kind;  // "": there is no further one
  std::string_view source;
  std::string_view check;
  PlaceText place;
};
/// Walks along the tree.
class GuardTree {
 public:
  explicit GuardTree(std::string_view text) noexcept : rest_(text) {}
  [[nodiscard]] GuardText next();

 private:
  std::string_view rest_;
  std::vector<std::string_view> sources_;  // of the managers that are open, by depth
};

/// Of a code object as Python's dis writes it down.
struct BytecodeText {
  std::int32_t bytes = -1;  // to the end of its last instruction, without that one's caches
  std::uint32_t instructions = 0;
};
[[nodiscard]] BytecodeText read_bytecode(std::string_view text) noexcept;

/// Of a failure's reason: does it say that a frame was compiled too often?
struct LimitText {
  bool is = false;
  bool accumulated = false;
  std::uint32_t limit = 0;
};
[[nodiscard]] LimitText read_limit(std::string_view reason) noexcept;

/// The function whose rest a code object of that name is, and the line where it goes on:
/// "torch_dynamo_resume_in_forward_at_40".
struct ResumeText {
  std::string_view function;  // "": it is no such code
  std::uint32_t line = 0;
};
[[nodiscard]] ResumeText read_resume(std::string_view name) noexcept;

}  // namespace ringmain::compile
