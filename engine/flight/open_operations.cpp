#include "engine/flight/open_operations.hpp"

#include "engine/flight/record.hpp"

namespace ringmain::engine::flight {
namespace {

constexpr std::uint64_t state_of(std::uint64_t id) noexcept {
  return 2 * (id + 1);
}
constexpr std::uint64_t source_and_kind(const OpenOperation& operation) noexcept {
  return std::uint64_t{operation.source} | std::uint64_t{operation.kind} << 32;
}

}  // namespace

std::uint64_t sum_of_operation(std::uint64_t salt, const OpenOperation& operation) noexcept {
  Sum sum(salt);
  sum.add(operation.id, static_cast<std::uint64_t>(operation.time_ns));
  sum.add(source_and_kind(operation), operation.group);
  sum.add(operation.sequence, operation.bytes);
  return sum.value();
}

bool OpenOperations::open(const OpenOperation& operation) noexcept {
  const std::uint64_t state = state_of(operation.id);
  for (std::size_t i = 0; i < count_; ++i) {
    OperationPlace& place = places_[(operation.id + i) % count_];
    AtomicRef<std::uint64_t> word(place.state);
    std::uint64_t free = 0;
    if (word.load(std::memory_order_relaxed) != 0 ||  // relaxed: looked at again by what follows
        !word.compare_exchange_strong(free, state | 1, std::memory_order_acquire,  // z.opened
                                      std::memory_order_relaxed)) {
      continue;
    }
    AtomicRef<std::uint64_t> reach(counts_->operations_reach);
    // Relaxed: the id comes to who ends it by its own means, after open() has returned.
    std::uint64_t was = reach.load(std::memory_order_relaxed);
    while (was < i + 1 && !reach.compare_exchange_weak(
                              was, i + 1, std::memory_order_relaxed)) {  // relaxed: as above
    }
    const auto store = [](std::uint64_t& to, std::uint64_t value) noexcept {
      AtomicRef<std::uint64_t>(to).store(value, std::memory_order_release);  // z.opened
    };
    store(place.sum, sum_of_operation(salt_, operation));
    store(place.id, operation.id);
    AtomicRef<std::int64_t>(place.time_ns)
        .store(operation.time_ns, std::memory_order_release);  // z.opened
    store(place.source_and_kind, source_and_kind(operation));
    store(place.group, operation.group);
    store(place.sequence, operation.sequence);
    store(place.bytes, operation.bytes);
    word.store(state, std::memory_order_release);  // z.opened
    return true;
  }
  AtomicRef<std::uint64_t>(counts_->operations_left_out).fetch_add(1, std::memory_order_relaxed);
  return false;
}

bool OpenOperations::end(std::uint64_t id) noexcept {
  const std::uint64_t reach = AtomicRef<std::uint64_t>(counts_->operations_reach)
                                  .load(std::memory_order_relaxed);  // relaxed: as in open()
  for (std::size_t i = 0; i < reach && i < count_; ++i) {
    AtomicRef<std::uint64_t> word(places_[(id + i) % count_].state);
    std::uint64_t mine = state_of(id);
    if (word.load(std::memory_order_relaxed) == mine)  // relaxed: an id is given once
      return word.compare_exchange_strong(mine, 0, std::memory_order_release,  // z.opened
                                          std::memory_order_relaxed);
  }
  return false;
}

bool read_operation(const OperationPlace& copy, std::uint64_t state_after, std::uint64_t salt,
                    OpenOperation& operation) noexcept {
  if (copy.state != state_after || copy.state != state_of(copy.id)) return false;
  operation = {copy.id,
               copy.time_ns,
               static_cast<std::uint32_t>(copy.source_and_kind),
               static_cast<std::uint32_t>(copy.source_and_kind >> 32),
               copy.group,
               copy.sequence,
               copy.bytes};
  return sum_of_operation(salt, operation) == copy.sum;
}

}  // namespace ringmain::engine::flight
