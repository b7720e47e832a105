// How do several workers share a channel's work and keep the order where it matters? By a key: one
// subscriber on the channel sorts events into mailboxes, and each mailbox keeps its order.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "callback.hpp"
#include "options.hpp"
#include "result.hpp"
#include "subscription.hpp"

namespace ringmain {

/// A member of the event, or a function of it, that std::hash takes.
template <class K, class E>
concept PartitionKey = std::invocable<K&, const E&> && std::is_default_constructible_v<
    std::hash<std::remove_cvref_t<std::invoke_result_t<K&, const E&>>>>;

namespace detail {

class Parts;  // the mailboxes, as the sorter sees them
struct FreeParts {
  void operator()(Parts* parts) const noexcept;
};
using PartsPtr = std::unique_ptr<Parts, FreeParts>;

/// refused: n is 0 or more than 1024, or the channel delivers in parallel. Throws std::bad_alloc.
[[nodiscard]] Result<PartsPtr> make_parts(engine::ChannelCore& channel, std::size_t n,
                                          const SubscribeOptions& options);
/// The subscriber of the next mailbox; taken over. Throws std::bad_alloc.
void add_part(Parts& parts, engine::Subscriber* consumer);
void feed_part(Parts& parts, std::size_t part, const engine::Run& run, std::uint32_t i) noexcept;
/// Attaches `sorter`, whose captures hold `parts`, and takes it over. Throws std::bad_alloc.
[[nodiscard]] Subscription attach_parts(engine::ChannelCore& channel, Parts& parts,
                                        engine::Subscriber* sorter, SubscribeOptions options);

/// std::hash of an integer is the integer, so keys that step by n would all get into one mailbox
/// without this.
constexpr std::size_t spread(std::uint64_t hash, std::size_t n) noexcept {
  hash = (hash ^ (hash >> 33)) * 0xff51afd7ed558ccdull;
  hash = (hash ^ (hash >> 33)) * 0xc4ceb9fe1a85ec53ull;
  hash ^= hash >> 33;
  return static_cast<std::size_t>(hash % n);
}

template <class E, class K>
struct SortIntoParts {
  static constexpr bool wants_time() { return false; }
  K key;
  std::size_t n;
  PartsPtr parts;
  void operator()(engine::Subscriber& s, const engine::Run& run) noexcept {
    for_each_event(s, run, [&](std::size_t i) {
      const auto of = std::invoke(key, event_of<E>(run, i));
      const std::size_t part = spread(std::hash<std::remove_cvref_t<decltype(of)>>{}(of), n);
      feed_part(*parts, part, run, static_cast<std::uint32_t>(i));
      return true;
    });
  }
};

}  // namespace detail
}  // namespace ringmain
