#include "adapters/flight/report.hpp"
#include "adapters/formats/json_text.hpp"

namespace ringmain::flight {
namespace {

using formats::JsonText;

void append_ranks(JsonText& json, std::string_view key, const std::vector<std::int64_t>& ranks) {
  json.key(key).open('[');
  for (const std::int64_t rank : ranks) json.number(rank);
  json.close(']');
}

void append_texts(JsonText& json, std::string_view key, const std::vector<std::string>& texts) {
  json.key(key).open('[');
  for (const std::string& text : texts) json.text(text);
  json.close(']');
}

void append_finding(JsonText& json, const Job& job, const Verdict& verdict,
                    const Finding& finding) {
  json.open('{').key("kind").text(to_string(finding.kind));
  json.key("group").text(job.kept.texts.of(verdict.groups[finding.group].name));
  json.key("operation").text(finding.operation).key("seq");
  finding.seq < 0 ? json.null() : json.number(finding.seq);
  append_ranks(json, "culprits", finding.culprits);
  append_ranks(json, "suspects", finding.suspects);
  append_ranks(json, "held_up", finding.held_up);
  append_ranks(json, "waiting", finding.waiting);
  json.key("since_ns");
  finding.since_ns <= 0 ? json.null() : json.number(finding.since_ns);
  json.key("waited_ns");
  finding.waited_ns < 0 ? json.null() : json.number(finding.waited_ns);
  json.key("timed_out").boolean(finding.timed_out).key("certain").boolean(finding.certain);
  json.key("consequence_of");
  finding.consequence_of < 0 ? json.null() : json.number(finding.consequence_of);
  json.key("where").text(finding.where).key("sentence").text(finding.sentence).close('}');
}

void append_groups(JsonText& json, const Job& job, const Verdict& verdict) {
  json.key("groups").open('[');
  for (std::size_t g = 0; g < verdict.groups.size(); ++g) {
    const Group& group = verdict.groups[g];
    json.open('{').key("name").text(job.kept.texts.of(group.name));
    json.key("desc").text(job.kept.texts.of(group.desc));
    json.key("ranks").text(ranks_short(group.members));
    json.key("ranks_told").boolean(group.members_told);
    json.key("whole_from_seq").number(verdict.trimmed_to[g]).close('}');
  }
  json.close(']');
}

void append_stragglers(JsonText& json, const Verdict& verdict) {
  json.key("clocks_compared").boolean(verdict.clocks_compared);
  json.key("stragglers").open('[');
  for (const Straggler& one : verdict.stragglers) {
    json.open('{').key("rank").number(one.rank).key("last").number(one.last);
    json.key("compared").number(one.compared).key("late_ms_median").number(one.late_ms_median);
    json.key("late_ms_max").number(one.late_ms_max).key("clock_ms").number(one.clock_ms).close('}');
  }
  json.close(']');
}

}  // namespace

std::string report_json(const Job& job, const Verdict& verdict) {
  JsonText json;
  json.open('{').key("dumps").number(job.dumps.size()).key("operations").number(verdict.operations);
  append_ranks(json, "culprits", verdict.culprits());
  json.key("findings").open('[');
  for (const Finding& finding : verdict.findings) append_finding(json, job, verdict, finding);
  json.close(']');
  append_ranks(json, "missing", verdict.missing);
  json.key("unread").open('[');
  for (const Unread& unread : job.unread) {
    json.open('{').key("file").text(unread.file).key("rank");
    unread.rank < 0 ? json.null() : json.number(unread.rank);
    json.key("why").text(unread.why).close('}');
  }
  json.close(']');
  append_texts(json, "undecided", verdict.undecided);
  append_texts(json, "notes", verdict.notes);
  append_texts(json, "passed_over", job.passed_over);
  append_groups(json, job, verdict);
  append_stragglers(json, verdict);
  return json.close('}').str() + "\n";
}

}  // namespace ringmain::flight
