// Which of what was opened is open still? Each ends once, whoever says it first.
//
// A bounded table from ids to a few words of facts. An id is used once, a place again and again.
// The key of a place says whose it is and whether it has begun; who changes it from "open" or
// "begun" to "ending" tells the end. A second word says when it has begun: until then it holds the
// id, so that who comes too late, when the place belongs to another id, changes nothing. A third
// one is its opener's: it opens before it says the id to anybody, so that no end comes too early,
// and writes there once it has, so that who looks for all that is open ends nothing that nobody
// knows of. What has ended before that is "left": its place is used again once the opener has
// written. An id lies in a place of its own, which is one of few for ids that follow each other, so
// that a thread that opens and ends one after another meets the same lines; where that is taken, in
// one of two sets of 16 places, in the emptier one. Model, in which any place will do:
// tests/model/open_table.pml.
#pragma once
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "atomics.hpp"
#include "cache_line.hpp"

namespace ringmain::engine {

/// Threads: any, with any ids at once. Progress: wait-free but for the race for a place, which is
/// given up after its own place and every one of both sets was tried: no lock, no allocation, no
/// system call.
template <class Facts>
requires(std::is_trivially_copyable_v<Facts> &&
         sizeof(Facts) % sizeof(std::uint64_t) == 0) class OpenTable {
  enum : std::size_t { kWays = 16, kWords = sizeof(Facts) / sizeof(std::uint64_t) };
  enum : std::uint64_t { kFree = 0, kWriting = 1 };
  struct Data {
    Atomic<std::uint64_t> begun{0};
    Atomic<std::uint64_t> told{0};  // the id of which its opener has told
    std::array<Atomic<std::uint64_t>, kWords> words{};
  };
  struct alignas(kLineBytes) Set {
    std::array<Atomic<std::uint64_t>, kWays> keys{};
    std::array<Data, kWays> data{};
  };
  struct Place {
    Set* set = nullptr;
    std::size_t way = 0;
    [[nodiscard]] Atomic<std::uint64_t>& key() const noexcept { return set->keys[way]; }
  };

 public:
  enum : std::uint64_t { kStateBits = 2, kIdMax = ~std::uint64_t{0} >> kStateBits };

  /// `room`: how many may be open at once, rounded up to a power of two; there are twice as many
  /// places, so that both sets of an id are seldom full before. Throws std::bad_alloc.
  explicit OpenTable(std::size_t room)
      : sets_count_(2 * std::bit_ceil(room < kWays ? std::size_t{kWays} : room) / kWays),
        sets_(std::make_unique<Set[]>(sets_count_)) {}
  OpenTable(const OpenTable&) = delete;
  OpenTable& operator=(const OpenTable&) = delete;

  /// Room for one; no thread finds it yet.
  class Room {
   public:
    /// False: there is none, or the id is 0 or above kIdMax.
    explicit operator bool() const noexcept { return place_.set != nullptr; }

   private:
    friend class OpenTable;
    Place place_;
  };
  /// Takes room for it, which open() uses. Once for each id. A read-modify-write, which waits for
  /// the thread's stores before it: the sooner the better.
  [[nodiscard]] Room take_room(std::uint64_t id) noexcept {
    Room room;
    if (id != 0 && id <= kIdMax) room.place_ = claim(id);
    return room;
  }
  /// From here on it is open, in the room that was taken for it, for who knows its id; tell() has
  /// to follow.
  void open(const Room& room, std::uint64_t id, const Facts& facts) noexcept {
    const Place place = room.place_;
    Data& data = place.set->data[place.way];
    write(data, facts);
    data.begun.store(tag_of(id), std::memory_order_release);     // o.facts
    place.key().store(open_key(id), std::memory_order_release);  // o.opened
  }
  /// All who were to hear of it first have: from here on for_each() finds it, if it is open. By the
  /// thread that opened it. A store, and nothing waits for it.
  void tell(const Room& room, std::uint64_t id) noexcept {
    room.place_.set->data[room.place_.way].told.store(id, std::memory_order_release);  // o.told
  }
  /// All three. False: there is no room, and nobody finds it.
  [[nodiscard]] bool open(std::uint64_t id, const Facts& facts) noexcept {
    const Room room = take_room(id);
    if (!room) return false;
    open(room, id, facts);
    tell(room, id);
    return true;
  }
  /// What it is; nothing: it is not open.
  [[nodiscard]] std::optional<Facts> find(std::uint64_t id) const noexcept {
    const Place place = place_of(id);
    if (place.set == nullptr) return {};
    Facts facts;
    read(place.set->data[place.way], facts);
    if (!is_open(place.key().load(std::memory_order_acquire), id)) return {};  // o.opened
    return facts;
  }
  /// Says that it has begun, `at` > 0 in any unit. What it is, for the first such call; nothing for
  /// every other, and for what is not open.
  [[nodiscard]] std::optional<Facts> begin(std::uint64_t id, std::int64_t at) noexcept {
    const Place place = place_of(id);
    if (place.set == nullptr) return {};
    Data& data = place.set->data[place.way];
    Facts facts;
    read(data, facts);
    std::uint64_t tag = tag_of(id);
    if (!data.begun.compare_exchange_strong(tag, static_cast<std::uint64_t>(at),
                                            std::memory_order_acq_rel))  // o.facts
      return {};
    std::uint64_t key = open_key(id);  // if it is open still, what was read are this id's words
    if (!place.key().compare_exchange_strong(key, begun_key(id),
                                             std::memory_order_acq_rel))  // o.opened
      return {};
    return facts;
  }
  /// When it began, as begin() was told, and 0 if it has not; nothing: it is not open.
  [[nodiscard]] std::optional<std::int64_t> begun_at(std::uint64_t id) const noexcept {
    const Place place = place_of(id);
    if (place.set == nullptr) return {};
    const std::uint64_t before = place.key().load(std::memory_order_acquire);  // o.opened
    const std::uint64_t begun =
        place.set->data[place.way].begun.load(std::memory_order_acquire);      // o.facts
    if (!is_open(place.key().load(std::memory_order_acquire), id)) return {};  // o.opened
    return before == begun_key(id) ? static_cast<std::int64_t>(begun) : 0;
  }
  /// Its words are written once, where the caller finds them: filling them with zeros before, or
  /// copying them afterwards by loads that are wider than the stores were, takes longer than all
  /// the rest.
  struct Ended {
    Ended() noexcept {}  // `facts` is what end() reads
    union {
      Facts facts;
    };
    std::int64_t begun_at = 0;  // what begin() said; 0: it had not begun
  };
  /// True for the one call that ends it, and `ended` is what it was; false for every other.
  [[nodiscard]] bool end(std::uint64_t id, Ended& ended) noexcept {
    const Place place = place_of(id);
    if (place.set == nullptr) return false;
    std::uint64_t key = place.key().load(std::memory_order_acquire);  // o.opened
    do {  // twice at most: it begins once
      if (!is_open(key, id)) return false;
    } while (!place.key().compare_exchange_strong(key, ending_key(id),
                                                  std::memory_order_acq_rel));  // o.opened
    Data& data = place.set->data[place.way];
    ended.begun_at = 0;
    if (key == begun_key(id)) [[unlikely]]
      ended.begun_at =
          static_cast<std::int64_t>(data.begun.load(std::memory_order_acquire));  // o.facts
    read(data, ended.facts);
    const bool told = data.told.load(std::memory_order_acquire) == id;  // o.told
    // o.opened: the words are read
    place.key().store(told ? std::uint64_t{kFree} : left_key(id), std::memory_order_release);
    return true;
  }
  /// The same; nothing for every other.
  [[nodiscard]] std::optional<Ended> end(std::uint64_t id) noexcept {
    Ended ended;
    if (end(id, ended)) return ended;
    return {};
  }
  /// `f(id, facts)` for each that was told before the call and is open until its end, and for some
  /// others that were told.
  template <class F>
  void for_each(F f) const {
    for (std::size_t s = 0; s < sets_count_; ++s) {
      for (std::size_t way = 0; way < kWays; ++way) {
        const Place place{&sets_[s], way};
        const std::uint64_t key = place.key().load(std::memory_order_acquire);  // o.opened
        const std::uint64_t id = key >> kStateBits;
        if (id == 0 || !is_open(key, id)) continue;
        if (sets_[s].data[way].told.load(std::memory_order_acquire) != id) continue;  // o.told
        Facts facts;
        read(sets_[s].data[way], facts);
        if (is_open(place.key().load(std::memory_order_acquire), id)) f(id, facts);  // o.opened
      }
    }
  }
  [[nodiscard]] std::size_t places() const noexcept { return sets_count_ * kWays; }
  /// Memory of one place, in bytes.
  [[nodiscard]] static constexpr std::size_t bytes_each() noexcept { return sizeof(Set) / kWays; }

 private:
  static constexpr std::uint64_t open_key(std::uint64_t id) noexcept { return id << kStateBits; }
  static constexpr std::uint64_t ending_key(std::uint64_t id) noexcept { return open_key(id) | 1; }
  static constexpr std::uint64_t begun_key(std::uint64_t id) noexcept { return open_key(id) | 2; }
  static constexpr std::uint64_t left_key(std::uint64_t id) noexcept { return open_key(id) | 3; }
  static constexpr bool is_left(std::uint64_t key) noexcept { return (key & 3) == 3; }
  static constexpr bool is_open(std::uint64_t key, std::uint64_t id) noexcept {
    return key == open_key(id) || key == begun_key(id);
  }
  static constexpr std::uint64_t tag_of(std::uint64_t id) noexcept {
    return id | (std::uint64_t{1} << 63);  // no time
  }
  /// Odd multipliers spread consecutive ids; the two sets of an id may be one.
  [[nodiscard]] Set& home(std::uint64_t id, int choice) const noexcept {
    const std::uint64_t mixed = id * (choice == 0 ? 0x9e3779b97f4a7c15u : 0xc2b2ae3d27d4eb4fu);
    return sets_[(mixed >> 32) & (sets_count_ - 1)];
  }
  /// One of 64 for all of 2^16 ids that follow each other, as a thread reserves them.
  [[nodiscard]] Place own(std::uint64_t id) const noexcept {
    const std::uint64_t mixed = (id >> 16) * 0x9e3779b97f4a7c15u >> 32;
    return {&sets_[(mixed * 4 + (id >> 4) % 4) & (sets_count_ - 1)], id % kWays};
  }
  [[nodiscard]] Place place_of(std::uint64_t id) const noexcept {
    if (id == 0 || id > kIdMax) return {};
    if (const Place mine = own(id);
        is_open(mine.key().load(std::memory_order_acquire), id))  // o.opened
      return mine;
    return hashed_place_of(id);
  }
  [[nodiscard, gnu::noinline]] Place hashed_place_of(std::uint64_t id) const noexcept {
    for (int choice = 0; choice < 2; ++choice) {
      Set& set = home(id, choice);
      for (std::size_t way = 0; way < kWays; ++way) {
        if (is_open(set.keys[way].load(std::memory_order_acquire), id))  // o.opened
          return {&set, way};
      }
    }
    return {};
  }
  [[nodiscard]] static std::size_t free_ways(const Set& set) noexcept {
    std::size_t free = 0;
    for (const auto& key : set.keys) {
      // Relaxed: a guess that spreads ids.
      if (key.load(std::memory_order_relaxed) == kFree) ++free;
    }
    return free;
  }
  [[nodiscard]] Place claim(std::uint64_t id) const noexcept {
    const Place mine = own(id);
    return take(mine) ? mine : hashed_claim(id);
  }
  [[nodiscard]] static bool take(const Place& place) noexcept {
    std::uint64_t key = kFree;
    // o.opened: the last one's words are read
    if (place.key().compare_exchange_strong(key, kWriting, std::memory_order_acq_rel)) return true;
    return is_left(key) && take_left(place, key);
  }
  /// The opener of what was there has written its last word, or will: then it is its place still.
  [[nodiscard, gnu::noinline]] static bool take_left(const Place& place,
                                                     std::uint64_t key) noexcept {
    const auto& told = place.set->data[place.way].told;
    return told.load(std::memory_order_acquire) == key >> kStateBits &&  // o.told
           place.key().compare_exchange_strong(key, kWriting,
                                               std::memory_order_acq_rel);  // o.opened
  }
  [[nodiscard, gnu::noinline]] Place hashed_claim(std::uint64_t id) const noexcept {
    Set* first = &home(id, 0);
    Set* second = &home(id, 1);
    if (free_ways(*second) > free_ways(*first)) std::swap(first, second);
    for (Set* const set : {first, second}) {
      for (std::size_t way = 0; way < kWays; ++way) {
        if (take({set, way})) return {set, way};
      }
    }
    return {};
  }
  // Word by word, as the caller's fields are: a load that is wider than the stores it reads from
  // waits for them.
  static void write(Data& data, const Facts& facts) noexcept {
#pragma GCC unroll 16
    for (std::size_t i = 0; i < kWords; ++i) {
      std::uint64_t word = 0;
      std::memcpy(&word, reinterpret_cast<const std::byte*>(&facts) + i * sizeof word, sizeof word);
      data.words[i].store(word, std::memory_order_release);  // o.facts
    }
  }
  /// Words of two ids, if the place changes hands meanwhile: its key or `begun` tells.
  static void read(const Data& data, Facts& facts) noexcept {
#pragma GCC unroll 16
    for (std::size_t i = 0; i < kWords; ++i) {
      const std::uint64_t word = data.words[i].load(std::memory_order_acquire);  // o.facts
      std::memcpy(reinterpret_cast<std::byte*>(&facts) + i * sizeof word, &word, sizeof word);
    }
  }

  std::size_t sets_count_;
  std::unique_ptr<Set[]> sets_;
};

}  // namespace ringmain::engine
