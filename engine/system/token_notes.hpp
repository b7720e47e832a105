// Which words belong to what we gave a stranger? As a table of tokens (token_slab.hpp), where
// nothing but a few words is kept of each tenant, nobody changes them, and nobody pins it: who
// reads a word sees whether it is still that tenant's.
//
// Opening one and ending it are one read-modify-write each. The words of a tenant that has ended
// can be read until its place is another's: a thread goes through a window of 2,048 places before
// it comes back to the first. Model of any order of threads: the scenario `notes` of
// tests/interleave; of the memory orders: tests/model/notes_relacy.cpp.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>

#include "atomics.hpp"
#include "figure.hpp"
#include "token_slab.hpp"

namespace ringmain::engine {

/// Threads: any, with any tokens at once. Progress: wait-free; take() gives up after so many
/// places. No lock, no allocation, no system call. Memory is touched where it is used first.
template <std::size_t kWords>
class TokenNotes {
 public:
  using Words = std::array<std::uint64_t, kWords>;
  enum : std::size_t { kPlacesMax = std::size_t{1} << Token::kPlaceBits };
  enum : std::uint32_t { kWindow = 2048 };

  /// `places`: at most kPlacesMax, a power of two. `cookie`: above 3. Throws std::bad_alloc.
  TokenNotes(std::size_t places, std::uint32_t cookie)
      : mask_(places - 1),
        cookie_(cookie),
        places_(static_cast<Place*>(std::calloc(places, sizeof(Place)))) {
    if (places_ == nullptr) throw std::bad_alloc();
  }
  TokenNotes(const TokenNotes&) = delete;
  TokenNotes& operator=(const TokenNotes&) = delete;

  /// A place for a new tenant, to be published or given back by its opener. `seed`: where this
  /// thread looks, changed to where it looks next. `tries`: how many places are looked at, from 64
  /// on all over the table. Zero: none of them was free.
  [[nodiscard, gnu::always_inline]] Token take(std::uint32_t& seed, std::size_t tries) noexcept {
    seed = next_place(seed, 0);
    const Token made = take_at(seed & mask_);
    if (made.bits() != 0) [[likely]]
      return made;
    return take_farther(seed, tries);
  }
  /// Its opener's, before it is published.
  void write(Token made, std::size_t which, std::uint64_t word) noexcept {
    places_.get()[made.place()].words[which].store(word, std::memory_order_release);  // v.tenant
  }
  /// From here on its token is good.
  void publish(Token made) noexcept {
    places_.get()[made.place()].word.store(word_of(made.tenant(), kOpen),
                                           std::memory_order_release);  // v.tenant
  }
  /// Nothing came of it.
  void give_back(Token made) noexcept {
    places_.get()[made.place()].word.store(word_of(made.tenant(), kFree),
                                           std::memory_order_release);  // v.tenant
  }
  /// True for the one call that ends this tenant; `words`: the first `count` of its own.
  [[nodiscard, gnu::always_inline]] bool end(Token which, std::uint64_t* words,
                                             std::size_t count) noexcept {
    if (!is_ours(which)) return false;
    const Place& place = places_.get()[which.place()];
    if (place.word.load(std::memory_order_acquire) != word_of(which.tenant(), kOpen))
      return false;  // v.tenant
    // Relaxed: the exchange sees whether they are another's.
    for (std::size_t i = 0; i < count; ++i)
      words[i] = place.words[i].load(std::memory_order_relaxed);
    std::uint64_t open = word_of(which.tenant(), kOpen);
    return places_.get()[which.place()].word.compare_exchange_strong(
        open, word_of(which.tenant(), kEnded), std::memory_order_acq_rel);  // v.tenant
  }
  [[nodiscard]] bool end(Token which, Words& words) noexcept {
    return end(which, words.data(), words.size());
  }
  /// One of its words, also when it has ended, until its place is another's. False: it cannot be
  /// told any more, or was never.
  [[nodiscard]] bool read(Token token, std::size_t which, std::uint64_t& word) const noexcept {
    if (!is_ours(token)) return false;
    const Place& place = places_.get()[token.place()];
    const std::uint64_t before = place.word.load(std::memory_order_acquire);  // v.tenant
    if (tenant_of(before) != token.tenant() || state_of(before) < kOpen) return false;
    word = place.words[which].load(std::memory_order_acquire);  // v.tenant
    // Relaxed: a word of a later tenant's was written after its opener had changed this one.
    return tenant_of(place.word.load(std::memory_order_relaxed)) == token.tenant();
  }
  [[nodiscard]] bool is_open(Token which) const noexcept {
    // Relaxed: what is done about it looks again.
    return is_ours(which) && places_.get()[which.place()].word.load(std::memory_order_relaxed) ==
                                 word_of(which.tenant(), kOpen);
  }
  /// Has it this table's form? Says nothing of whether it is good.
  [[nodiscard]] bool is_ours(Token token) const noexcept {
    return token.cookie() == cookie_ && token.place() <= mask_;
  }
  /// `f(token)` for each tenant that is open from before the call to its end, and for some others.
  template <class F>
  void for_each_open(F f) {
    for (std::size_t at = 0; at < used_.get(); ++at) {
      const std::uint64_t word =
          places_.get()[at].word.load(std::memory_order_relaxed);  // relaxed: f() looks again
      if (state_of(word) == kOpen) f(Token(cookie_, tenant_of(word), at));
    }
  }
  [[nodiscard]] static constexpr std::size_t bytes_each() noexcept { return sizeof(Place); }

