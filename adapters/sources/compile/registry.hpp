// How do parts of a C++ program hear that it compiles something? By callbacks for starts and ends,
// by trigger, as torch._dynamo.callback has them.
//
//   compile::Registry compiles(bus);
//   auto slow = compiles.on_end([](const compile::End& e) { … });        // on a worker
//   auto rule = compiles.guard([](const compile::Start&) { return Verdict::veto(kServing); });
//   { compile::Scope one(compiles, {.trigger = compile::Trigger::dynamo}); if (one) build(); }
//
// Unless a callback asks for every compile, it hears outermost pairs: a start when the first of
// several nested or overlapping compiles begins, an end when the last of them is over. On the bus
// each compile is a span of its own.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>

#include "../../../bus/bus.hpp"

#include "../../../events/compile.hpp"

namespace ringmain::compile {

/// The bit of a trigger in CallOptions::triggers.
constexpr std::uint32_t bit_of(Trigger trigger) noexcept {
  return 1u << static_cast<unsigned>(trigger);
}
constexpr std::uint32_t kAllTriggers = ~0u;

struct CallOptions {
  std::uint32_t triggers = kAllTriggers;
  bool every = false;  // nested and overlapping compiles too
  bool here = false;   // in the thread that compiles, before it goes on; else on a worker
  /// Of pairs, or with `every` of spans, each n-th: for triggers that come too often.
  std::uint32_t one_in = 1;
  int priority = 0;  // higher first; equal ones in order of registration
  OnThrow on_throw = OnThrow::keep;
  std::string name{};
};

/// What became of the calls of one callback.
struct CallFigures {
  std::uint64_t calls = 0;
  std::uint64_t threw = 0;
  std::int64_t longest_ns = 0;
};

/// Publishes what Scopes do, and keeps the callbacks. The bus must outlive it, and it must outlive
/// its scopes.
///
/// Threads: everything may be called by any thread at any time, also inside a callback: a running
/// delivery goes on with those that were registered when it began. No lock is held while a callback
/// runs. What a callback throws is counted, and harms neither the compile nor other callbacks.
class Registry {
 public:
  /// Names a callback. One that is not registered any more is refused, never mistaken for another.
  struct Handle {
    std::uint64_t id = 0;
    friend bool operator==(const Handle&, const Handle&) = default;
  };

  explicit Registry(Bus& bus);
  /// As clear().
  ~Registry();
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

  /// The same callback may be registered more than once, and is then called as often. Across two
  /// registrations that are not `here` there is no order; on_both() has one. Throw std::bad_alloc.
  Handle on_start(std::function<void(const Start&)> call, const CallOptions& options = {});
  Handle on_end(std::function<void(const End&)> call, const CallOptions& options = {});
  /// On a worker: `start` before `end` of the same compile. The options `here`, `priority` and
  /// `on_throw` veto have no meaning.
  Handle on_both(std::function<void(const Start&)> start, std::function<void(const End&)> end,
                 const CallOptions& options = {});
  /// Here: it may veto the compile. The first veto decides; its end will be `cancelled`.
  Handle guard(std::function<Verdict(const Start&)> judge, CallOptions options = {});

  /// When it returns `done`, the callback is not running and its captures are destroyed; inside a
  /// callback `deferred`. was_not_attached: no such callback.
  Detached remove(Handle handle);
  /// Removes all that are registered when it is called.
  void clear();
  [[nodiscard]] std::size_t size() const;
  [[nodiscard]] CallFigures figures(Handle handle) const;

  /// All that was compiled is forgotten, and ids begin again: published on `compile.reset`.
  /// Callbacks stay.
  void reset() noexcept;
  /// Compiles under way.
  [[nodiscard]] std::uint32_t active() const noexcept;

 private:
  friend class Scope;
  struct Watch;
  struct Kept {
    std::shared_ptr<Watch> watch;
    Subscription subscription;
  };
  Handle keep(std::shared_ptr<Watch> watch, Subscription subscription);
  void begin(Start& start, PublishResult& result) noexcept;
  void end(End& said) noexcept;

  Bus& bus_;
  Channel<Start>& starts_;
  Channel<End>& ends_;
  Channel<Reset>& resets_;
  std::atomic<std::uint64_t> state_{0};  // number of the pair, and below it compiles under way
  std::atomic<std::uint32_t> epoch_{0};
  mutable std::mutex mutex_;  // of what is below; never held while a callback runs
  std::map<std::uint64_t, Kept> kept_;
  std::uint64_t last_ = 0;
};

}  // namespace ringmain::compile
