// Which events does a record of the structured trace become? One or several, put together from the
// record and from earlier ones.
//
// Nothing is published here, so that the caller can do it without its lock. Cost: a pass of
// simdjson over metadata and, for some kinds, payload.
#pragma once
#include <cstdint>
#include <map>
#include <simdjson.h>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "events/compile.hpp"

#include "adapters/sources/compile/dynamo/json.hpp"
#include "adapters/sources/compile/dynamo/spans.hpp"
#include "adapters/sources/compile/trace_tap.hpp"

namespace ringmain::compile {

using Said = std::variant<Start, End, Graph, GraphBreak, Guard, Recompile, DynamicShape, Cache,
                          Backend, Phase, Limit, Reset, Metrics, StackFrame, InstalledGuard, Code>;

/// One event, and when it happened.
struct Timed {
  Said said;
  std::int64_t time_ns = 0;
};

struct TraceRecord {
  std::string_view metadata;
  std::string_view payload;
  std::int64_t time_ns = 0;
  std::uint32_t thread = 0;
};

/// Threads: one at a time.
class Interpreter {
 public:
  /// `recorded`: times are the records'; else those that the caller gives are of one clock.
  explicit Interpreter(bool recorded) : recorded_(recorded) {}

  void read(const TraceRecord& record, std::vector<Timed>& out);
  /// What the callbacks say. started(): the span of the compile.start that they belong to.
  std::uint64_t started(Trigger trigger, std::string_view id, const TraceRecord& now,
                        std::vector<Timed>& out);
  void ended(const TraceRecord& now, std::vector<Timed>& out);
  void reset(std::int64_t now_ns, std::vector<Timed>& out);
  void finish(std::int64_t now_ns, std::vector<Timed>& out);

  void veto(std::uint64_t span, Name why) noexcept;
  /// accepted or vetoed: how publishing the start of that span ended.
  [[nodiscard]] PublishResult verdict(std::uint64_t span) noexcept;
  void file_named(std::int64_t number, std::string_view path);

  [[nodiscard]] const TraceCounts& counts() const noexcept { return counts_; }
  [[nodiscard]] const std::map<std::string, std::uint64_t>& kinds() const { return kinds_; }
  [[nodiscard]] const std::map<std::string, std::uint64_t>& artifacts() const { return artifacts_; }
  void count_skipped(TraceSkip why) noexcept { ++counts_.skipped[static_cast<std::size_t>(why)]; }

  /// What is only published where somebody wants it.
  struct Details {
    bool stacks = false;
    bool guards = false;
    bool code = false;
  };
  void want(const Details& details) noexcept { details_ = details; }

  enum class Read : std::uint8_t { mapped, passed, no_kind, bad_record, bad_payload };
  /// A record that is being read.
  struct Here {
    const TraceRecord& record;
    std::string_view kind;
    simdjson::dom::element value;  // what stands after the kind
    Id id;
    std::int64_t time_ns;
    std::vector<Timed>& out;
    [[nodiscard]] Json fields() const noexcept { return Json(value); }
    template <class E>
    void publish(const E& event) const {
      out.push_back({event, time_ns});
    }
  };
  using Handle = Read (Interpreter::*)(Here&);

  // By kind of record; each in the file that its part of Dynamo has.
  Read on_file(Here& here);
  Read on_start(Here& here);
  Read on_metrics(Here& here);
  Read on_artifact(Here& here);
  Read on_phase(Here& here);
  Read on_graph(Here& here);
  Read on_guards(Here& here);
  Read on_symbol(Here& here);
  Read on_unbacked(Here& here);
  Read on_specialised(Here& here);
  Read on_guarded(Here& here);
  // By name of an artifact.
  Read on_break(Here& here);
  Read on_recompile(Here& here);
  Read on_cache(Here& here);
  Read on_bytecode(Here& here);

 private:
  struct OpenPhase {
    Name name;
    std::int64_t began_ns = 0;
  };
  static constexpr std::size_t kThreadsMost = 1024;
  static constexpr std::size_t kPhasesMost = 256;
  static constexpr std::size_t kFilesMost = 65536;
  static constexpr std::size_t kStartsMost = 4096;

  Read dispatch(const Json& metadata, const TraceRecord& record, std::vector<Timed>& out);
  Id id_of(const Json& metadata) noexcept;
  void begins(Here& here, Epochs::Sign sign);
  OpenCompile& open(Start start, std::int64_t now_ns, std::vector<Timed>& out);
  void close(OpenCompile& compile, End fields, std::int64_t now_ns, std::vector<Timed>& out);
  void open_from_trace(Here& here, Start start);
  void place_like_forward(const Id& id, Start& start) const noexcept;
  void end_from_trace(Here& here, Trigger trigger, const Json& metrics);
  void publish_limit(Here& here, const Json& metrics);
  /// The payload as an object; nothing where it is none.
  [[nodiscard]] Json payload(const Here& here) noexcept;
  [[nodiscard]] Name file_of(const Json& frame) const noexcept;
  void learn_clock(std::int64_t line_ns, std::int64_t event_ns) noexcept;
  [[nodiscard]] std::int64_t time_of(const TraceRecord& record) noexcept;
  void publish_stack(Here& here, StackFrame::Of of, std::uint64_t number,
                     std::string_view traceback);
  void publish_stack(Here& here, std::uint64_t span, const Json& start);
  void publish_guards(Here& here);
  void publish_code(Here& here, Code code);
  void publish_phase(Here& here, const Json& event, Edge edge);
  void publish_automatic(Here& here, const Json& arguments);

  const bool recorded_;
  simdjson::dom::parser metadata_parser_{TraceTap::kBytesMax};
  simdjson::dom::parser payload_parser_{TraceTap::kBytesMax};
  OpenCompiles open_;
  Epochs epochs_;
  Breaks breaks_;
  std::unordered_map<std::int64_t, Name> files_;
  std::unordered_map<std::uint64_t, Start> last_starts_;              // by frame and recompile
  std::unordered_map<std::uint32_t, std::vector<OpenPhase>> phases_;  // by thread
  std::uint32_t recompile_limit_ = 0;
  Details details_;
  std::int64_t clock_offset_ns_ = 0;
  bool clock_known_ = false;
  std::int64_t latest_ns_ = 0;
  TraceCounts counts_;
  std::map<std::string, std::uint64_t> kinds_;
  std::map<std::string, std::uint64_t> artifacts_;
};

/// Which handler is whose, and does it look at the payload?
struct TraceKind {
  std::string_view name;
  Interpreter::Handle handle;
  bool payload;
};
[[nodiscard]] const TraceKind* find_kind(std::string_view name) noexcept;
[[nodiscard]] const TraceKind* find_artifact(std::string_view name) noexcept;

}  // namespace ringmain::compile