 private:
  // A word: the tenant's number above 2 bits of the state.
  enum : std::uint64_t { kFree = 0, kFilling = 1, kOpen = 2, kEnded = 3 };
  // Zeros are a free place.
  struct Place {
    Atomic<std::uint64_t> word;
    std::array<Atomic<std::uint64_t>, kWords> words;
  };

  /// Zero: it is not free.
  [[gnu::always_inline]] Token take_at(std::size_t at) noexcept {
    Place& place = places_.get()[at];
    std::uint64_t word = place.word.load(std::memory_order_relaxed);  // relaxed: a guess
    if (state_of(word) == kFilling || state_of(word) == kOpen) return {};
    const std::uint64_t filling = word_of(tenant_of(word) + 1, kFilling);
    // v.tenant: its words are its opener's
    if (!place.word.compare_exchange_strong(word, filling, std::memory_order_acq_rel)) return {};
    if (at >= used_.get()) used_.at_least(at + 1);
    return {cookie_, tenant_of(filling), at};
  }
  [[gnu::noinline]] Token take_farther(std::uint32_t& seed, std::size_t tries) noexcept {
    for (std::size_t i = 1; i < tries; ++i) {
      seed = next_place(seed, i);
      const Token made = take_at(seed & mask_);
      if (made.bits() != 0) return made;
    }
    return {};
  }
  /// Where a thread looks that has looked at `looked` places in vain, at `seed` last: on in its
  /// window, then by odd leaps, which come to each place of the table.
  static constexpr std::uint32_t next_place(std::uint32_t seed, std::size_t looked) noexcept {
    constexpr std::uint32_t kNear = 64, kLeap = 5 * kNear + 1;
    if (looked < kNear) return (seed & ~(kWindow - 1)) | ((seed + 1) % kWindow);
    return seed + kLeap;
  }
  static constexpr std::uint64_t word_of(std::uint32_t tenant, std::uint64_t state) noexcept {
    constexpr std::uint32_t kTenants = (1u << Token::kTenantBits) - 1;
    return std::uint64_t{tenant & kTenants} << 2 | state;
  }
  static constexpr std::uint64_t state_of(std::uint64_t word) noexcept { return word & 3; }
  static constexpr std::uint32_t tenant_of(std::uint64_t word) noexcept {
    return static_cast<std::uint32_t>(word >> 2);
  }

  struct Freed {
    void operator()(Place* memory) const noexcept { std::free(memory); }
  };
  const std::size_t mask_;
  const std::uint32_t cookie_;
  const std::unique_ptr<Place, Freed> places_;
  Figure<std::size_t> used_;  // places before this have been used
};

}  // namespace ringmain::engine
