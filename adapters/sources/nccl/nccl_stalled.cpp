// What does the process wait for, for who asks at its door? Found in two looks through the table,
// of as many operations as one of them finds the steps of, the oldest first.
//
// It runs in the door's thread while any other may hang: no lock is taken, memory is had before the
// thread is inside and text is made after it has left, so that detach() never waits for more than
// the two looks.
#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "engine/system/clock.hpp"

#include "bus/fields.hpp"
#include "bus/json_text.hpp"

#include "adapters/sources/nccl/nccl_control.hpp"
#include "adapters/sources/nccl/nccl_waiting.hpp"

namespace ringmain::nccl {
namespace {

using formats::JsonText;

struct Row {
  Stalled said;
  OpenProxies proxies;
  bool by_kernels;
};

/// A communicator that is open, and how much of it is under way.
struct Group {
  Identity who;
  std::array<std::uint64_t, Words::kCount> sequences;  // one more than the newest; 0: none
  std::uint64_t last, last_p2p;                        // as Enqueued::what
  std::int64_t last_ns, last_p2p_ns;
  std::uint32_t waiting = 0, unseen = 0;
};

/// Which operation, so that the oldest are found without holding any.
struct Candidate {
  std::int64_t began_ns;
  engine::Token token;
};

/// Can its end be seen? Where it cannot, an operation that is over looks like one that hangs.
bool shows(const OperationPart& part) noexcept {
  if (part.by_kernels) return !part.symmetric || part.kernels_begun.get() != 0;
  return part.proxies_begun.get() != 0;
}

/// All that is found, and the room for it.
class Findings {
 public:
  enum : std::size_t { kRowsMax = 256 };

  Findings() : counts_(Communicators::kRoom) {
    oldest_.reserve(kRowsMax);
    rows_.reserve(kRowsMax);
    groups_.reserve(Communicators::kRoom);
  }

  /// Inside. Allocates nothing.
  void look(const Inside& in) noexcept {
    now_ns_ = engine::now_ns();
    followed_ = switchboard.followed.load();
    follows_ = in.to()->follow.load();
    since_ns_ = switchboard.followed_since_ns.load();
    Core& core = in.core();
    core.for_each_span([this](Pin& one) noexcept { sort_out(*one, one.token()); });
    std::sort(oldest_.begin(), oldest_.end(), [](const Candidate& a, const Candidate& b) {
      return a.token.place() < b.token.place();
    });
    const auto keep = [this, &core](const Waiting& one) noexcept {
      rows_.push_back({stalled_of(core, one, true, now_ns_), one.proxies,
                       one.operation->part.operation.by_kernels});
    };
    Waiters waiters(core, keep);
    for (const Candidate& one : oldest_) {
      Pin operation = core.spans.pin(one.token);
      if (!operation) continue;  // it has ended meanwhile
      const std::int64_t last_ns = last_heard_ns(*operation);
      waiters.add(std::move(operation), last_ns);
    }
    waiters.say_all();
    std::sort(rows_.begin(), rows_.end(), [](const Row& a, const Row& b) {
      return std::tie(a.said.since_ns, b.said.id) > std::tie(b.said.since_ns, a.said.id);
    });
    core.communicators.for_each_open(
        [this](engine::Token, const Communicators::Found& found) noexcept { add_group(found); });
  }

  void write(JsonText& json, const Core& core) const;

 private:
  struct PerCommunicator {
    std::uint32_t waiting = 0, unseen = 0;
  };

  void sort_out(const OpenSpan& span, engine::Token token) noexcept {
    if (span.kind() != abi::kColl && span.kind() != abi::kP2p) return;
    const OperationPart& part = span.part.operation;
    if (!part.followed() || (part.flags.get() & OperationPart::kEnded) != 0) return;
    if (is_quiet(part, last_heard_ns(span), now_ns_)) return;
    const bool can_be_seen = shows(part);
    if (span.of != nullptr) {
      PerCommunicator& its = counts_[span.of->number];
      ++(can_be_seen ? its.waiting : its.unseen);
    }
    if (!can_be_seen) return;
    ++under_way_;
    const auto is_older = [](const Candidate& a, const Candidate& b) {
      return a.began_ns < b.began_ns;
    };
    if (oldest_.size() == kRowsMax) {
      if (span.began_ns >= oldest_.front().began_ns) return;
      std::pop_heap(oldest_.begin(), oldest_.end(), is_older);
      oldest_.pop_back();
    }
    oldest_.push_back({span.began_ns, token});
    std::push_heap(oldest_.begin(), oldest_.end(), is_older);
  }

  void add_group(const Communicators::Found& found) noexcept {
    if (groups_.size() == groups_.capacity()) return;
    const Communicator& place = *found.place;
    Group& one = groups_.emplace_back();
    one.who = found.who;
    for (std::size_t word = 0; word < one.sequences.size(); ++word)
      one.sequences[word] = place.sequences[word].get();
    one.last = place.last.what.get();
    one.last_ns = place.last.at_ns.get();
    one.last_p2p = place.last_p2p.what.get();
    one.last_p2p_ns = place.last_p2p.at_ns.get();
    one.waiting = counts_[place.number].waiting;
    one.unseen = counts_[place.number].unseen;
  }

