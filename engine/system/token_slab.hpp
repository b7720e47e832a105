// Is what a stranger hands us still what we gave him? Handles that may come back too late, twice,
// or from another process.
//
// A bounded table of places, each for one thing at a time. A token names a place, which of its
// tenants is meant, and a cookie of the table's: no address, so that a wrong one is recognised
// before anything is read by it. A tenant is *pinned* while somebody looks at it; it is ended once,
// by whoever says it first, and the last who lets go of it after that takes it out and frees the
// place. Nobody waits for anybody.
//
// A thread looks for a place from where it found its last one, within a few that stay in its cache.
// The table's memory is touched place by place, when one is used first.
// Model of any order of threads: the scenarios `tokens` of tests/interleave.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include "atomics.hpp"
#include "cache_line.hpp"
#include "figure.hpp"

namespace ringmain::engine {

/// 18 bits of cookie, 30 of the tenant's number, 16 of the place. Never 0, and never an address of
/// user space, in a table whose cookie is above 3.
class Token {
 public:
  enum : unsigned { kPlaceBits = 16, kTenantBits = 30, kCookieBits = 18 };
  constexpr Token() noexcept = default;
  constexpr explicit Token(std::uint64_t bits) noexcept : bits_(bits) {}
  constexpr Token(std::uint32_t cookie, std::uint32_t tenant, std::size_t place) noexcept
      : bits_(std::uint64_t{cookie} << (kPlaceBits + kTenantBits) |
              std::uint64_t{tenant} << kPlaceBits | place) {}
  [[nodiscard]] constexpr std::uint64_t bits() const noexcept { return bits_; }
  [[nodiscard]] constexpr std::uint32_t cookie() const noexcept {
    return static_cast<std::uint32_t>(bits_ >> (kPlaceBits + kTenantBits));
  }
  [[nodiscard]] constexpr std::uint32_t tenant() const noexcept {
    return static_cast<std::uint32_t>(bits_ >> kPlaceBits) & ((1u << kTenantBits) - 1);
  }
  [[nodiscard]] constexpr std::size_t place() const noexcept {
    return bits_ & ((std::size_t{1} << kPlaceBits) - 1);
  }
  /// Place and tenant: a number below 2^46 that no other tenant of the table has, but for the one
  /// that comes there 2^30 tenants later.
  [[nodiscard]] constexpr std::uint64_t number() const noexcept {
    return bits_ & ((std::uint64_t{1} << (kPlaceBits + kTenantBits)) - 1);
  }
  friend constexpr bool operator==(Token, Token) = default;

