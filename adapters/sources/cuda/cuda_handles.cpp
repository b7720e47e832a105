#include "adapters/sources/cuda/cuda_handles.hpp"

#include <algorithm>
#include <array>
#include <new>
#include <sys/mman.h>

namespace ringmain::cuda {
namespace {

// A place's word: 0 free, kTaken while somebody writes there, else the key and kLive.
enum : std::uint64_t { kTaken = 1, kLive = std::uint64_t{1} << 63, kAddressBits = 60 };

/// Class and address in one word, which is neither 0 nor kTaken; 0: the address is too large.
std::uint64_t key_of(HandleClass kind, std::uint64_t handle) noexcept {
  if (handle >> kAddressBits != 0) return 0;
  return (static_cast<std::uint64_t>(kind) + 1) << kAddressBits | handle;
}

/// The finaliser of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
std::uint64_t mixed(std::uint64_t n) noexcept {
  n = (n ^ n >> 30) * 0xbf58476d1ce4e5b9ull;
  n = (n ^ n >> 27) * 0x94d049bb133111ebull;
  return n ^ n >> 31;
}

}  // namespace

struct alignas(64) Handles::Set {
  std::array<std::atomic<std::uint64_t>, kWays> keys;
  std::array<std::atomic<std::uint64_t>, kWays>
      births;  // generation, and context in the lower half
  std::array<std::atomic<std::uint64_t>, kWays> bytes;
  std::atomic<std::uint32_t> floor;  // no handle that died here had a higher generation

