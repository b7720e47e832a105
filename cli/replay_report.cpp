#include "cli/replay_report.hpp"

#include <algorithm>
#include <string>

#include "adapters/formats/json_text.hpp"

#include "cli/terminal.hpp"

namespace ringmain::cli {
namespace {

std::uint64_t dropped_sum(const ChannelStats& c) {
  std::uint64_t sum = 0;
  for (const auto& [reason, n] : dropped_of(c)) sum += n;
  return sum;
}

std::string speed_text(double speed) {
  if (speed == 0) return "as fast as possible";
  if (speed == 1) return "at recorded speed";
  char text[64];
  std::snprintf(text, sizeof text, "at %g times recorded speed", speed);
  return text;
}

class Table {
 public:
  Table(std::FILE* to, std::size_t width) : to_(to), width_(static_cast<int>(width)) {}
  void row(const std::string& name, const std::vector<std::string>& cells, std::string_view tail) {
    std::fprintf(to_, "  %-*s", width_, name.c_str());
    constexpr int kWidths[] = {11, 11, 9, 9, 9, 9, 9};
    for (std::size_t i = 0; i < cells.size(); ++i) {
      std::fprintf(to_, " %*s", kWidths[i], cells[i].c_str());
    }
    std::fprintf(to_, "%s\n", std::string(tail).c_str());
  }

