#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "bus/core/erased.hpp"

#include "cli/post_mortem.hpp"
#include "cli/provider_names.hpp"

namespace ringmain::cli {
namespace {

using flight::RecordedEvent;

struct Copied {
  const std::byte* from;
  std::size_t bytes;
};
void copy(void* to, void* what) noexcept {
  const auto& event = *static_cast<const Copied*>(what);
  std::memcpy(to, event.from, event.bytes);
}

/// The events of one dump's publisher of a channel, in one lane, so that they have one publisher
/// here too.
class Lanes {
 public:
  explicit Lanes(Bus& bus) : bus_(bus) {}
  Lanes(const Lanes&) = delete;
  Lanes& operator=(const Lanes&) = delete;
  ~Lanes() {
    for (const auto& [whose, lane] : lanes_) detail::give_back(*lane);
  }
  std::string publish(std::size_t dump, const RecordedEvent& one) {
    const auto [at, first] =
        lanes_.try_emplace({dump, one.stamp.publisher, std::string(one.channel)}, nullptr);
    if (first) {
      auto channel = detail::Erased::core(bus_).channel(one.channel, *one.schema, nullptr);
      if (!channel) return lanes_.erase(at), channel.error().message;
      auto lane = detail::take_lane(*channel.value(), {.overflow = Overflow::block,
                                                       .block_us_max = std::chrono::hours(1),
                                                       .source_time = true});
      if (!lane) return lanes_.erase(at), lane.error().message;
      at->second = lane.value();
    }
    Copied event{one.event, one.bytes};
    (void)detail::push_at(*at->second, &copy, &event, one.stamp.time_ns);
    return "";
  }

 private:
  Bus& bus_;
  std::map<std::tuple<std::size_t, std::uint32_t, std::string>, engine::Lane*> lanes_;
};

/// In the order of their times, which a sink gets of each publisher. What a guard refused was an
/// event to nobody. `f(number of the dump, event)`
template <class F>
void in_order(const std::vector<flight::RingDump>& dumps, F f) {
  std::vector<std::pair<std::size_t, const RecordedEvent*>> all;
  for (std::size_t i = 0; i < dumps.size(); ++i) {
    for (const flight::RecordedRing& ring : dumps[i].rings()) {
      for (const RecordedEvent& one : ring.events) {
        const bool told = one.schema != nullptr && !one.channel.empty();
        if (told && one.code != PublishCode::vetoed) all.emplace_back(i, &one);
      }
    }
  }
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return a.second->stamp.time_ns < b.second->stamp.time_ns;
  });
  for (const auto& [dump, one] : all) f(dump, *one);
}

}  // namespace

std::string post_mortem_to_sinks(const std::vector<flight::RingDump>& dumps,
                                 const std::vector<std::string>& sinks) {
  std::string fault;
  Bus bus;
  std::vector<registry::SinkHandle> open;
  for (const std::string& sink : sinks) {
    auto opened = known_providers().open_sink(sink);
    if (!opened) return opened.error().message;
    open.push_back(std::move(opened).value());
    if (auto attached = open.back().attach(bus); !attached) return attached.error().message;
  }
  {
    Lanes lanes(bus);
    enum : std::size_t { kAtOnce = 8192 };  // a sink's mailbox takes some more
    std::size_t published = 0;
    in_order(dumps, [&](std::size_t dump, const RecordedEvent& one) {
      std::string why = lanes.publish(dump, one);
      if (fault.empty()) fault = std::move(why);
      if (++published % kAtOnce != 0) return;
      (void)bus.flush(nanoseconds(-1));
      for (auto& sink : open) sink.flush();
    });
  }
  (void)bus.flush(nanoseconds(-1));
  for (auto& sink : open) {
    if (auto closed = sink.close(); !closed && fault.empty()) fault = closed.error().message;
  }
  return fault;
}

}  // namespace ringmain::cli