 private:
  std::uint64_t bits_ = 0;
};

/// `Thing`: made anew for each tenant and never destroyed. What its opener writes before publish()
/// is whole for all who pin it; what is changed later must be atomic. `TakeOut{}(thing, token,
/// how)` is called once for each tenant that has ended, when nobody looks at it any more, in the
/// thread that let go of it last; its place is free when it returns.
///
/// Threads: any, with any tokens at once. Progress: lock-free; opening gives up after so many
/// places. No lock, no allocation, no system call, but what TakeOut does.
template <class Thing, class TakeOut>
requires(std::is_trivially_destructible_v<Thing>&&
             std::is_nothrow_default_constructible_v<Thing>) class TokenSlab {
  struct Place;

 public:
  enum : std::size_t { kPlacesMax = std::size_t{1} << Token::kPlaceBits };
  enum : unsigned { kHowMax = 7 };  // how a tenant may be ended: 0 … kHowMax

  /// `places`: at most kPlacesMax, a power of two. `cookie`: above 3. Throws std::bad_alloc.
  TokenSlab(std::size_t places, std::uint32_t cookie)
      : mask_(places - 1),
        cookie_(cookie & ((1u << Token::kCookieBits) - 1)),
        memory_(std::calloc(places + 1, sizeof(Place))) {
    if (memory_ == nullptr) throw std::bad_alloc();
    const auto from = reinterpret_cast<std::uintptr_t>(memory_.get());
    places_ =
        reinterpret_cast<Place*>((from + alignof(Place) - 1) / alignof(Place) * alignof(Place));
  }
  TokenSlab(const TokenSlab&) = delete;
  TokenSlab& operator=(const TokenSlab&) = delete;

  /// A new tenant, which nobody else finds before publish(). `seed`: spreads threads, changed to
  /// where this one looks next. `tries`: how many places are looked at. {}: none of them was free.
  /// From 64 on they lie all over the table: others may have what is next to the thread's own.
  struct Opening {
    Thing* thing = nullptr;
    Token token;
    [[nodiscard]] explicit operator bool() const noexcept { return thing != nullptr; }
  };
  [[nodiscard]] Opening open(std::uint32_t& seed, std::size_t tries) noexcept {
    for (std::size_t i = 0; i < tries; ++i) {
      seed = next_place(seed, i);
      const std::size_t at = seed & mask_;
      Place& place = places_[at];
      std::uint64_t word = place.word.load(std::memory_order_relaxed);  // relaxed: a guess
      if (state_of(word) != kFree) continue;
      const std::uint64_t filling = word_of(tenant_after(word), kFilling, 0);
      // v.tenant: the last one is out
      if (!place.word.compare_exchange_strong(word, filling, std::memory_order_acq_rel)) continue;
      if (at >= used_.get()) used_.at_least(at + 1);
      return {::new (static_cast<void*>(place.thing)) Thing,
              Token(cookie_, tenant_of(filling), at)};
    }
    return {};
  }
  /// From here on its token is good.
  void publish(const Opening& made) noexcept {
    places_[made.token.place()].word.store(word_of(made.token.tenant(), kOpen, 0),
                                           std::memory_order_release);  // v.tenant
  }

  /// While it lives, the thing stays this tenant. Move-only; empty: the token is not good.
  class Pin {
   public:
    Pin() noexcept = default;
    Pin(Pin&& other) noexcept : place_(std::exchange(other.place_, nullptr)), at_(other.at_) {}
    Pin& operator=(Pin&& other) noexcept {
      if (this == &other) return *this;
      reset();
      place_ = std::exchange(other.place_, nullptr);
      at_ = other.at_;
      return *this;
    }
    ~Pin() { reset(); }
    [[nodiscard]] explicit operator bool() const noexcept { return place_ != nullptr; }
    Thing* operator->() const noexcept { return place_->tenant(); }
    Thing& operator*() const noexcept { return *place_->tenant(); }
    [[nodiscard]] Token token() const noexcept { return at_; }

    /// True for the one call that ends this tenant. It is taken out after the last has let go.
    [[nodiscard]] bool end(unsigned how) noexcept {
      std::uint64_t word = place_->word.load(std::memory_order_relaxed);  // relaxed: CAS looks
      while (state_of(word) == kOpen) {
        const std::uint64_t ended = (word & ~std::uint64_t{kStateMask}) | (kEnded + how);
        if (place_->word.compare_exchange_weak(word, ended, std::memory_order_acq_rel))  // v.tenant
          return true;
      }
      return false;
    }
    /// Lets go.
    void reset() noexcept {
      Place* const place = std::exchange(place_, nullptr);
      if (place == nullptr) return;
      const std::uint64_t word =
          place->word.fetch_sub(kOnePin, std::memory_order_acq_rel) - kOnePin;  // v.tenant
      if (pins_of(word) != 0 || state_of(word) < kEnded) return;
      // Ended, so that nobody pins it any more, and nobody else has it: it is this thread's.
      TakeOut{}(*place->tenant(), at_, static_cast<unsigned>(state_of(word) - kEnded));
      place->word.store(word_of(tenant_of(word), kFree, 0), std::memory_order_release);  // v.tenant
    }

   private:
    friend class TokenSlab;
    Pin(Place& place, Token at) noexcept : place_(&place), at_(at) {}
    Place* place_ = nullptr;
    Token at_;
  };
  /// Empty: it is not of this table, has ended, or was never opened.
  [[nodiscard]] Pin pin(Token token) noexcept {
    if (!is_ours(token)) return {};
    Place& place = places_[token.place()];
    std::uint64_t word = place.word.load(std::memory_order_relaxed);  // relaxed: CAS looks
    while (tenant_of(word) == token.tenant() && state_of(word) == kOpen) {
      if (place.word.compare_exchange_weak(word, word + kOnePin, std::memory_order_acq_rel))
        return {place, token};  // v.tenant
    }
    return {};
  }
  /// Has it this table's form? Says nothing of whether it is good.
  [[nodiscard]] bool is_ours(Token token) const noexcept {
    return token.cookie() == cookie_ && token.place() <= mask_;
  }
  /// `f(pin)` for each tenant that is open from before the call to its end, and for some others; by
  /// rising place. How many places were looked at.
  template <class F>
  std::size_t for_each(F f) noexcept {
    std::size_t at = 0;
    for (; at < used_.get(); ++at) {
      // Relaxed: pin() looks again.
      const std::uint64_t word = places_[at].word.load(std::memory_order_relaxed);
      if (state_of(word) != kOpen) continue;
      if (Pin one = pin(Token(cookie_, tenant_of(word), at))) f(one);
    }
    return at;
  }
  /// Places before this one have been used.
  [[nodiscard]] std::size_t used() const noexcept { return used_.get(); }
  [[nodiscard]] std::size_t places() const noexcept { return mask_ + 1; }
  [[nodiscard]] static constexpr std::size_t bytes_each() noexcept { return sizeof(Place); }

 private:
  // A word: 30 bits of the tenant's number above 16 of pins above 4 of the state.
  enum : std::uint64_t { kFree = 0, kFilling = 1, kOpen = 2, kEnded = 3, kStateMask = 15 };
  enum : std::uint64_t { kOnePin = 16, kPinsMask = 0xffff };
  enum : unsigned { kTenantShift = 20 };
  static_assert(std::uint64_t{kEnded} + kHowMax <= std::uint64_t{kStateMask});
  // Zeros are a free place.
  struct alignas(kLineBytes / 2) Place {
    Atomic<std::uint64_t> word;
    alignas(Thing) std::byte thing[sizeof(Thing)];
    [[nodiscard]] Thing* tenant() noexcept {
      return std::launder(reinterpret_cast<Thing*>(static_cast<std::byte*>(thing)));
    }
  };

  /// Where a thread looks that has looked at `looked` places in vain, at `seed` last. A thread uses
  /// the places of a window in turn while they are free, then those of the next one. Where that is
  /// another's, it leaps: no crowd is too wide, and an odd leap comes to each place of the table.
  static constexpr std::uint32_t next_place(std::uint32_t seed, std::size_t looked) noexcept {
    constexpr std::uint32_t kWindow = 64, kLeap = 5 * kWindow + 1;
    if (looked < kWindow) return (seed & ~(kWindow - 1)) | ((seed + 1) % kWindow);
    return looked == kWindow ? (seed | (kWindow - 1)) + 1 : seed + kLeap;
  }
  static constexpr std::uint64_t word_of(std::uint32_t tenant, std::uint64_t state,
                                         std::uint64_t pins) noexcept {
    return std::uint64_t{tenant} << kTenantShift | pins * kOnePin | state;
  }
  static constexpr std::uint64_t state_of(std::uint64_t word) noexcept { return word & kStateMask; }
  static constexpr std::uint64_t pins_of(std::uint64_t word) noexcept {
    return word / kOnePin & kPinsMask;
  }
  static constexpr std::uint32_t tenant_of(std::uint64_t word) noexcept {
    return static_cast<std::uint32_t>(word >> kTenantShift);
  }
  static constexpr std::uint32_t tenant_after(std::uint64_t word) noexcept {
    return (tenant_of(word) + 1) & ((1u << Token::kTenantBits) - 1);
  }

  struct Freed {
    void operator()(void* memory) const noexcept { std::free(memory); }
  };
  const std::size_t mask_;
  const std::uint32_t cookie_;
  std::unique_ptr<void, Freed> memory_;
  Place* places_ = nullptr;
  Figure<std::size_t> used_;  // places before this have been used
};

}  // namespace ringmain::engine
