// How does a sink read an event whose type it does not know? Field by field, each with its name,
// kind, unit and value.
//
//   for (const ringmain::FieldView field : ringmain::fields_of(event))
//     field.visit([&](auto value) { … });
//
// examples/csv_sink.cpp is a whole sink. An array in an event is described as a field for each
// element, so a field has one value.
#pragma once
#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "event.hpp"

namespace ringmain {

/// A value of an enumeration.
struct Enumerator {
  std::uint64_t value = 0;
  std::optional<std::string_view> word;  // nullopt: its description has none for this value
};

/// One field of an event. Valid as long as the event is: during the callback.
class FieldView {
 public:
  FieldView(const FieldSchema& schema, const std::byte* event) noexcept
      : schema_(&schema), at_(event + schema.offset) {}

  [[nodiscard]] std::string_view name() const noexcept { return schema_->name; }
  [[nodiscard]] Kind kind() const noexcept { return schema_->kind; }
  [[nodiscard]] Unit unit() const noexcept { return schema_->unit; }
  [[nodiscard]] const FieldSchema& schema() const noexcept { return *schema_; }
  /// True of a text that was longer than what its field holds.
  [[nodiscard]] bool cut() const noexcept {
    return kind() == Kind::text && (read<std::uint16_t>() & 0x8000u) != 0;
  }

  /// Calls `take` with the value: std::uint64_t, std::int64_t, float, double, bool, Enumerator, or
  /// std::string_view for a name or a text (UTF-8 as its publisher gave it: any bytes). Returns
  /// what `take` returns. Progress: wait-free, but for what `take` does; no allocation.
  template <class Take>
  decltype(auto) visit(Take&& take) const {
    switch (schema_->kind) {
      case Kind::u8:
        return std::forward<Take>(take)(std::uint64_t{read<std::uint8_t>()});
      case Kind::u16:
        return std::forward<Take>(take)(std::uint64_t{read<std::uint16_t>()});
      case Kind::u32:
        return std::forward<Take>(take)(std::uint64_t{read<std::uint32_t>()});
      case Kind::u64:
        return std::forward<Take>(take)(read<std::uint64_t>());
      case Kind::i8:
        return std::forward<Take>(take)(std::int64_t{read<std::int8_t>()});
      case Kind::i16:
        return std::forward<Take>(take)(std::int64_t{read<std::int16_t>()});
      case Kind::i32:
        return std::forward<Take>(take)(std::int64_t{read<std::int32_t>()});
      case Kind::i64:
        return std::forward<Take>(take)(read<std::int64_t>());
      case Kind::f32:
        return std::forward<Take>(take)(read<float>());
      case Kind::f64:
        return std::forward<Take>(take)(read<double>());
      case Kind::boolean:
        return std::forward<Take>(take)(*at_ != std::byte{0});
      case Kind::enumeration:
        return std::forward<Take>(take)(enumerator());
      case Kind::name:
        return std::forward<Take>(take)(read<Name>().view());
      case Kind::text:
        break;
    }
    return std::forward<Take>(take)(text());
  }

 private:
  template <class T>
  [[nodiscard]] T read() const noexcept {
    T value;
    std::memcpy(&value, at_, sizeof value);
    return value;
  }
  [[nodiscard]] Enumerator enumerator() const noexcept {
    std::uint64_t value = 0;
    // Little-endian, as all that this runs on.
    std::memcpy(&value, at_, std::min<std::size_t>(schema_->bytes, sizeof value));
    std::string_view words = schema_->enumerators;
    for (std::uint64_t i = 0; i < value && !words.empty(); ++i) {
      const std::size_t comma = words.find(',');
      words = comma == words.npos ? std::string_view() : words.substr(comma + 1);
    }
    if (words.empty()) return {value, std::nullopt};
    return {value, words.substr(0, words.find(','))};
  }
  [[nodiscard]] std::string_view text() const noexcept {  // Text<N>: its size, then its bytes
    const auto size = read<std::uint16_t>();
    // A size that is wrong, from C for instance, does not lead past the field.
    const std::size_t held = std::min<std::size_t>(size & 0x7fffu, schema_->bytes - sizeof size);
    return {reinterpret_cast<const char*>(at_) + sizeof size, held};
  }

  const FieldSchema* schema_;
  const std::byte* at_;
};

/// The fields of an event, in the order of its description. Valid as long as the event.
class FieldsView {
 public:
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = FieldView;
    using difference_type = std::ptrdiff_t;
    using pointer = void;
    using reference = FieldView;

    Iterator(const FieldSchema* field, const std::byte* event) noexcept
        : field_(field), event_(event) {}
    FieldView operator*() const noexcept { return {*field_, event_}; }
    Iterator& operator++() noexcept {
      ++field_;
      return *this;
    }
    Iterator operator++(int) noexcept { return {field_++, event_}; }
    friend bool operator==(const Iterator&, const Iterator&) = default;

   private:
    const FieldSchema* field_;
    const std::byte* event_;
  };

  FieldsView(const Schema& schema, const std::byte* event) noexcept
      : fields_(schema.fields), event_(event) {}
  [[nodiscard]] Iterator begin() const noexcept { return {fields_.data(), event_}; }
  [[nodiscard]] Iterator end() const noexcept { return {fields_.data() + fields_.size(), event_}; }
  [[nodiscard]] std::size_t size() const noexcept { return fields_.size(); }
  [[nodiscard]] FieldView operator[](std::size_t i) const noexcept { return {fields_[i], event_}; }
  /// nullopt: the event has no field of that name.
  [[nodiscard]] std::optional<FieldView> find(std::string_view name) const noexcept {
    for (const FieldSchema& field : fields_) {
      if (field.name == name) return FieldView(field, event_);
    }
    return std::nullopt;
  }

 private:
  std::span<const FieldSchema> fields_;
  const std::byte* event_;
};

[[nodiscard]] inline FieldsView fields_of(const EventView& event) noexcept {
  return {event.schema(), event.bytes().data()};
}

}  // namespace ringmain
