#include "tests/adapters/cuda/hazards/oracle.hpp"

#include <map>
#include <set>

namespace ringmain::cuda::hazards {
namespace {

/// Each line is a node; an edge leads from what must be over to what begins after it.
class Graph {
 public:
  Graph(const Account& account, bool before_is_blocking) : before_(account.lines.size()) {
    for (std::size_t i = 0; i < account.lines.size(); ++i) {
      const Line& line = account.lines[i];
      if (line.what == What::stream_made && !(before_is_blocking && i < account.attached_at))
        aside_[line.stream] = !line.flag;
    }
    for (std::size_t i = 0; i < account.lines.size(); ++i) {
      if (!account.lines[i].captured) add(i, account.lines[i]);
    }
  }

  [[nodiscard]] bool leads(std::size_t from, std::size_t to) const {
    std::set<std::size_t> seen{to};
    std::vector<std::size_t> left{to};
    while (!left.empty()) {
      const std::size_t here = left.back();
      left.pop_back();
      if (here == from) return true;
      for (const std::size_t one : before_[here]) {
        if (seen.insert(one).second) left.push_back(one);
      }
    }
    return false;
  }

 private:
  void add(std::size_t i, const Line& line) {
    switch (line.what) {
      case What::stream_made:
      case What::clear:
        break;
      case What::record:
        put_on(i, line.stream);
        recorded_[line.event] = i;
        break;
      case What::wait:
        put_on(i, line.stream);
        if (recorded_.count(line.event) != 0) before_[i].insert(recorded_[line.event]);
        break;
      case What::access:
        put_on(i, line.stream);
        break;
      case What::begin_stream_wait:
        put_on(i, line.stream);
        waits_[line.thread] = {i};
        break;
      case What::begin_event_wait:
        waits_[line.thread] = {};
        if (recorded_.count(line.event) != 0) waits_[line.thread] = {recorded_[line.event]};
        break;
      case What::begin_device_wait:
        waits_[line.thread] = {};
        for (const auto& [stream, last] : last_) waits_[line.thread].insert(last);
        break;
      case What::end_wait:
        for (const std::size_t one : waits_[line.thread]) before_[i].insert(one);
        if (host_ != kNone) before_[i].insert(host_);
        host_ = i;
        break;
    }
  }
  void put_on(std::size_t i, int stream) {
    if (host_ != kNone) before_[i].insert(host_);
    for (const auto& [other, last] : last_) {
      const bool legacy = (stream == 0 && !aside_[other]) || (other == 0 && !aside_[stream]);
      if (other == stream || legacy) before_[i].insert(last);
    }
    last_[stream] = i;
  }

  static constexpr std::size_t kNone = ~std::size_t{0};
  std::vector<std::set<std::size_t>> before_;
  std::map<int, bool> aside_;  // streams that do not wait for the legacy one
  std::map<int, std::size_t> last_;
  std::map<int, std::size_t> recorded_;
  std::map<int, std::set<std::size_t>> waits_;  // of threads
  std::size_t host_ = kNone;
};

bool share(const Line& a, const Line& b) {
  return a.begin < b.end && b.begin < a.end;
}

}  // namespace

std::vector<Pair> judge(const Account& account, bool before_is_blocking) {
  const Graph graph(account, before_is_blocking);
  std::vector<std::size_t> accesses;
  for (std::size_t i = 0; i < account.lines.size(); ++i) {
    if (account.lines[i].what == What::access) accesses.push_back(i);
  }
  std::vector<Pair> pairs;
  for (std::size_t later = 0; later < accesses.size(); ++later) {
    for (std::size_t earlier = 0; earlier < later; ++earlier) {
      const std::size_t from = accesses[earlier], to = accesses[later];
      const Line &a = account.lines[from], &b = account.lines[to];
      if (a.captured || b.captured || a.stream == b.stream || !share(a, b)) continue;
      if (!a.flag && !b.flag) continue;
      bool cleared = false;
      for (std::size_t i = from; i < to; ++i) {
        const Line& between = account.lines[i];
        cleared =
            cleared || (between.what == What::clear && share(between, a) && share(between, b));
      }
      if (!cleared) pairs.push_back({earlier, later, !graph.leads(from, to)});
    }
  }
  return pairs;
}

}  // namespace ringmain::cuda::hazards
