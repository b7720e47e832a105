// Which communicator does a context stand for? NCCL hands back what init() gave it, perhaps after
// finalize() (shared proxies), perhaps in another process (PXN): so a context is a token.
//
// Places are made when they are first needed and never freed; a finalized communicator's stays as
// it was, a tombstone, until the table has gone round.
#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "engine/system/figure.hpp"
#include "engine/system/numbering.hpp"
#include "engine/system/token_slab.hpp"

#include "bus/text.hpp"

#include "adapters/sources/nccl/nccl_gpu_clock.hpp"
#include "adapters/sources/nccl/nccl_words.hpp"

namespace ringmain::nccl {

enum : std::size_t { kChainMax = 3 };

/// A ring of tokens: the newest takes the place of the oldest, which is handed out. One that was
/// taken or handed out leaves its number there, which is no token; so a number whose token has not
/// come yet is told apart from one that is gone.
template <std::size_t kRoom>
class TokenRing {
 public:
  /// Where it lies, and what lay there: perhaps no token.
  struct Put {
    std::uint32_t number;
    engine::Token oldest;
  };
  Put put(engine::Token token) noexcept {
    const std::uint32_t number = next_.fetch_add(1);
    return {number, engine::Token(at(number).exchange(token.bits()))};
  }
  void take(std::uint32_t number, engine::Token token) noexcept {
    std::uint64_t was = token.bits();
    at(number).compare_exchange_strong(was, gone(number));
  }
  [[nodiscard]] engine::Token look(std::uint32_t number) noexcept {
    return engine::Token(at(number).load());
  }
  /// Of what look(number) found: it was taken, or handed out, or so was a later one there.
  [[nodiscard]] static bool is_gone(engine::Token found, std::uint32_t number) noexcept {
    if (found.bits() >> 32 != gone(0) >> 32) return false;
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(found.bits()) - number) >= 0;
  }
  /// The oldest of those that came before the last `room`; no token: it was taken. False: there is
  /// none, or others may hand it out.
  [[nodiscard]] bool oldest_beyond(std::uint32_t newest, std::uint32_t room,
                                   engine::Token& oldest) noexcept {
    std::uint32_t first = first_.get();
    const auto held = static_cast<std::int32_t>(newest - first);
    if (held < 0) return false;
    constexpr auto kAll = static_cast<std::uint32_t>(kRoom);
    if (held >= static_cast<std::int32_t>(kRoom)) first = newest - (kAll - 1);
    if (newest - first < room) return false;
    first_.set(first + 1);
    oldest = engine::Token(at(first).exchange(gone(first)));
    return true;
  }
  [[nodiscard]] static constexpr std::uint32_t room() noexcept { return kRoom; }
  /// `f(token)` of what lies there, tokens or not.
  template <class F>
  void for_each(F f) {
    for (const auto& place : places_) f(engine::Token(place.load()));
  }

 private:
  /// A table's tokens have the highest bit of its cookie, and what was never put is 0.
  static constexpr std::uint64_t gone(std::uint32_t number) noexcept {
    return std::uint64_t{1} << 32 | number;
  }
  std::atomic<std::uint64_t>& at(std::uint32_t number) noexcept { return places_[number % kRoom]; }
  std::atomic<std::uint32_t> next_{0};
  engine::Figure<std::uint32_t> first_;  // those before have been handed out
  std::array<std::atomic<std::uint64_t>, kRoom> places_{};
};

/// Spans that were begun, and those that are out of the table. Exact for who is told of both.
struct Tally {
  engine::Numbering begun, out;
  /// Out is read first: none is out that has not begun.
  [[nodiscard]] bool any_open() noexcept {
    const std::uint64_t gone = out.total();
    return begun.total() != gone;
  }
};

/// Which communicator it is: as init() was told.
struct Identity {
  std::uint64_t id = 0;
  std::int32_t rank = 0;
  std::int32_t ranks = 0;
  std::int32_t nodes = 0;
  std::int32_t abi = 0;
  Name group;
};

