// How is a field of a parsed record taken? By name and kind; a field that is missing, or of another
// kind, reads as absent.
#pragma once
#include <cmath>
#include <cstdint>
#include <limits>
#include <simdjson.h>
#include <string_view>

#include "bus/text.hpp"

namespace ringmain::compile {

/// A JSON object, or nothing. Threads: one at a time; valid until its parser reads again.
class Json {
 public:
  Json() = default;
  explicit Json(simdjson::dom::element element) noexcept {
    has_ = element.get(object_) == simdjson::SUCCESS;
  }
  [[nodiscard]] explicit operator bool() const noexcept { return has_; }
  [[nodiscard]] const simdjson::dom::object& object() const noexcept { return object_; }

  [[nodiscard]] std::string_view text(std::string_view key) const noexcept {
    std::string_view found;
    if (!has_ || object_[key].get(found) != simdjson::SUCCESS) return {};
    return found;
  }
  [[nodiscard]] Name name(std::string_view key) const noexcept { return Name(text(key)); }
  /// An integer of type T, or `absent`.
  template <class T>
  [[nodiscard]] T integer(std::string_view key, T absent = 0) const noexcept {
    std::int64_t found = 0;
    if (!has_ || object_[key].get(found) != simdjson::SUCCESS) return absent;
    if (found < 0 && std::numeric_limits<T>::min() == 0) return absent;
    if (found > static_cast<std::int64_t>(std::numeric_limits<std::int32_t>::max()) &&
        sizeof(T) < sizeof found) {
      return absent;
    }
    if (found < static_cast<std::int64_t>(std::numeric_limits<std::int32_t>::min()) &&
        sizeof(T) < sizeof found) {
      return absent;
    }
    return static_cast<T>(found);
  }
  /// A number times `scale`, as an integer; `absent` where it is none or does not fit.
  [[nodiscard]] std::int64_t scaled(std::string_view key, double scale,
                                    std::int64_t absent = 0) const noexcept {
    double found = 0;
    if (!has_ || object_[key].get(found) != simdjson::SUCCESS) return absent;
    found *= scale;
    return std::isfinite(found) && std::fabs(found) < 4e18 ? std::llround(found) : absent;
  }
  [[nodiscard]] bool boolean(std::string_view key, bool absent) const noexcept {
    bool found = false;
    return has_ && object_[key].get(found) == simdjson::SUCCESS ? found : absent;
  }
  [[nodiscard]] Json object(std::string_view key) const noexcept {
    simdjson::dom::element found;
    if (!has_ || object_[key].get(found) != simdjson::SUCCESS) return {};
    return Json(found);
  }
  /// The last element of an array of objects.
  [[nodiscard]] Json last(std::string_view key) const noexcept {
    simdjson::dom::array found;
    if (!has_ || object_[key].get(found) != simdjson::SUCCESS) return {};
    Json last;
    for (const auto element : found) last = Json(element);
    return last;
  }
  [[nodiscard]] std::uint32_t length(std::string_view key) const noexcept {
    simdjson::dom::array found;
    if (!has_ || object_[key].get(found) != simdjson::SUCCESS) return 0;
    std::uint32_t count = 0;
    for ([[maybe_unused]] const auto element : found) ++count;
    return count;
  }

 private:
  simdjson::dom::object object_;
  bool has_ = false;
};

}  // namespace ringmain::compile
