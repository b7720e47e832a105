// What is an event, and how does a sink read one whose type it does not know?
//
// An event is a plain struct. A function describe(EventOf<E>) beside it says its channel's name,
// its fields and their units; that one description serves sinks, recorder, wire and NumPy. No
// macro.
//
//   struct Step { std::uint64_t step; double loss; };
//   constexpr auto describe(ringmain::EventOf<Step>) {
//     return ringmain::event("train.step", ringmain::field<&Step::step>("step"),
//                            ringmain::field<&Step::loss>("loss"));
//   }
#pragma once
#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <typeinfo>

#include "../engine/publish/slot.hpp"

#include "text.hpp"

namespace ringmain {

template <class E>
concept Event =
    std::is_object_v<E> && std::is_trivially_copyable_v<E> && !std::is_pointer_v<E> &&
    !std::is_const_v<E> && (sizeof(E) <= engine::kPayloadBytesMax) && (alignof(E) <= 16);

enum class Unit : std::uint8_t { none, bytes, ns, address, count, device, stream, id };
enum class Kind : std::uint8_t {
  u8,
  u16,
  u32,
  u64,
  i8,
  i16,
  i32,
  i64,
  f32,
  f64,
  boolean,
  enumeration,
  name,
  text
};  // clang-format off
// clang-format on
[[nodiscard]] std::string_view to_string(Unit unit) noexcept;
[[nodiscard]] std::string_view to_string(Kind kind) noexcept;

/// One field of a described event. Views point into literals of the description.
struct FieldSchema {
  std::string_view name;
  std::string_view enumerators;  // "instant,begin,end" for an enumeration that says them, else ""
  std::uint16_t offset = 0;      // bytes from the start of the event
  std::uint16_t bytes = 0;
  Unit unit = Unit::none;
  Kind kind = Kind::u8;
};

/// What is known of an event type at run time. Lives as long as the process.
struct Schema {
  std::string_view name;  // the description's name; "" for a type without one
  // Of name, size, byte order, and each field's name, kind, unit, enumerators, size and offset:
  // equal for equal layouts, on whichever machine.
  std::uint64_t hash = 0;
  std::uint32_t bytes = 0;
  std::span<const FieldSchema> fields;
  std::string_view type;  // the C++ type, for messages
};

/// Who read the clock.
enum class TimeFrom : std::uint32_t {
  worker,     // when the event was taken from its lane: publishers are not charged for a clock
  publisher,  // when it was published: somebody subscribed with stamps
  source      // the source gave it: recorded time in a replay
};

/// Where an event comes from and when.
struct Stamp {
  std::int64_t time_ns = 0;     // CLOCK_MONOTONIC, or the source's own clock
  std::uint64_t sequence = 0;   // 1, 2, 3 … per publisher; a gap is as many lost events
  std::uint32_t publisher = 0;  // unique in the process, never used again
  TimeFrom time_from = TimeFrom::worker;
};

/// Where the training loop was when an event was published, if its steps are followed
/// (events/step.hpp).
struct StepPlace {
  bool inside = false;  // false: in no step, or not known
  std::uint64_t step = 0;
  Name phase;                     // Name{}: in none
  std::uint32_t micro_batch = 0;  // from 1; 0: in none
  friend bool operator==(const StepPlace&, const StepPlace&) = default;
};

template <class E>
struct EventOf {};  // the tag by which describe() is found beside E

namespace detail {
template <class T>
struct IsText : std::false_type {};
template <std::size_t N>
struct IsText<Text<N>> : std::true_type {};

template <class T>
constexpr Kind kind_of() {
  if constexpr (std::is_enum_v<T>)
    return Kind::enumeration;
  else if constexpr (std::same_as<T, Name>)
    return Kind::name;
  else if constexpr (IsText<T>::value)
    return Kind::text;
  else if constexpr (std::same_as<T, bool>)
    return Kind::boolean;
  else if constexpr (std::same_as<T, float>)
    return Kind::f32;
  else if constexpr (std::same_as<T, double>)
    return Kind::f64;
  else {
    static_assert(std::integral<T> && sizeof(T) <= 8,
                  "a field is an integer, a float, a bool, an enumeration, a Name or a Text<N>");
    constexpr Kind kUnsigned[] = {Kind::u8, Kind::u16, Kind::u32, Kind::u64};
    constexpr Kind kSigned[] = {Kind::i8, Kind::i16, Kind::i32, Kind::i64};
    constexpr int kLog = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
    return std::unsigned_integral<T> ? kUnsigned[kLog] : kSigned[kLog];
  }
}
template <class M>
struct MemberOf;
template <class C, class T>
struct MemberOf<T C::*> {
  using Class = C;
  using Type = T;
};

constexpr std::uint64_t hash_number(std::uint64_t h, std::uint64_t n) noexcept {  // FNV-1a
  return (h ^ n) * 0x100000001b3ull;
}
constexpr std::uint64_t hash_bytes(std::uint64_t h, std::string_view s) noexcept {
  for (char c : s) h = hash_number(h, static_cast<unsigned char>(c));
  return hash_number(h, 0xffu);
}
/// The hash before any field. It covers the byte order, because the same bytes are other numbers in
/// another order.
constexpr std::uint64_t hash_start(std::endian order = std::endian::native) noexcept {
  return hash_number(0xcbf29ce484222325ull, order == std::endian::little ? 1 : 2);
}
/// The hash of an event with these fields. Only here is said what a hash covers.
constexpr std::uint64_t hash_of(std::string_view name, std::span<const FieldSchema> fields,
                                std::uint64_t bytes,
                                std::endian order = std::endian::native) noexcept {
  std::uint64_t h = hash_bytes(hash_start(order), name);
  for (const FieldSchema& f : fields) {
    h = hash_bytes(hash_bytes(h, f.name), f.enumerators);
    for (const std::uint64_t n :
         {static_cast<std::uint64_t>(f.unit), static_cast<std::uint64_t>(f.kind),
          std::uint64_t{f.bytes}, std::uint64_t{f.offset}})
      h = hash_number(h, n);
  }
  return hash_number(h, bytes);
}

// EDG (nvcc, nvc++) does not compare addresses within a union at compile time: there the offsets
// are computed at run time, with the same result.
#if defined(__EDG__) || defined(__CUDACC__)
#define RINGMAIN_LAYOUT_CONST
#define RINGMAIN_LAYOUT_CONST_OR_NOT inline
#else
#define RINGMAIN_LAYOUT_CONST consteval
#define RINGMAIN_LAYOUT_CONST_OR_NOT constexpr
#endif

/// A union with an event's bytes, to find out where its members lie.
template <class C>
union InBytes {
  char none;
  std::byte bytes[sizeof(C)];
  C event;
  constexpr InBytes() noexcept : none{} {}
};
template <class C>
inline constexpr InBytes<C> in_bytes{};

/// Where something of an E lies that is at this address in in_bytes<E>.
template <class E>
RINGMAIN_LAYOUT_CONST_OR_NOT std::uint16_t offset_in(const void* at) noexcept {
  std::uint16_t offset = 0;
  while (static_cast<const void*>(&in_bytes<E>.bytes[offset]) != at) ++offset;
  return offset;
}
template <auto Member>
RINGMAIN_LAYOUT_CONST_OR_NOT std::uint16_t offset_of() noexcept {
  using C = typename MemberOf<decltype(Member)>::Class;
  return offset_in<C>(__builtin_addressof(in_bytes<C>.event.*Member));
}
/// Where the part of an E lies that it inherits from C; 0 for E itself.
template <class E, class C>
RINGMAIN_LAYOUT_CONST_OR_NOT std::uint16_t offset_of_part() noexcept {
  if constexpr (std::same_as<E, C>) return 0;
  static_assert(std::is_base_of_v<C, E>, "a field is a member of its event, or is inherited by it");
  const C* const part = __builtin_addressof(in_bytes<E>.event);
  return offset_in<E>(part);
}
}  // namespace detail

/// One field, as a description says it. No type of its own for each member: an event has twenty,
/// and whoever includes it would compile them all.
struct FieldOfClass {
  std::string_view name;
  std::string_view enumerators;
  std::uint16_t (*offset)() noexcept = nullptr;  // in the class that has the member
  std::uint16_t bytes = 0;
  Unit unit = Unit::none;
  Kind kind = Kind::u8;
};
template <class C>
struct Field : FieldOfClass {};

namespace detail {
template <auto Member>
constexpr auto make_field(std::string_view name, Unit unit, std::string_view enumerators) {
  using Of = MemberOf<decltype(Member)>;
  using T = typename Of::Type;
  return Field<typename Of::Class>{
      {name, enumerators, &offset_of<Member>, sizeof(T), unit, kind_of<T>()}};
}
}  // namespace detail

template <auto Member>
constexpr auto field(std::string_view name, Unit unit = Unit::none) {
  return detail::make_field<Member>(name, unit, {});
}
/// A field of an enumeration whose values 0, 1, 2 … sinks print as these comma-separated words.
template <auto Member>
constexpr auto field(std::string_view name, std::string_view enumerators) {
  return detail::make_field<Member>(name, Unit::none, enumerators);
}

/// What describe() returns; C: the class that has each field.
template <class... C>
struct Description {
  std::string_view name;
  std::array<FieldOfClass, sizeof...(C)> fields;
};
template <class... C>
constexpr Description<C...> event(std::string_view name, Field<C>... fields) {
  return {name, {static_cast<const FieldOfClass&>(fields)...}};
}

template <class E>
concept Described = Event<E> && requires {
  { describe(EventOf<E>{}).name } -> std::convertible_to<std::string_view>;
};

namespace detail {
template <class E, class... C>
RINGMAIN_LAYOUT_CONST_OR_NOT auto fields_in(const Description<C...>& told) {
  const std::array<std::uint16_t, sizeof...(C)> parts{offset_of_part<E, C>()...};
  std::array<FieldSchema, sizeof...(C)> fields{};
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const FieldOfClass& f = told.fields[i];
    fields[i] = {f.name,  f.enumerators, static_cast<std::uint16_t>(parts[i] + f.offset()),
                 f.bytes, f.unit,        f.kind};
  }
  return fields;
}
template <Described E>
RINGMAIN_LAYOUT_CONST auto fields_of() {
  return fields_in<E>(describe(EventOf<E>{}));
}
}  // namespace detail