/// The last operation that was begun to be enqueued.
struct Enqueued {
  engine::Figure<std::uint64_t> what;  // its number or peer above 8 bits of its Word; 0: none
  engine::Figure<std::int64_t> at_ns;
  void set(Word func, std::uint64_t number, std::int64_t now_ns) noexcept {
    what.set(number << 8 | func);
    at_ns.set(now_ns);
  }
};

struct Communicator {
  enum State : std::uint64_t { kNone = 0, kOpen = 1, kFinalized = 2 };
  // The tenant's number above two bits of State.
  std::atomic<std::uint64_t> word{0};
  std::size_t number = 0;  // of its place
  // Written by init() before `word`; a reader looks at `word` again.
  std::atomic<std::uint64_t> id{0};
  std::atomic<std::uint64_t> rank_and_ranks{0};
  std::atomic<std::uint64_t> nodes_and_abi{0};
  std::atomic<Name> group{};
  std::array<std::atomic<void*>, kChainMax> chained{};  // the chained plugins' contexts
  int* mask = nullptr;                                  // only under the control's lock
  std::atomic<bool> unswept{false};  // what it left open is still there: it is nobody else's yet

  TokenRing<1024> apis;                  // calls that are over and whose operation has not begun
  TokenRing<512> waiting;                // operations whose end is waited for
  engine::Figure<std::uint32_t> oldest;  // no operation before it is waited for
  std::array<engine::Figure<std::uint64_t>, 64>
      kernel_ended{};  // the last stamp on an NCCL channel
  GpuClock clock;
  Tally spans;
  // By function, one more than the newest sequence number: a graph's replay has an old one.
  std::array<engine::Figure<std::uint64_t>, Words::kCount> sequences;
  Enqueued last, last_p2p;

  void note_enqueued(Word func, std::uint64_t sequence, std::int64_t now_ns) noexcept {
    sequences[func].at_least(sequence + 1);
    last.set(func, sequence, now_ns);
  }
};
static_assert(sizeof(Communicator) <= 16 * 1024);

/// Threads: open() and close() one at a time, under the control's lock; find() any.
class Communicators {
 public:
  enum : std::size_t { kRoom = 512 };

  explicit Communicators(std::uint32_t cookie) noexcept : cookie_(cookie) {}