  void raise_floor(std::uint32_t to) noexcept {
    std::uint32_t had = floor;
    while (had < to && !floor.compare_exchange_weak(had, to)) {
    }
  }
};

Handles::Handles(std::uint32_t room)
    : room_(room),
      sets_count_(std::max<std::uint64_t>(2, (std::uint64_t{room} + kWays - 1) / kWays)) {
  static_assert(sizeof(Set) <= 32 * kWays);
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
  void* const memory = ::mmap(nullptr, sets_count_ * sizeof(Set), PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  sets_ = static_cast<Set*>(memory);  // zeros are a table without handles
}
Handles::~Handles() {
  (void)::munmap(sets_, sets_count_ * sizeof(Set));
}

Handles::Set& Handles::home(std::uint64_t key, int choice) const noexcept {
  const std::uint64_t hash = mixed(key);
  const std::uint64_t first = (hash >> 32) * sets_count_ >> 32;
  if (choice == 0) return sets_[first];
  const std::uint64_t second = (hash & 0xffffffff) * (sets_count_ - 1) >> 32;
  return sets_[second < first ? second : second + 1];  // another than the first
}

Handles::Place Handles::place_of(std::uint64_t key) const noexcept {
  for (const int choice : {0, 1}) {
    Set& set = home(key, choice);
    for (std::size_t way = 0; way < kWays; ++way) {
      const std::uint64_t found = set.keys[way];
      if ((found & ~kLive) == key) return {&set, way, found};
    }
  }
  return {};
}

/// Nothing, if the place was given to another handle meanwhile.
Handles::Known Handles::read(const Place& place) noexcept {
  if (place.set == nullptr) return {};
  const std::uint64_t birth = place.set->births[place.way];
  const std::uint64_t bytes = place.set->bytes[place.way];
  // It can come back to this key only by a call for this handle, which does not overlap with ours.
  if (((place.set->keys[place.way] ^ place.key) & ~kLive) != 0) return {};
  return {static_cast<std::uint32_t>(birth >> 32), bytes, static_cast<std::uint32_t>(birth),
          (place.key & kLive) != 0};
}

/// Takes the place of a handle that comes again. It may be ended meanwhile, and is then still here:
/// a second place would hide behind this one. False: it was given to another handle.
bool Handles::take(Place& place) noexcept {
  const std::uint64_t key = place.key & ~kLive;
  while (!place.set->keys[place.way].compare_exchange_strong(place.key, kTaken)) {
    if ((place.key & ~kLive) != key) return false;
  }
  return true;
}

/// Takes a free place or one of a dead handle, whose generation the floor covers.
bool Handles::claim_in(Set& set, Place& place) noexcept {
  for (const bool dead_too : {false, true}) {
    for (std::size_t way = 0; way < kWays; ++way) {
      std::uint64_t had = set.keys[way];
      if (had == kTaken || (had & kLive) != 0 || (had != 0 && !dead_too)) continue;
      if (!set.keys[way].compare_exchange_strong(had, kTaken)) continue;
      place = {&set, way, had};
      return true;
    }
  }
  return false;
}

Handles::Place Handles::claim(std::uint64_t key) noexcept {
  std::array<Set*, 2> sets{&home(key, 0), &home(key, 1)};
  const auto live = [](const Set& set) {
    return std::count_if(set.keys.begin(), set.keys.end(),
                         [](std::uint64_t k) { return k == kTaken || (k & kLive) != 0; });
  };
  if (live(*sets[1]) < live(*sets[0])) std::swap(sets[0], sets[1]);
  Place place;
  for (Set* set : sets) {
    if (claim_in(*set, place)) break;
  }
  return place;
}

Handles::Known Handles::made(HandleClass kind, std::uint64_t handle, std::uint64_t bytes,
                             std::uint32_t context) noexcept {
  const std::uint64_t key = key_of(kind, handle);
  Place place = key == 0 ? Place{} : place_of(key);
  std::uint32_t generation = 0;
  bool used = true;  // the place had a handle before
  if (place.set != nullptr && take(place)) {
    generation = static_cast<std::uint32_t>(place.set->births[place.way] >> 32) + 1;
  } else if (key != 0) {
    place = claim(key);
    used = place.key != 0;
    // After the look for it: what this handle had in either set, it raised the floor to before.
    generation = std::max<std::uint32_t>(home(key, 0).floor, home(key, 1).floor) + 1;
  }
  if (place.set == nullptr) {
    ++unkept_;
    return {};
  }
  // Before it lives: end_all() may end it for the one that it found here.
  if (used) place.set->raise_floor(generation);
  place.set->births[place.way] = std::uint64_t{generation} << 32 | context;
  place.set->bytes[place.way] = bytes;
  place.set->keys[place.way] = key | kLive;
  return {generation, bytes, context, true};
}

Handles::Known Handles::find(HandleClass kind, std::uint64_t handle) const noexcept {
  const std::uint64_t key = key_of(kind, handle);
  return key == 0 ? Known{} : read(place_of(key));
}

Handles::Known Handles::gone(HandleClass kind, std::uint64_t handle) noexcept {
  const std::uint64_t key = key_of(kind, handle);
  Place place = key == 0 ? Place{} : place_of(key);
  const Known was = read(place);
  if (!was.live) return was;
  place.set->raise_floor(was.generation);
  (void)place.set->keys[place.way].compare_exchange_strong(place.key, key);
  return was;
}

void Handles::back(HandleClass kind, std::uint64_t handle) noexcept {
  const std::uint64_t key = key_of(kind, handle);
  const Place place = key == 0 ? Place{} : place_of(key);
  std::uint64_t dead = key;
  if (place.set == nullptr ||
      (!place.set->keys[place.way].compare_exchange_strong(dead, key | kLive) &&
       dead != (key | kLive)))
    ++unkept_;
}

template <class Which>
void Handles::end_all(Which which) noexcept {
  for (std::uint64_t s = 0; s < sets_count_; ++s) {
    Set& set = sets_[s];
    for (std::size_t way = 0; way < kWays; ++way) {
      Place place{&set, way, set.keys[way]};
      if ((place.key & kLive) == 0) continue;
      const Known was = read(place);
      if (was.generation == 0 || !which(place.key, was)) continue;
      set.raise_floor(was.generation);
      (void)set.keys[way].compare_exchange_strong(place.key, place.key & ~kLive);
    }
  }
}

void Handles::context_gone(std::uint32_t context) noexcept {
  end_all([context](std::uint64_t, const Known& was) { return was.context == context; });
}

void Handles::forget(HandleClass kind) noexcept {
  const std::uint64_t of_kind = key_of(kind, 0);
  end_all([of_kind](std::uint64_t key, const Known&) {
    return (key & ~kLive) >> kAddressBits == of_kind >> kAddressBits;
  });
}

}  // namespace ringmain::cuda
