#include "adapters/sources/compile/registry.hpp"

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "adapters/sources/compile/clock.hpp"
#include "adapters/sources/compile/dynamo/span_id.hpp"
#include "adapters/sources/compile/scope.hpp"

namespace ringmain::compile {
namespace {

constexpr unsigned kActiveBits = 24;
constexpr std::uint64_t kActive = (std::uint64_t{1} << kActiveBits) - 1;

SubscribeOptions subscribed(const CallOptions& options) {
  SubscribeOptions made;
  made.priority = options.priority;
  made.on_throw = options.on_throw;
  made.name = options.name.empty() ? "compile callback" : options.name;
  return made;
}

}  // namespace

/// What a callback wants, and how its calls went.
struct Registry::Watch {
  explicit Watch(const CallOptions& given) : options(given) {}

  [[nodiscard]] bool wants(const Span& span) const noexcept {
    if ((options.triggers & bit_of(span.trigger)) == 0) return false;
    if (!options.every && !span.outermost) return false;
    const std::uint64_t number = options.every ? span.span : span.pair;
    return options.one_in <= 1 || number % options.one_in == 0;
  }

  /// Calls, counts and times.
  template <class Call, class E>
  auto operator()(const Call& call, const E& event) {
    struct Timed {
      Watch& watch;
      const std::int64_t began_ns = now_ns();
      const int thrown_before = std::uncaught_exceptions();
      ~Timed() {
        ++watch.calls;
        if (std::uncaught_exceptions() > thrown_before) ++watch.threw;
        const std::int64_t took_ns = now_ns() - began_ns;
        std::int64_t longest = watch.longest_ns;
        while (took_ns > longest && !watch.longest_ns.compare_exchange_weak(longest, took_ns)) {
        }
      }
    };
    const Timed timed{*this};
    return call(event);
  }

  const CallOptions options;
  std::atomic<std::uint64_t> calls{0};
  std::atomic<std::uint64_t> threw{0};
  std::atomic<std::int64_t> longest_ns{0};
};

Registry::Registry(Bus& bus)
    : bus_(bus),
      starts_(bus.channel<Start>()),
      ends_(bus.channel<End>()),
      resets_(bus.channel<Reset>()) {}

Registry::~Registry() {
  clear();
}

Registry::Handle Registry::keep(std::shared_ptr<Watch> watch, Subscription subscription) {
  const std::lock_guard lock(mutex_);
  kept_.emplace(++last_, Kept{std::move(watch), std::move(subscription)});
  return {last_};
}

Registry::Handle Registry::on_start(std::function<void(const Start&)> call,
                                    const CallOptions& options) {
  auto watch = std::make_shared<Watch>(options);
  const auto hear = [watch, call = std::move(call)](const Start& start) {
    if (watch->wants(start)) (*watch)(call, start);
  };
  auto made = options.here ? starts_.subscribe_inline(hear, subscribed(options))
                           : starts_.subscribe(hear, subscribed(options));
  return keep(std::move(watch), std::move(made));
}

Registry::Handle Registry::on_end(std::function<void(const End&)> call,
                                  const CallOptions& options) {
  auto watch = std::make_shared<Watch>(options);
  const auto hear = [watch, call = std::move(call)](const End& end) {
    if (watch->wants(end)) (*watch)(call, end);
  };
  CallOptions allowed = options;
  if (allowed.on_throw == OnThrow::veto) allowed.on_throw = OnThrow::keep;  // it has happened
  auto made = options.here ? ends_.subscribe_inline(hear, subscribed(allowed))
                           : ends_.subscribe(hear, subscribed(allowed));
  return keep(std::move(watch), std::move(made));
}

Registry::Handle Registry::on_both(std::function<void(const Start&)> start,
                                   std::function<void(const End&)> end,
                                   const CallOptions& options) {
  struct Both {
    std::shared_ptr<Watch> watch;
    std::function<void(const Start&)> start;
    std::function<void(const End&)> end;
    void operator()(const Start& said) const {
      if (watch->wants(said)) (*watch)(start, said);
    }
    void operator()(const End& said) const {
      if (watch->wants(said)) (*watch)(end, said);
    }
  };
  auto watch = std::make_shared<Watch>(options);
  OrderOptions ordered;
  ordered.name = options.name.empty() ? "compile callback" : options.name;
  if (options.on_throw != OnThrow::veto) ordered.on_throw = options.on_throw;
  auto made = bus_.subscribe_ordered<Start, End>(Both{watch, std::move(start), std::move(end)},
                                                 std::move(ordered));
  return keep(std::move(watch), std::move(made));
}

Registry::Handle Registry::guard(std::function<Verdict(const Start&)> judge, CallOptions options) {
  auto watch = std::make_shared<Watch>(options);
  return keep(watch, starts_.subscribe_inline(
                         [watch, judge = std::move(judge)](const Start& start) {
                           return watch->wants(start) ? (*watch)(judge, start) : Verdict::allow();
                         },
                         subscribed(options)));
}

Detached Registry::remove(Handle handle) {
  Subscription found;
  {
    const std::lock_guard lock(mutex_);
    const auto known = kept_.find(handle.id);
    if (known == kept_.end()) return Detached::was_not_attached;
    found = std::move(known->second.subscription);
    kept_.erase(known);
  }
  return found.reset();
}

void Registry::clear() {
  std::map<std::uint64_t, Kept> all;
  {
    const std::lock_guard lock(mutex_);
    all.swap(kept_);
  }
}

std::size_t Registry::size() const {
  const std::lock_guard lock(mutex_);
  return kept_.size();
}

CallFigures Registry::figures(Handle handle) const {
  const std::lock_guard lock(mutex_);
  const auto known = kept_.find(handle.id);
  if (known == kept_.end()) return {};
  const Watch& watch = *known->second.watch;
  return {watch.calls, watch.threw, watch.longest_ns};
}

void Registry::reset() noexcept {
  Reset said;
  said.reset = ++epoch_;
  resets_.post(said);
}

std::uint32_t Registry::active() const noexcept {
  return static_cast<std::uint32_t>(state_ & kActive);
}

void Registry::begin(Start& start, PublishResult& result) noexcept {
  std::uint64_t before = state_;
  std::uint64_t after = 0;
  do {
    const bool first = (before & kActive) == 0;
    after = before + (first ? kActive + 2 : 1);  // a new pair, with one under way
  } while (!state_.compare_exchange_weak(before, after));
  start.span = new_span();
  start.thread = this_thread();
  start.reset = epoch_;
  start.depth = static_cast<std::uint32_t>(before & kActive);
  start.pair = after >> kActiveBits;
  start.outermost = start.depth == 0;
  result = starts_.publish(start);
}

void Registry::end(End& said) noexcept {
  const std::uint64_t before = state_.fetch_sub(1);
  said.outermost = (before & kActive) == 1;
  said.pair = before >> kActiveBits;
  ends_.post(said);
}

}  // namespace ringmain::compile
