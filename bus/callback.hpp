// The typed half of subscribing: which callables may be callbacks, and the loops that call them.
//
// A thunk is compiled where the callback was written; everything around it is in the library.
#pragma once
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include "../engine/subscribe/threw.hpp"
#include "../engine/system/exceptions.hpp"

#include "event.hpp"
#include "options.hpp"
#include "result.hpp"

namespace ringmain {

template <class F, class E>
concept StampedCallback = std::invocable<F&, const E&, const Stamp&>;
template <class F, class E>
concept EventCallback = std::invocable<F&, const E&> || StampedCallback<F, E>;
/// Callable inline: through const&, because many threads call it at once. It returns a Verdict or
/// nothing, because any other result would be lost.
template <class F, class E>
concept Judges = std::invocable<const F&, const E&> &&
    std::same_as<std::invoke_result_t<const F&, const E&>, Verdict>;
template <class F, class E>
concept Observes = Judges<F, E> ||
    (std::invocable<const F&, const E&>&& std::is_void_v<std::invoke_result_t<const F&, const E&>>);
template <class P, class E>
concept Filter = std::predicate<P&, const E&>;

namespace detail {
[[nodiscard]] Stamp stamp_of(const engine::Run& run, std::size_t i) noexcept;
[[nodiscard]] EventView view_of(const engine::Run& run, std::size_t i, const Stamp& stamp) noexcept;
template <class E>
const E& event_of(const engine::Run& run, std::size_t i) noexcept {
  return *std::launder(reinterpret_cast<const E*>(run.payload(i)));
}
}  // namespace detail

/// A run of events of one channel and one publisher, in order, in place. Not a std::span: a queued
/// event has its header in front of it, so the stride is not sizeof(E). Valid during the callback.
template <Event E>
class Batch {
 public:
  class iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = E;
    using difference_type = std::ptrdiff_t;
    using pointer = const E*;
    using reference = const E&;

    iterator() = default;
    iterator(const std::byte* at, std::uint32_t stride) noexcept : at_(at), stride_(stride) {}
    reference operator*() const noexcept { return *std::launder(reinterpret_cast<const E*>(at_)); }
    pointer operator->() const noexcept { return &**this; }
    iterator& operator++() noexcept {
      at_ += stride_;
      return *this;
    }
    iterator operator++(int) noexcept {
      iterator before = *this;
      ++*this;
      return before;
    }
    friend bool operator==(const iterator&, const iterator&) = default;

   private:
    const std::byte* at_ = nullptr;
    std::uint32_t stride_ = 0;
  };

  explicit Batch(const engine::Run& run) noexcept : run_(&run) {}
  [[nodiscard]] std::size_t size() const noexcept { return run_->count; }
  [[nodiscard]] const E& operator[](std::size_t i) const noexcept {
    return detail::event_of<E>(*run_, i);
  }
  [[nodiscard]] Stamp stamp(std::size_t i) const noexcept { return detail::stamp_of(*run_, i); }
  [[nodiscard]] iterator begin() const noexcept { return {run_->payload(0), run_->stride}; }
  [[nodiscard]] iterator end() const noexcept { return {run_->payload(run_->count), run_->stride}; }

 private:
  const engine::Run* run_;
};
template <class F, class E>
concept BatchCallback = std::invocable<F&, Batch<E>>;

