#include "ringmain/bus/herald.hpp"

#include <algorithm>
#include <array>
#include <limits>

namespace ringmain::detail {
namespace {

template <class... E>
constexpr std::array<BusHerald::Own, sizeof...(E)> list(const std::tuple<Voice<E>...>*) {
  return {{{Voice<E>::name(), &schema<E>}...}};
}

}  // namespace

std::span<const BusHerald::Own> BusHerald::own() noexcept {
  static constexpr auto kOwn = list(static_cast<const Voices*>(nullptr));
  return kOwn;
}

bool BusHerald::is_own(std::string_view name, const Schema& schema) noexcept {
  return std::any_of(own().begin(), own().end(), [&](const Own& o) {
    return o.name == name && o.schema().hash == schema.hash;
  });
}

void BusHerald::channel_made(engine::ChannelCore& channel) noexcept {
  std::apply([&channel](auto&... voice) { (voice.offer(channel), ...); }, voices_);
}

void BusHerald::slow(const engine::SlowTurn& turn) noexcept {
  if (!voice<SlowSubscriber>().wanted()) return;
  (void)voice<SlowSubscriber>().say(
      {Name(turn.subscriber), Name(turn.channel), turn.running_ns, turn.budget_ns});
}

bool BusHerald::lost(const engine::ChannelCore& channel, const engine::Losses& counts,
                     std::int64_t first_ns, std::int64_t last_ns) noexcept {
  if (!voice<LossNotice>().wanted()) return false;
  const LossNotice notice{.channel = Name(channel.options().name),
                          .mailbox = channel.options().mailbox,
                          .full = counts.full,
                          .no_memory = counts.no_memory,
                          .too_deep = counts.too_deep,
                          .evicted = counts.evicted,
                          .first_ns = first_ns,
                          .last_ns = last_ns};
  return voice<LossNotice>().say(notice) == PublishCode::accepted;
}

void BusHerald::round(std::uint32_t, std::int64_t) noexcept {}

std::int64_t BusHerald::due_ns() const noexcept {
  return std::numeric_limits<std::int64_t>::max();
}

}  // namespace ringmain::detail