  /// Allocates. {}: as many are open as there is room for.
  [[nodiscard]] engine::Token open(const Identity& who, int* mask) {
    for (std::size_t i = 0; i < kRoom; ++i) {
      const std::size_t at = next_++ % kRoom;
      Communicator* place = places_[at].load();
      if (place == nullptr) {
        place = new Communicator;
        place->number = at;
        places_[at].store(place);
      }
      const std::uint64_t was = place->word.load();
      if ((was & 3) == Communicator::kOpen || place->unswept) continue;
      const auto tenant =
          static_cast<std::uint32_t>((was >> 2) + 1) & ((1u << engine::Token::kTenantBits) - 1);
      place->word.store(std::uint64_t{tenant} << 2);
      place->id.store(who.id);
      place->rank_and_ranks.store(two(who.rank, who.ranks));
      place->nodes_and_abi.store(two(who.nodes, who.abi));
      place->group.store(who.group);
      place->mask = mask;
      place->clock.forget();
      for (auto& ended : place->kernel_ended) ended.set(0);
      for (auto& newest : place->sequences) newest.set(0);
      place->last.set(0, 0, 0);
      place->last_p2p.set(0, 0, 0);
      place->word.store(std::uint64_t{tenant} << 2 | Communicator::kOpen);
      (void)opened_.add(1);
      (void)openings_.add(1);
      return {cookie_, tenant, at};
    }
    return {};
  }
  /// The communicator, which is a tombstone from here on; nullptr: it is not open.
  Communicator* close(engine::Token token) noexcept {
    Found found = find(token);
    if (found.place == nullptr || !found.open) return nullptr;
    found.place->word.store(std::uint64_t{token.tenant()} << 2 | Communicator::kFinalized);
    (void)opened_.add(~std::uint32_t{0});  // one less
    return found.place;
  }
  /// How many are open.
  [[nodiscard]] std::uint32_t opened() const noexcept { return opened_.get(); }
  /// How many have been opened. What a thread does with one comes after it was counted.
  [[nodiscard]] std::uint64_t openings() const noexcept { return openings_.get(); }
  struct Found {
    Communicator* place = nullptr;  // nullptr: there is none
    Identity who{};
    bool open = false;
  };
  /// Also of one that was finalized. Progress: wait-free.
  [[nodiscard]] Found find(engine::Token token) const noexcept {
    Found found;  // made where the caller has it: copying it on takes longer than all the rest
    if (token.cookie() != cookie_ || token.place() >= kRoom) return found;
    Communicator* const place = places_[token.place()].load();
    if (place == nullptr) return found;
    const std::uint64_t word = place->word.load();
    if (word >> 2 != token.tenant() || (word & 3) == Communicator::kNone) return found;
    found.open = (word & 3) == Communicator::kOpen;
    found.who.id = place->id.load();
    const std::uint64_t ranks = place->rank_and_ranks.load();
    const std::uint64_t nodes = place->nodes_and_abi.load();
    found.who.group = place->group.load();
    found.who.rank = first(ranks);
    found.who.ranks = second(ranks);
    found.who.nodes = first(nodes);
    found.who.abi = second(nodes);
    // Another communicator's words were read if the place has changed hands meanwhile.
    if (place->word.load() >> 2 == token.tenant()) found.place = place;
    return found;
  }
  /// Its place alone, also of one that was finalized; nullptr: there is none.
  [[nodiscard]] Communicator* place_of(engine::Token token) const noexcept {
    if (token.cookie() != cookie_ || token.place() >= kRoom) return nullptr;
    Communicator* const place = places_[token.place()].load();
    if (place == nullptr) return nullptr;
    const std::uint64_t word = place->word.load();
    const bool there = word >> 2 == token.tenant() && (word & 3) != Communicator::kNone;
    return there ? place : nullptr;
  }
  /// The token of who has that place, or had it last.
  [[nodiscard]] std::uint64_t token_of_place(const Communicator& of) const noexcept {
    const auto tenant = static_cast<std::uint32_t>(of.word.load() >> 2);
    return engine::Token(cookie_, tenant, of.number).bits();
  }
  [[nodiscard]] bool is_open(engine::Token token) const noexcept {
    const Communicator* const place = place_of(token);
    return place != nullptr && (place->word.load() & 3) == Communicator::kOpen;
  }
  /// `f(place)` for each that was ever used.
  template <class F>
  void for_each_place(F f) {
    for (auto& at : places_) {
      if (Communicator* const place = at.load()) f(*place);
    }
  }
  /// `f(token, found)` for each that is open.
  template <class F>
  void for_each_open(F f) const {
    for (std::size_t at = 0; at < kRoom; ++at) {
      const Communicator* const place = places_[at].load();
      if (place == nullptr) continue;
      const std::uint64_t word = place->word.load();
      const engine::Token token(cookie_, static_cast<std::uint32_t>(word >> 2), at);
      const Found found = find(token);
      if (found.place != nullptr && found.open) f(token, found);
    }
  }

 private:
  static constexpr std::uint64_t two(std::int32_t a, std::int32_t b) noexcept {
    return static_cast<std::uint32_t>(a) | std::uint64_t{static_cast<std::uint32_t>(b)} << 32;
  }
  static constexpr std::int32_t first(std::uint64_t both) noexcept {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(both));
  }
  static constexpr std::int32_t second(std::uint64_t both) noexcept {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(both >> 32));
  }

  const std::uint32_t cookie_;
  std::size_t next_ = 0;
  engine::Figure<std::uint32_t> opened_;
  engine::Figure<std::uint64_t> openings_;
  std::array<std::atomic<Communicator*>, kRoom> places_{};  // never freed
};

}  // namespace ringmain::nccl