/// Equal exactly for equal names, sizes, byte orders, and fields of equal names, kinds, units,
/// enumerators, sizes and offsets: what as<E>() and channel<E>() compare.
template <Described E>
RINGMAIN_LAYOUT_CONST std::uint64_t schema_hash() {
  const auto fields = detail::fields_of<E>();
  return detail::hash_of(describe(EventOf<E>{}).name, fields, sizeof(E));
}

namespace detail {
/// Keeps one copy of each schema for the life of the process. Takes a lock.
const Schema& keep_schema(const Schema& made);
/// One sentence: the channel holds another event than is asked for.
[[nodiscard]] std::string conflict_of(std::string_view channel, const Schema& has,
                                      const Schema& asked);

/// The type's name for messages; of a type without a description it is also what tells it from
/// others, so there it is the same in all programs.
template <class E>
std::string_view type_name() noexcept {
#if defined(__cpp_rtti)
  return typeid(E).name();
#else
  static_assert(
      Described<E>,
      "without RTTI (-fno-rtti) an event needs a description: write describe(EventOf<E>)");
  constexpr std::string_view kWhole =
      __PRETTY_FUNCTION__;  // "… [with E = Step; …" or "… [E = Step]"
  constexpr std::size_t kAt = kWhole.find("E = ") + 4;
  return kWhole.substr(kAt, kWhole.find_first_of(";]", kAt) - kAt);
#endif
}

template <Described E>
const Schema& make_schema() {
  const auto fields = fields_of<E>();
  return keep_schema(
      {describe(EventOf<E>{}).name, schema_hash<E>(), sizeof(E), fields, type_name<E>()});
}
}  // namespace detail