 private:
  std::FILE* to_;
  int width_;
};

void print_table(std::FILE* to, const ReplayResult& result, bool colours) {
  std::size_t width = 8;
  for (const ChannelStats& c : result.channels) {
    if (c.offered > 0) width = std::max(width, c.name.size());
  }
  Table table(to, width);
  std::fputs(colours ? "\x1b[1m" : "", to);
  table.row("channel", {"offered", "delivered", "dropped", "p50", "p90", "p99", "max"},
            colours ? "\x1b[0m" : "");
  std::uint64_t silent = 0;
  std::uint64_t dropped = 0;
  for (const ChannelStats& c : result.channels) {
    if (c.offered == 0) {
      ++silent;
      continue;
    }
    dropped += dropped_sum(c);
    std::vector<std::string> cells{with_commas(c.offered), with_commas(c.delivered),
                                   with_commas(dropped_sum(c))};
    for (const std::uint64_t ns :
         {c.latency_p50_ns, c.latency_p90_ns, c.latency_p99_ns, c.latency_max_ns}) {
      cells.push_back(c.latency_count == 0 ? "-" : duration_text(static_cast<double>(ns)));
    }
    table.row(c.name, cells, "");
  }
  table.row("all",
            {with_commas(result.offered()), with_commas(result.delivered()), with_commas(dropped)},
            "   latency: publish to dispatch");
  if (silent > 0) {
    std::fprintf(to, "  %s had no events\n", plural(silent, "more channel").c_str());
  }
}

void print_records(std::FILE* to, const ReplayResult& result) {
  const std::uint64_t skipped = result.counts.skipped_total();
  std::string reasons;
  for (std::size_t i = 0; i < result.counts.skipped.size(); ++i) {
    const std::uint64_t n = result.counts.skipped[i];
    if (n == 0) continue;
    reasons += (reasons.empty() ? " (" : ", ") + with_commas(n) + " " +
               std::string(to_string(static_cast<replay::Skip>(i)));
  }
  if (!reasons.empty()) reasons += ")";
  std::fprintf(to, "\n  %s read, %s mapped, %s skipped%s; %s to publish",  //
               plural(result.counts.read, "record").c_str(),
               with_commas(result.counts.read - skipped).c_str(), with_commas(skipped).c_str(),
               reasons.c_str(), plural(result.events, "event").c_str());
  if (result.left_out > 0) {
    std::fprintf(to, ", %s left out by --select", with_commas(result.left_out).c_str());
  }
  std::fputs("\n", to);
  if (result.spilled_bytes > 0) {
    std::fprintf(to, "  sorted with the help of a temporary file of %s\n",
                 bytes_text(result.spilled_bytes).c_str());
  }
  if (result.crowded > 0) {
    std::fprintf(to, "  %s share threads: more than 64 were recorded\n",
                 plural(result.crowded, "recorded thread").c_str());
  }
}

void print_verdict(std::FILE* to, const ReplayResult& result, bool colours) {
  const auto& churn = result.outcome.churn;
  if (churn.came > 0) {
    const bool kept = churn.called_late == 0 && churn.kept_captures == 0;
    std::fprintf(to, "  %s came and went meanwhile and heard %s: %s\n",
                 plural(churn.went, "subscriber").c_str(), plural(churn.heard, "event").c_str(),
                 kept
                     ? "none was called after it had gone"
                     : painted(colours, Colour::red,
                               plural(churn.called_late, "call") + " came late, " +
                                   plural(churn.kept_captures, "closure") + " outlived its reset()")
                           .c_str());
  }
  if (result.lost() > 0) {
    std::fprintf(to, "  %s\n",
                 painted(colours, Colour::red, "LOST: " + plural(result.lost(), "event")).c_str());
    return;
  }
  const std::string until = result.interrupted() ? " until it was interrupted" : "";
  std::fprintf(to, "  %s\n",
               painted(colours, Colour::green,
                       "zero loss: every event published" + until + " was delivered and heard")
                   .c_str());
}

}  // namespace

void print_replay_text(std::FILE* to, const ReplayCall& call, const ReplayResult& result) {
  const bool colours = coloured(to);
  std::string files = call.files.front() == "-" ? "standard input" : call.files.front();
  if (call.files.size() > 1) files += " and " + plural(call.files.size() - 1, "other");
  std::fprintf(
      to, "replayed %s %s, %s%s\n\n", files.c_str(), speed_text(call.options.speed).c_str(),
      plural(result.outcome.threads, "publishing thread").c_str(),
      call.options.loops > 1 ? (", " + std::to_string(call.options.loops) + " times").c_str() : "");
  if (result.played) print_table(to, result, colours);
  print_records(to, result);
  if (!result.played) return;
  std::fprintf(to, "  %s for a recording of %s: %s; %s parked %s and %s woken\n",
               duration_text(1e9 * result.seconds).c_str(),
               duration_text(static_cast<double>(result.recorded_ns)).c_str(),
               rate_text(static_cast<double>(result.delivered()) / result.seconds).c_str(),
               plural(result.workers, "worker").c_str(), plural(result.parks, "time").c_str(),
               plural(result.wakes, "time").c_str());
  if (call.options.speed > 0) {
    std::fprintf(to, "  at most %s later than recorded%s\n",
                 duration_text(static_cast<double>(result.outcome.late_ns_max)).c_str(),
                 result.outcome.cut_ns > 0
                     ? ("; pauses were cut by " + duration_text(result.outcome.cut_ns)).c_str()
                     : "");
  }
  print_verdict(to, result, colours);
}

void print_replay_json(std::FILE* to, const ReplayCall& call, const ReplayResult& result) {
  formats::JsonText json;
  json.open('{').key("records").open('{').key("read").number(result.counts.read);
  json.key("mapped").number(result.counts.read - result.counts.skipped_total());
  json.key("skipped").open('{');
  for (std::size_t i = 0; i < result.counts.skipped.size(); ++i) {
    if (result.counts.skipped[i] == 0) continue;
    json.key(to_string(static_cast<replay::Skip>(i))).number(result.counts.skipped[i]);
  }
  json.close('}').close('}').key("channels").open('{');
  for (const ChannelStats& c : result.channels) {
    json.key(c.name).open('{').key("offered").number(c.offered);
    json.key("delivered").number(c.delivered).key("dropped").open('{');
    for (const auto& [reason, n] : dropped_of(c)) json.key(reason).number(n);
    json.close('}').key("latency_ns").open('{');
    const std::pair<const char*, std::uint64_t> kLatencies[] = {{"p50", c.latency_p50_ns},
                                                                {"p90", c.latency_p90_ns},
                                                                {"p99", c.latency_p99_ns},
                                                                {"max", c.latency_max_ns}};
    for (const auto& [name, ns] : kLatencies) {
      json.key(name);
      c.latency_count == 0 ? json.null() : json.number(ns);
    }
    json.close('}').close('}');
  }
  const auto& churn = result.outcome.churn;
  json.close('}').key("seconds").number(result.seconds);
  json.key("events_per_second");
  json.number(result.seconds > 0 ? static_cast<double>(result.delivered()) / result.seconds : 0.0);
  json.key("workers").open('{').key("count").number(result.workers);
  json.key("parks").number(result.parks).key("wakes").number(result.wakes).close('}');
  json.key("subscribers").open('{').key("came").number(churn.came);
  json.key("went").number(churn.went).key("heard").number(churn.heard);
  json.key("called_late").number(churn.called_late);
  json.key("captures_kept").number(churn.kept_captures).close('}');
  json.key("events").open('{').key("to_publish").number(result.events);
  json.key("left_out").number(result.left_out).key("lost").number(result.lost()).close('}');
  json.key("threads").number(result.outcome.threads);
  json.key("threads_crowded").number(result.crowded);
  json.key("speed");
  call.options.speed == 0 ? json.text("max") : json.number(call.options.speed);
  json.key("order").text(call.options.order == replay::Order::thread ? "thread" : "recorded");
  json.key("loops").number(call.options.loops);
  json.key("recorded_seconds").number(static_cast<double>(result.recorded_ns) / 1e9);
  json.key("loading_seconds").number(result.loading_seconds);
  json.key("late_ns_max").number(result.outcome.late_ns_max);
  json.key("spilled_bytes").number(result.spilled_bytes);
  json.key("interrupted").boolean(result.interrupted()).key("faults").open('[');
  for (const std::string& sentence : result.sentences) json.text(sentence);
  json.close(']').close('}');
  std::fprintf(to, "%s\n", json.str().c_str());
}

}  // namespace ringmain::cli