  std::int64_t now_ns_ = 0, since_ns_ = 0;
  Types followed_ = 0;
  bool follows_ = false;
  std::uint32_t under_way_ = 0;
  std::vector<Candidate> oldest_;
  std::vector<Row> rows_;
  std::vector<Group> groups_;
  std::vector<PerCommunicator> counts_;

  void write_group(JsonText& json, const Core& core, const Group& one) const;
};

/// What nobody can know is null: a step where none is open, kernels that NCCL was not asked for.
bool is_known(std::string_view field, const Row& row) noexcept {
  if (field == "peer") return row.said.peer != kNoRank;
  const bool has_step = row.said.open_steps != 0;
  if (field == "reading") return has_step || row.by_kernels;
  if (field == "begun_channels" || field == "ended_channels") return row.by_kernels;
  return has_step || (field != "last" && field != "step" && field != "nccl_channel");
}

struct WriteValue {
  JsonText& json;
  void operator()(std::string_view text) const { json.text(text); }
  void operator()(bool value) const { json.boolean(value); }
  void operator()(Enumerator value) const { json.text(value.word.value_or("")); }
  template <class T>
  requires std::is_arithmetic_v<T>
  void operator()(T value) const { json.number(value); }
};

void write_row(JsonText& json, const Row& row) {
  json.open('{');
  const FieldsView fields(schema<Stalled>(), reinterpret_cast<const std::byte*>(&row.said));
  for (const FieldView field : fields) {
    if (field.name() == "asked") continue;
    json.key(field.name());
    if (is_known(field.name(), row)) {
      field.visit(WriteValue{json});
    } else {
      json.null();
    }
  }
  json.key("open_proxies").number(row.proxies.count).key("proxies").open('[');
  const std::size_t shown = std::min<std::size_t>(row.proxies.count, row.proxies.first.size());
  for (std::size_t i = 0; i < shown; ++i) {
    const OpenProxies::One& one = row.proxies.first[i];
    json.open('{').key("nccl_channel").number(std::uint32_t{one.nccl_channel});
    json.key("peer").number(one.peer).key("send").boolean(one.send).close('}');
  }
  json.close(']').close('}');
}

void Findings::write_group(JsonText& json, const Core& core, const Group& one) const {
  json.open('{').key("group").text(one.who.group.view());
  json.key("communicator").number(one.who.id).key("rank").number(one.who.rank);
  json.key("ranks").number(one.who.ranks).key("nodes").number(one.who.nodes);
  json.key("waiting").number(one.waiting).key("unseen").number(one.unseen);
  const auto last = [&](const char* key, const char* number, std::uint64_t what, std::int64_t at) {
    json.key(key);
    if (what == 0) return (void)json.null();
    json.open('{').key("func").text(Words::text(static_cast<Word>(what & 0xff)));
    json.key(number).number(what >> 8).key("since_ns").number(now_ns_ - at).close('}');
  };
  last("last", "sequence", one.last, one.last_ns);
  last("last_point_to_point", "peer", one.last_p2p, one.last_p2p_ns);
  json.key("sequences").open('{');
  for (std::size_t word = 0; word < one.sequences.size(); ++word) {
    if (one.sequences[word] == 0) continue;
    json.key(core.words.name(static_cast<Word>(word)).view()).number(one.sequences[word] - 1);
  }
  json.close('}').close('}');
}

void Findings::write(JsonText& json, const Core& core) const {
  struct Kind {
    std::string_view name;
    Types types;
  };
  static constexpr Kind kKinds[] = {{"operations", abi::kColl | abi::kP2p},
                                    {"proxies", abi::kProxyOp},
                                    {"proxy_steps", abi::kProxyStep},
                                    {"kernel_channels", abi::kKernelCh}};
  const Types followed = follows_ ? followed_ : 0;
  json.open('{').key("source").text("nccl");
  for (const bool is_asked : {true, false}) {
    json.key(is_asked ? "asked_for" : "not_asked_for").open('[');
    for (const Kind& kind : kKinds) {
      if (((followed & kind.types) != 0) == is_asked) json.text(kind.name);
    }
    json.close(']');
  }
  json.key("asked_for_ns");
  followed == 0 || since_ns_ == 0 ? json.null() : json.number(now_ns_ - since_ns_);
  json.key("masked").boolean(switchboard.masked.load());
  json.key("no_room").number(core.counts.no_room.total());
  json.key("no_context").number(core.counts.no_context.total());
  json.key("communicators").open('[');
  for (const Group& one : groups_) write_group(json, core, one);
  json.close(']').key("operations").open('[');
  for (const Row& one : rows_) write_row(json, one);
  json.close(']')
      .key("left_out")
      .number(under_way_ - std::min<std::size_t>(rows_.size(), under_way_));
  json.close('}');
}

}  // namespace

bool tell_stalls(JsonText& json) {
  if (switchboard.to.load() == nullptr) return false;
  Findings found;
  const Core* core = nullptr;
  {
    const Inside in;
    if (!in || in.to() == nullptr) return false;
    core = &in.core();
    found.look(in);
  }
  found.write(json, *core);  // it is never freed
  return true;
}

}  // namespace ringmain::nccl
