// What does TorchDynamo do to a program? Compiles begin and end; graphs are captured and break;
// guards are installed and fail, so that frames are compiled again; caches hit and miss.
//
// One event type for each of Dynamo's concepts. Each begins with the Id of the compile that it
// belongs to. Reasons, places and names are interned text: a program has as many as it has lines.
#pragma once
#include <cstdint>

#include "../bus/event.hpp"

namespace ringmain::compile {

/// Which compile? "2/1" is the second compile of frame 2. Ids begin again at 0/0 after a reset, and
/// a compile that starts over keeps its id, so only all fields together name one.
struct Id {
  std::int32_t frame = -1;      // -1: given without an id
  std::int32_t recompile = -1;  // frame_compile_id: 0 for the first try of a frame, failed or not
  std::int32_t autograd = -1;   // compiled autograd's id; -1: none
  std::uint32_t attempt = 0;    // how often the analysis started over
  std::uint32_t reset = 0;      // how many resets had been seen before
  friend constexpr bool operator==(const Id&, const Id&) = default;
};

/// Why something is compiled. The numbers are those of torch._dynamo.callback.CallbackTrigger.
enum class Trigger : std::uint8_t {
  unknown,
  dynamo,               // a frame
  lazy_backward,        // a backward graph, at its first use
  triton_autotuning,    // a kernel's parameters are tried
  cudagraph_recording,  // a CUDA graph is recorded
};
enum class Outcome : std::uint8_t {
  unknown,    // no source told
  completed,  // what was compiled can be used
  failed,
  cancelled  // a subscriber vetoed the start
};
enum class Edge : std::uint8_t { begin, end, instant };

/// torch.compile(dynamic=…): None, True or False.
enum class Dynamic : std::uint8_t { unknown, automatic, on, off };
enum class Answer : std::uint8_t { unknown, no, yes };

/// What begin and end of a compile have in common. Begin and end have the same span.
struct Span : Id {
  std::uint64_t span = 0;    // unique in the process
  std::uint64_t pair = 0;    // the same from an outermost begin to the outermost end that follows
  std::uint32_t thread = 0;  // Linux's id of the compiling thread; 0: not known
  std::uint32_t depth = 0;   // how many compiles were under way in the process when it began
  std::uint32_t line = 0;    // where the code that is compiled begins
  Name file;
  Name function;
  Name text;  // the id as it was given: "0/1", "!0/1/0", "None"
  Trigger trigger = Trigger::unknown;
  /// At the begin: none was under way; at the end: none is any more. The pairs that are outermost
  /// are those that torch._dynamo.callback would announce, so the end may be another span's.
  bool outermost = false;
};

/// `compile.start`: inline subscribers may veto it where the source can still refuse.
struct Start : Span {
  /// Of a frame that goes on after a graph break: GraphBreak::number of that break; else 0.
  std::uint64_t resumes_break = 0;
  Name backend;                        // in a running process only, as are the next two
  Dynamic dynamic = Dynamic::unknown;  // compile.metrics says it in logs, too
  Answer fullgraph = Answer::unknown;
};
/// `compile.end`. Published for a vetoed start, too, which only inline subscribers have heard.
struct End : Span {
  std::int64_t took_ns = 0;
  Name exception;  // failed: its type
  Name reason;     // failed: what it says; cancelled: what the veto says
  Outcome outcome = Outcome::unknown;
};

/// `compile.graph`: tracing has given a graph.
struct Graph : Id {
  std::int32_t ops = -1;     // calls in it; -1: not known
  std::int32_t inputs = -1;  // placeholders; -1: not known
  std::uint32_t bytes = 0;   // of its code as text; 0: none was given
};

/// `compile.graph_break`: tracing stopped at code that cannot be in a graph. Published again, as
/// `resumed` with the same number, when a frame that goes on after it is compiled: for a branch
/// perhaps twice.
struct GraphBreak : Id {
  std::uint64_t number = 0;  // 1, 2, 3 … in the order of the breaks
  std::int32_t resume_frame = -1;
  std::int32_t resume_recompile = -1;
  std::uint32_t line = 0;  // of the code that broke it
  Name file;
  Name function;   // the frame that was being compiled
  Name code;       // PyTorch's number for this kind of break, such as gb0025; "" without one
  Name reason;     // its first line
  Name explained;  // the rest, as PyTorch words it, without its own stack
  enum class What : std::uint8_t { broke, resumed } what = What::broke;
};

/// `compile.guard`: what must hold for compiled code to be used again.
struct Guard : Id {
  enum class What : std::uint8_t {
    installed,  // with the compiled code
    failed,     // the cached code of `of_frame/of_recompile` does not fit this call: `text`
    hit,        // a call found code that fits
    miss        // a call found no code that fits
  } what = What::installed;
  std::uint32_t count = 0;    // installed: how many
  std::int64_t check_ns = 0;  // installed: what one check costs, as PyTorch measured it
  std::int32_t of_frame = -1;
  std::int32_t of_recompile = -1;
  Name text;  // failed: the condition that did not hold
  std::uint32_t line =
      0;  // failed, and here below: the program's code that asked for the condition
  Name file;
  Name function;
};

/// `compile.recompile`: a frame is compiled again because all its cached code failed a guard.
struct Recompile : Id {
  std::uint32_t reasons = 0;  // one for each cached code
  std::uint32_t limit = 0;    // recompile_limit; 0: not known yet
  Name reason;                // of the newest cached code; each is a compile.guard of its own
  std::uint32_t line = 0;     // of the frame that is compiled again, and here below
  Name file;
  Name function;
};

/// `compile.dynamic_shape`: a size becomes a symbol, or a symbol a number again.
struct DynamicShape : Id {
  enum class What : std::uint8_t {
    created,      // a symbol for a size, with the value that it was seen with
    unbacked,     // a symbol for a size that depends on data
    specialised,  // a symbol turned out to be one number
    marked,       // never published: PyTorch announces only the symbol that a marking causes
    automatic,    // a size changed, and is taken as dynamic from now on
    guarded       // a condition on symbols was added
  } what = What::created;
  std::int32_t dimension = -1;
  std::uint32_t line = 0;
  Name symbol;
  Name value;  // automatic: the new one
  Name range;
  Name source;  // "L['x'].size()[0]"
  Name reason;
  Name file;
};

/// `compile.cache`
struct Cache : Id {
  enum class Layer : std::uint8_t { other, fx_graph, aot_autograd } layer = Layer::other;
  enum class What : std::uint8_t { hit, miss, bypass } what = What::hit;
  std::int64_t saved_ns = 0;  // hit: what compiling had taken, as PyTorch says
  Text<64> key;
  Name reason;  // bypass, and what else PyTorch says of it
};

/// `compile.backend`: the backend is called with a graph; or one is registered under a name.
struct Backend : Id {
  enum class What : std::uint8_t { begin, end, registered, removed } what = What::begin;
  Outcome outcome = Outcome::unknown;
  std::int64_t took_ns = 0;
  Name name;  // "" where PyTorch does not say
  Name tags;
};

/// `compile.phase`: PyTorch's own spans within a compile, such as bytecode_tracing.
struct Phase : Id {
  std::int64_t took_ns = 0;  // at the end
  std::uint32_t depth = 0;   // in how many other phases of its thread it is
  Edge edge = Edge::begin;
  Name name;
  Name what;  // what PyTorch says of it, such as the function's name
};

/// `compile.limit`: a frame was compiled too often and runs uncompiled from now on. PyTorch
/// announces neither start nor end of this try.
struct Limit : Id {
  enum class What : std::uint8_t { recompile, accumulated, other } what = What::recompile;
  std::uint32_t limit = 0;
  Name reason;
};

/// `compile.reset`: torch._dynamo.reset() forgot all that was compiled.
struct Reset : Id {
  bool inferred = false;  // seen by ids that began again, not announced
};

/// `compile.metrics`: what PyTorch counted and measured over one compile.
struct Metrics : Id {
  std::int64_t took_ns = 0;
  std::int64_t dynamo_ns = 0;
  std::int64_t aot_autograd_ns = 0;
  std::int64_t inductor_ns = 0;
  std::int64_t code_gen_ns = 0;
  std::int64_t triton_ns = 0;
  std::int64_t before_restart_ns = 0;
  std::int64_t logging_ns = 0;
  std::int32_t guards = -1;  // -1, here and below: not known
  std::int32_t shape_guards = -1;
  std::int32_t graph_ops = -1;
  std::int32_t graph_nodes = -1;
  std::int32_t graph_inputs = -1;
  std::int32_t cached = -1;
  std::int32_t cached_accumulated = -1;
  std::uint32_t restarts = 0;
  std::uint32_t line = 0;
  Name file;
  Name function;
  Name exception;
  Name reason;
  bool backward = false;
  Dynamic dynamic = Dynamic::unknown;
};

/// `compile.stack`: one frame of the program's stack, after what it belongs to. All of one stack
/// come together, outermost first.
struct StackFrame : Id {
  enum class Of : std::uint8_t {
    start,        // the code that calls the compiled one: `number` is the start's span
    graph_break,  // the code that broke the graph: `number` is the break's
    guard         // the code that asked for the condition that failed: `number` is 0
  } of = Of::start;
  std::uint64_t number = 0;
  std::uint32_t index = 0;  // 0: the outermost
  std::uint32_t count = 0;  // how many there are
  std::uint32_t line = 0;
  Name file;
  Name function;
  Text<160> code;  // the line's text
};

/// `compile.detail.guard`: one guard that was installed.
struct InstalledGuard : Id {
  std::uint32_t index = 0;  // in the order in which they are checked
  std::uint32_t line = 0;
  Name kind;    // TENSOR_MATCH
  Name source;  // what is looked at: L['x']; "" for the state of the process
  Name file;    // which code asked for it, as PyTorch shortens it
  Name function;
  Text<256> check;
  Text<128> code;
};

/// `compile.detail.code`: the code of a graph or of a frame, in parts that follow each other.
struct Code : Id {
  enum class What : std::uint8_t {
    graph,     // as PyTorch prints it
    original,  // the frame's bytecode, disassembled
    modified   // what runs in its place
  } what = What::graph;
  std::uint32_t bytes = 0;         // of the whole text
  std::int32_t bytecode = -1;      // how long the bytecode is, in bytes; -1: a graph
  std::uint32_t instructions = 0;  // of bytecode
  std::uint32_t part = 0;
  std::uint32_t parts = 0;
  Name function;  // of the bytecode
  Text<768> text;
};

/// `compile.wait`: a wait that PyTorch times in C++: compiles, process groups, device syncs.
struct Wait {
  std::uint64_t id = 0;  // the same at begin and end
  std::int64_t took_ns = 0;
  std::uint32_t thread = 0;
  Name key;  // PyTorch's, such as pytorch.wait_counter.dynamo_compile
  Edge edge = Edge::begin;
  enum class What : std::uint8_t {
    other,
    compile,
    process_group,
    store,
    device,
    file_lock
  } what = What::other;
};

}  // namespace ringmain::compile