namespace detail {

/// Calls `each(i)` for the events of a run until the subscriber is closed; counts; survives throws.
template <class Each>
void for_each_event(engine::Subscriber& subscriber, const engine::Run& run, Each each) noexcept {
  std::uint32_t i = 0;
  std::uint64_t delivered = 0;
  std::uint64_t filtered = 0;
  while (i < run.count) {
    RINGMAIN_TRY {
      for (; i < run.count; ++i) {
        if (subscriber.gate.closed()) break;
        (each(i) ? delivered : filtered) += 1;
      }
      if (i < run.count) break;
    }
    RINGMAIN_CATCH_ALL {
      engine::subscriber_threw(subscriber);
      ++i;
    }
  }
  subscriber.count(subscriber.delivered, delivered);
  if (filtered != 0) subscriber.count(subscriber.filtered, filtered);
  if (i < run.count) subscriber.count(subscriber.skipped, run.count - i);
}

template <class E, class F>
void call_one(F& f, const engine::Run& run, std::size_t i) {
  if constexpr (StampedCallback<F, E>) {
    const Stamp stamp = stamp_of(run, i);
    f(event_of<E>(run, i), stamp);
  } else {
    f(event_of<E>(run, i));
  }
}

template <class E, class F>
struct CallbackEach {
  static constexpr bool wants_time() { return StampedCallback<F, E>; }
  F callback;
  void operator()(engine::Subscriber& s, const engine::Run& run) noexcept {
    for_each_event(s, run, [&](std::size_t i) { return call_one<E>(callback, run, i), true; });
  }
};

template <class E, class P, class F>
struct CallbackIf {
  static constexpr bool wants_time() { return StampedCallback<F, E>; }
  P wanted;
  F callback;
  void operator()(engine::Subscriber& s, const engine::Run& run) noexcept {
    for_each_event(s, run, [&](std::size_t i) {
      if (!wanted(event_of<E>(run, i))) return false;
      call_one<E>(callback, run, i);
      return true;
    });
  }
};

template <class E, class T, class M>
struct CallbackWhileOwned {
  static constexpr bool wants_time() { return std::invocable<M, T&, const E&, const Stamp&>; }
  std::weak_ptr<T> owner;
  M member;
  void operator()(engine::Subscriber& s, const engine::Run& run) noexcept {
    const std::shared_ptr<T> held = owner.lock();
    if (held == nullptr) {
      s.gate.close();
      s.count(s.skipped, run.count);
      return;
    }
    for_each_event(s, run, [&](std::size_t i) {
      if constexpr (wants_time()) {
        std::invoke(member, *held, event_of<E>(run, i), stamp_of(run, i));
      } else {
        std::invoke(member, *held, event_of<E>(run, i));
      }
      return true;
    });
  }
};

template <class E, class F>
struct CallbackBatch {
  static constexpr bool wants_time() { return false; }
  F callback;
  void operator()(engine::Subscriber& s, const engine::Run& run) noexcept {
    RINGMAIN_TRY {
      callback(Batch<E>(run));
      s.count(s.delivered, run.count);
    }
    RINGMAIN_CATCH_ALL {
      engine::subscriber_threw(s);
      if (run.count > 1) s.count(s.threw, run.count - 1);  // the whole batch is one call
    }
  }
};

/// Events of several types, by the channel that each run comes from.
template <class F, class... E>
struct CallbackOrdered {
  static constexpr bool wants_time() { return (StampedCallback<F, E> || ...); }
  F callback;
  std::array<engine::ChannelCore*, sizeof...(E)> channels;
  void operator()(engine::Subscriber& s, const engine::Run& run) noexcept {
    std::size_t at = 0;
    (void)((channels[at++] == run.source && (call_run<E>(s, run), true)) || ...);
  }
  template <class One>
  void call_run(engine::Subscriber& s, const engine::Run& run) noexcept {
    for_each_event(s, run, [&](std::size_t i) { return call_one<One>(callback, run, i), true; });
  }
};

/// Allocates a subscriber that owns `captures`. nullptr: out of memory. Throws what moving them
/// throws.
template <class Captures>
engine::Subscriber* hold_captures(Captures captures) {
  static_assert(alignof(Captures) <= 64,
                "a callback's captures may be aligned to at most 64 bytes");
  engine::Subscriber* s = engine::make_subscriber(sizeof(Captures));
  if (s == nullptr) return nullptr;
  RINGMAIN_TRY {
    ::new (s->captures()) Captures(std::move(captures));
  }
  RINGMAIN_CATCH_ALL {  // a callback that throws when it is moved
    engine::drop_subscriber(s);
    RINGMAIN_THROW_AGAIN;
  }
  s->destroy = [](engine::Subscriber& self) noexcept {
    std::destroy_at(std::launder(static_cast<Captures*>(self.captures())));
  };
  return s;
}

inline engine::Subscriber* or_throw(engine::Subscriber* made) {
  if (made == nullptr) engine::throw_bad_alloc();
  return made;
}

/// Makes a subscriber that workers call as `callback(subscriber, run)`. nullptr: out of memory.
template <class Captures>
engine::Subscriber* try_make_subscriber(Captures callback) {
  engine::Subscriber* s = hold_captures(std::move(callback));
  if (s == nullptr) return nullptr;
  s->wants_time = Captures::wants_time();
  s->call = [](engine::Subscriber& self, const engine::Run& run) {
    (*std::launder(static_cast<Captures*>(self.captures())))(self, run);
  };
  return s;
}

/// The same, but throws std::bad_alloc.
template <class Captures>
engine::Subscriber* make_subscriber(Captures callback) {
  return or_throw(try_make_subscriber(std::move(callback)));
}

/// Makes a subscriber that publishing threads call as `see(event)`. nullptr: out of memory.
template <class E, class F>
engine::Subscriber* try_make_inline_subscriber(F see) {
  engine::Subscriber* s = hold_captures(std::move(see));
  if (s == nullptr) return nullptr;
  s->judge = [](engine::Subscriber& self, const std::byte* at) noexcept -> engine::Judgement {
    const F& f = *std::launder(static_cast<const F*>(self.captures()));
    const E& event = *std::launder(reinterpret_cast<const E*>(at));
    RINGMAIN_TRY {
      engine::Judgement judgement;
      if constexpr (Judges<F, E>) {
        const Verdict verdict = f(event);
        judgement = {.veto = verdict.vetoes(), .why = verdict.why().id()};
      } else {
        f(event);
      }
      return judgement;
    }
    RINGMAIN_CATCH_ALL {
      return engine::inline_threw(self);
    }
  };
  return s;
}

/// The same, but throws std::bad_alloc.
template <class E, class F>
engine::Subscriber* make_inline_subscriber(F see) {
  return or_throw(try_make_inline_subscriber<E>(std::move(see)));
}

}  // namespace detail
}  // namespace ringmain