/// The run-time description of E: computed at the first call. Takes a lock: not for hot paths.
template <Event E>
const Schema& schema() {
  if constexpr (Described<E>) {
    return detail::make_schema<E>();
  } else {
    const std::string_view type = detail::type_name<E>();
    return detail::keep_schema(
        {{},
         detail::hash_bytes(detail::hash_number(detail::hash_start(), sizeof(E)), type),
         sizeof(E),
         {},
         type});
  }
}

/// One event of a type known only at run time. Valid during the callback only.
class EventView {
 public:
  EventView(std::string_view channel, const Schema& schema, const std::byte* event,
            const Stamp& stamp) noexcept
      : channel_(channel), schema_(&schema), event_(event), stamp_(&stamp) {}
  /// The same event, and the step in which it was published; `in` must live as long as this.
  EventView(const EventView& event, const StepPlace& in) noexcept : EventView(event) { in_ = &in; }

  [[nodiscard]] std::string_view channel() const noexcept { return channel_; }
  [[nodiscard]] const Schema& schema() const noexcept { return *schema_; }
  [[nodiscard]] const Stamp& stamp() const noexcept { return *stamp_; }
  /// Known to sinks, and to subscribers with steps.
  [[nodiscard]] StepPlace in_step() const noexcept { return in_ == nullptr ? StepPlace{} : *in_; }
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept {
    return {event_, schema_->bytes};
  }
  /// The event as an E, or nullptr when it is another type.
  template <Described E>
  [[nodiscard]] const E* as() const noexcept {
    return schema_->hash == schema_hash<E>() ? reinterpret_cast<const E*>(event_) : nullptr;
  }

 private:
  std::string_view channel_;
  const Schema* schema_;
  const std::byte* event_;
  const Stamp* stamp_;
  const StepPlace* in_ = nullptr;
};

}  // namespace ringmain
