#include "adapters/formats/json_text.hpp"

#include "cli/summary_report.hpp"

namespace ringmain::cli {
namespace {

using formats::JsonText;

template <class N>
void number_or_null(JsonText& json, std::string_view key, const std::optional<N>& number) {
  json.key(key);
  if (number) {
    json.number(*number);
  } else {
    json.null();
  }
}

void add_input(JsonText& json, const SummaryInput& input) {
  json.key("files").open('[');
  for (const std::string& file : input.files) json.text(file);
  json.close(']').key("faults").open('[');
  for (const std::string& fault : input.faults) json.text(fault);
  json.close(']').key("left_out").number(input.left_out);
  json.key("first_left_out").open('[');
  for (const LeftOut& one : input.first_left_out) {
    json.open('{').key("file").text(one.file).key("line").number(one.line);
    json.key("why").text(one.why).close('}');
  }
  json.close(']');
}

void add_processes(JsonText& json, const SummaryTable& table) {
  json.key("processes").open('[');
  for (const SummaryProcess& one : table.processes()) {
    json.open('{').key("origin").text(one.origin);
    number_or_null(json, "rank", one.rank);
    number_or_null(json, "pid", one.pid);
    json.key("host").text(one.host).key("program").text(one.program).key("job").text(one.job);
    json.key("events").number(one.events);
    json.key("first_ns").number(one.first_ns).key("last_ns").number(one.last_ns);
    number_or_null(json, "to_realtime_ns", one.to_realtime_ns);
    json.close('}');
  }
  json.close(']');
}

void add_measure(JsonText& json, const SummaryMeasure& measure, unsigned coarser) {
  const Sketch& values = measure.values;
  json.key(measure.key).open('{').key("count").number(values.count());
  json.key("sum").number(values.sum()).key("min").number(values.min());
  json.key("p50").number(values.quantile(0.5, coarser));
  json.key("p90").number(values.quantile(0.9, coarser));
  json.key("p99").number(values.quantile(0.99, coarser));
  json.key("max").number(values.max());
  if (measure.slowest) {
    json.key("slowest_rank").number(measure.slowest->rank);
    json.key("slowest_p50").number(measure.slowest->median);
    json.key("fastest_p50").number(measure.slowest->least_median);
  }
  json.close('}');
}

void add_rows(JsonText& json, const SummaryReport& report) {
  json.key("rows").open('[');
  for (const SummaryRow& row : report.rows) {
    const SummaryKind& kind = report.table.kinds()[row.kind];
    json.open('{').key("channel").text(kind.channel).key("operation").text(kind.operation);
    if (report.by.rank) number_or_null(json, "rank", row.rank);
    if (report.by.step) {
      number_or_null(json, "step", row.step);
      number_or_null(json, "step_to", row.step_to);
    }
    json.key("events").number(row.events).key("measures").open('{');
    for (const SummaryMeasure& one : row.measures) add_measure(json, one, report.table.coarser());
    json.close('}').close('}');
  }
  json.close(']');
}

void add_losses(JsonText& json, const SummaryReport& report) {
  json.key("losses").open('{').key("publishers").number(report.publishers);
  json.key("missing").number(report.missing).key("backward").number(report.backward);
  json.key("channels").open('[');
  for (const SummaryLoss& one : report.losses) {
    json.open('{').key("channel").text(one.channel);
    number_or_null(json, "rank", one.rank);
    json.key("missing").number(one.missing).key("backward").number(one.backward).close('}');
  }
  json.close(']').key("told").open('[');
  for (const auto& [told, count] : report.table.told()) {
    json.open('{').key("channel").text(told.channel);
    number_or_null(json, "rank", report.table.processes()[told.process].rank);
    json.key("what").text(told.what).key("count").number(count).close('}');
  }
  json.close(']').close('}');
}

void add_open(JsonText& json, const SummaryReport& report) {
  constexpr std::size_t kShown = 1000;
  json.key("open").open('{').key("count").number(report.open.size()).key("oldest").open('[');
  for (std::size_t i = 0; i < std::min(kShown, report.open.size()); ++i) {
    const SummaryOpen& one = report.open[i];
    const SummaryProcess& process = report.table.processes()[one.process];
    json.open('{').key("operation").text(report.table.kinds()[one.kind].operation);
    number_or_null(json, "rank", process.rank);
    json.key("origin").text(process.origin).key("op_id").number(one.op_id);
    json.key("time_ns").number(one.time_ns).close('}');
  }
  json.close(']').close('}');
}

}  // namespace

std::string summary_json(const SummaryReport& report) {
  JsonText json;
  json.open('{');
  add_input(json, report.input);
  json.key("events").number(report.table.events());
  json.key("relative_error").number(Sketch::error(report.table.coarser()));
  if (report.by.step) json.key("step_width").number(report.table.step_width());
  add_processes(json, report.table);
  add_rows(json, report);
  add_losses(json, report);
  add_open(json, report);
  const auto& beyond = report.table.beyond();
  json.key("beyond").open('{').key("operations").number(beyond.operations);
  json.key("processes").number(beyond.processes).key("cells").number(beyond.cells);
  json.key("sequences").number(beyond.sequences).key("pairs").number(beyond.pairs).close('}');
  json.close('}');
  return json.str() + "\n";
}

}  // namespace ringmain::cli
