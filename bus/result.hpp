// How did a call end? An enum on the hot path, Result<T> for set-up.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "../engine/publish/pushed.hpp"

#include "text.hpp"

namespace ringmain {

/// Progress: wait-free.
[[nodiscard]] std::string_view to_string(PublishCode code) noexcept;

/// True when nothing was lost (accepted or unheard). Fits a register.
struct [[nodiscard]] PublishResult {
  PublishCode code = PublishCode::accepted;
  Name why{};  // vetoed: the reason that the subscriber gave
  constexpr explicit operator bool() const noexcept { return code <= PublishCode::unheard; }
  friend constexpr bool operator==(PublishResult, PublishResult) = default;
  friend constexpr bool operator==(PublishResult r, PublishCode c) { return r.code == c; }
};
static_assert(sizeof(PublishResult) == 8);
static_assert(static_cast<int>(PublishCode::unheard) == 1);  // what is above was lost

/// The result of publish_all(): accepted + refused = the events given, but for those that were
/// unheard.
struct [[nodiscard]] BatchResult {
  std::uint32_t accepted = 0;
  std::uint32_t refused = 0;
  std::uint32_t vetoed = 0;                  // of those refused
  PublishCode last = PublishCode::accepted;  // the last refusal, or accepted, or unheard
};

/// What an inline subscriber may answer: let the event go on, or refuse it. Progress: wait-free.
class [[nodiscard]] Verdict {
 public:
  static constexpr Verdict allow() noexcept { return {}; }
  /// `why` reaches the publisher. Make it before, not in the callback, as a new Name takes a lock.
  static constexpr Verdict veto(Name why) noexcept { return Verdict(true, why); }
  [[nodiscard]] constexpr bool vetoes() const noexcept { return vetoes_; }
  [[nodiscard]] constexpr Name why() const noexcept { return why_; }

 private:
  constexpr Verdict() = default;
  constexpr Verdict(bool vetoes, Name why) noexcept : vetoes_(vetoes), why_(why) {}
  bool vetoes_ = false;
  Name why_{};
};

enum class Detached : std::uint8_t {
  done,      // not running, will never run again, captures destroyed
  deferred,  // called inside a callback: closed at once; captures go with the last running call
  timeout,   // closed, but a call is still running; the handle can wait again
  was_not_attached
};
/// Progress: wait-free.
[[nodiscard]] std::string_view to_string(Detached detached) noexcept;

struct Error {
  enum class Code : std::uint8_t { refused, not_found, conflict, no_memory, system };
  Code code = Code::refused;
  std::string message;  // one sentence: what, and how to mend it
};

/// A value or an Error. Its members are named as those of std::expected (C++23).
/// Progress: wait-free.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : held_(std::in_place_index<0>, std::move(value)) {}  // NOLINT: `return value;`
  Result(Error error)
      : held_(std::in_place_index<1>, std::move(error)) {}  // NOLINT: `return Error{}`
  [[nodiscard]] bool has_value() const noexcept { return held_.index() == 0; }
  explicit operator bool() const noexcept { return has_value(); }
  [[nodiscard]] T& value() & { return std::get<0>(held_); }
  [[nodiscard]] const T& value() const& { return std::get<0>(held_); }
  [[nodiscard]] T&& value() && { return std::get<0>(std::move(held_)); }
  [[nodiscard]] const Error& error() const { return std::get<1>(held_); }

 private:
  std::variant<T, Error> held_;
};

}  // namespace ringmain
