// How does a program say that it compiles something? By a scope around it.
//
//   compile::Scope one(compiles, {.trigger = Trigger::dynamo, .function = Name("step")});
//   if (!one) throw Refused(one.why());
//   one.run([&] { build(graph); });        // an exception that leaves it goes into the end event
#pragma once
#include <cstdint>
#include <exception>
#include <utility>

#include "registry.hpp"

namespace ringmain::compile {

/// What is compiled.
struct Compiled {
  Trigger trigger = Trigger::unknown;
  Id id{};  // its `reset` is filled in
  Name function{};
  Name file{};
  std::uint32_t line = 0;
};

/// Publishes compile.start, and compile.end when it is left, however that happens. Threads: one at
/// a time. Progress: as publish. Never throws.
class [[nodiscard]] Scope {
 public:
  Scope(Registry& registry, const Compiled& what) noexcept;
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

  /// False: an inline subscriber vetoed it, for the reason why(). Its end will be `cancelled`.
  [[nodiscard]] explicit operator bool() const noexcept { return !vetoed_; }
  [[nodiscard]] Name why() const noexcept { return why_; }
  [[nodiscard]] std::uint64_t span() const noexcept { return start_.span; }

  /// The compile has failed. Only the first call counts.
  void failed(Name exception, Name reason = Name{}) noexcept;
  void failed(const std::exception& thrown) noexcept;

  /// `f()`, and what it throws is the end's exception. An exception that leaves the scope without
  /// run() makes it a failure, too, of a type that cannot be seen from there.
  template <class F>
  decltype(auto) run(F&& f) {
    try {
      return std::forward<F>(f)();
    } catch (const std::exception& thrown) {
      failed(thrown);
      throw;
    } catch (...) {
      failed(Name("unknown"));
      throw;
    }
  }

 private:
  Registry& registry_;
  Start start_;
  std::int64_t began_ns_;
  const int thrown_before_ = std::uncaught_exceptions();
  bool vetoed_ = false;
  bool failed_ = false;
  Name why_;
  Name exception_;
  Name reason_;
};

}  // namespace ringmain::compile
