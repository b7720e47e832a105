#include "adapters/sources/collective/loopback_types.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

namespace ringmain::collective::loopback::detail {
namespace {

constexpr ElementType kTypes[] = {
    {"float16", Kind::float16, 2}, {"bfloat16", Kind::bfloat16, 2}, {"float32", Kind::float32, 4},
    {"float64", Kind::float64, 8}, {"int8", Kind::int8, 1},         {"int16", Kind::int16, 2},
    {"int32", Kind::int32, 4},     {"int64", Kind::int64, 8},       {"uint8", Kind::uint8, 1},
    {"uint16", Kind::uint16, 2},   {"uint32", Kind::uint32, 4},     {"uint64", Kind::uint64, 8},
    {"bool", Kind::boolean, 1}};

constexpr bool is_float(Kind kind) noexcept {
  return kind <= Kind::float64;
}
constexpr bool is_arithmetic(ReduceOp by) noexcept {
  return by == ReduceOp::sum || by == ReduceOp::avg || by == ReduceOp::product;
}
constexpr bool is_of_bits(ReduceOp by) noexcept {
  return by == ReduceOp::bit_and || by == ReduceOp::bit_or || by == ReduceOp::bit_xor;
}

// How an element lies in memory, and what is calculated with.
template <class T>
struct Plain {
  using Stored = T;
  static T load(T stored) noexcept { return stored; }
  static T store(T value) noexcept { return value; }
};
struct Half {
  using Stored = std::uint16_t;
  static float load(Stored stored) noexcept { return widened(stored); }
  static Stored store(float value) noexcept { return narrowed(value); }
};
struct Brain {  // the upper half of a float32
  using Stored = std::uint16_t;
  static float load(Stored stored) noexcept {
    return std::bit_cast<float>(static_cast<std::uint32_t>(stored) << 16u);
  }
  static Stored store(float value) noexcept {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    if (std::isnan(value)) return static_cast<Stored>((bits >> 16u) | 0x40u);  // it stays quiet
    return static_cast<Stored>((bits + 0x7fffu + ((bits >> 16u) & 1u)) >> 16u);
  }
};
struct Truth {
  using Stored = std::uint8_t;
  static Stored load(Stored stored) noexcept { return stored != 0 ? 1 : 0; }
  static Stored store(Stored value) noexcept { return value; }
};

template <class T>
bool is_nan(T value) noexcept {
  if constexpr (std::is_floating_point_v<T>) return std::isnan(value);
  return false;
}

/// Two values become one. Integers by way of uint64_t, where nothing overflows.
template <ReduceOp by, class T>
T combined(T a, T b) noexcept {
  constexpr bool kWhole = std::is_integral_v<T>;
  using Wide = std::conditional_t<kWhole, std::uint64_t, T>;
  if constexpr (by == ReduceOp::product) {
    return static_cast<T>(static_cast<Wide>(a) * static_cast<Wide>(b));
  } else if constexpr (by == ReduceOp::min) {
    return b < a || is_nan(b) ? b : a;
  } else if constexpr (by == ReduceOp::max) {
    return a < b || is_nan(b) ? b : a;
  } else if constexpr (kWhole && by == ReduceOp::bit_and) {
    return static_cast<T>(a & b);
  } else if constexpr (kWhole && by == ReduceOp::bit_or) {
    return static_cast<T>(a | b);
  } else if constexpr (kWhole && by == ReduceOp::bit_xor) {
    return static_cast<T>(a ^ b);
  } else {
    return static_cast<T>(static_cast<Wide>(a) + static_cast<Wide>(b));
  }
}

template <class Type, ReduceOp by>
void reduce_all(std::span<const std::byte* const> values, std::uint64_t elements,
                std::byte* to) noexcept {
  using Stored = typename Type::Stored;
  const auto load = [](const std::byte* from, std::uint64_t at) {
    Stored stored;
    std::memcpy(&stored, from + at * sizeof(Stored), sizeof(Stored));
    return Type::load(stored);
  };
  for (std::uint64_t i = 0; i < elements; ++i) {
    auto all = load(values[0], i);
    for (const std::byte* const value : values.subspan(1)) all = combined<by>(all, load(value, i));
    if constexpr (by == ReduceOp::avg) all = all / static_cast<decltype(all)>(values.size());
    const Stored stored = Type::store(all);
    std::memcpy(to + i * sizeof(Stored), &stored, sizeof(Stored));
  }
}

template <class Type>
void reduce_as(ReduceOp by, std::span<const std::byte* const> values, std::uint64_t elements,
               std::byte* to) noexcept {
  switch (by) {
    case ReduceOp::sum:
      return reduce_all<Type, ReduceOp::sum>(values, elements, to);
    case ReduceOp::avg:
      return reduce_all<Type, ReduceOp::avg>(values, elements, to);
    case ReduceOp::product:
      return reduce_all<Type, ReduceOp::product>(values, elements, to);
    case ReduceOp::min:
      return reduce_all<Type, ReduceOp::min>(values, elements, to);
    case ReduceOp::max:
      return reduce_all<Type, ReduceOp::max>(values, elements, to);
    case ReduceOp::bit_and:
      return reduce_all<Type, ReduceOp::bit_and>(values, elements, to);
    case ReduceOp::bit_or:
      return reduce_all<Type, ReduceOp::bit_or>(values, elements, to);
    case ReduceOp::bit_xor:
      return reduce_all<Type, ReduceOp::bit_xor>(values, elements, to);
    case ReduceOp::premul_sum:
    case ReduceOp::other:
      return;  // fault_of() has refused them
  }
}

}  // namespace

const ElementType* find_type(std::string_view name) noexcept {
  for (const ElementType& one : kTypes) {
    if (one.name == name) return &one;
  }
  return nullptr;
}

std::string fault_of(const ElementType* type, std::string_view name, ReduceOp by) {
  if (by >= ReduceOp::other)
    return "reduction " + std::to_string(static_cast<int>(by)) +
           " is not known here; take one of collective::ReduceOp";
  const std::string what = std::string(to_string(by)) + " of " + std::string(name);
  if (type == nullptr) return what + ": only the bytes of this type can be moved; reduce another";
  if (by == ReduceOp::premul_sum) return what + " is not known here; multiply before, and take sum";
  if (by == ReduceOp::avg && !is_float(type->kind))
    return what + " is no whole number; take sum, and divide";
  if (is_arithmetic(by) && type->kind == Kind::boolean)
    return what + " is no truth; take bit_or, bit_and or bit_xor";
  if (is_of_bits(by) && is_float(type->kind))
    return what + " has no meaning; take integers, or another reduction";
  return {};
}

void reduce(Kind kind, ReduceOp by, std::span<const std::byte* const> values,
            std::uint64_t elements, std::byte* to) noexcept {
  switch (kind) {
    case Kind::float16:
      return reduce_as<Half>(by, values, elements, to);
    case Kind::bfloat16:
      return reduce_as<Brain>(by, values, elements, to);
    case Kind::float32:
      return reduce_as<Plain<float>>(by, values, elements, to);
    case Kind::float64:
      return reduce_as<Plain<double>>(by, values, elements, to);
    case Kind::int8:
      return reduce_as<Plain<std::int8_t>>(by, values, elements, to);
    case Kind::int16:
      return reduce_as<Plain<std::int16_t>>(by, values, elements, to);
    case Kind::int32:
      return reduce_as<Plain<std::int32_t>>(by, values, elements, to);
    case Kind::int64:
      return reduce_as<Plain<std::int64_t>>(by, values, elements, to);
    case Kind::uint8:
      return reduce_as<Plain<std::uint8_t>>(by, values, elements, to);
    case Kind::uint16:
      return reduce_as<Plain<std::uint16_t>>(by, values, elements, to);
    case Kind::uint32:
      return reduce_as<Plain<std::uint32_t>>(by, values, elements, to);
    case Kind::uint64:
      return reduce_as<Plain<std::uint64_t>>(by, values, elements, to);
    case Kind::boolean:
      return reduce_as<Truth>(by, values, elements, to);
  }
}

float widened(std::uint16_t half) noexcept {
  const int exponent = (half >> 10) & 0x1f, fraction = half & 0x3ff;
  float size;
  if (exponent == 0x1f) {
    size = fraction != 0 ? std::numeric_limits<float>::quiet_NaN()
                         : std::numeric_limits<float>::infinity();
  } else if (exponent == 0) {
    size = std::ldexp(static_cast<float>(fraction), -24);  // subnormal
  } else {
    size = std::ldexp(static_cast<float>(fraction | 0x400), exponent - 25);
  }
  return (half & 0x8000) != 0 ? -size : size;
}

std::uint16_t narrowed(float value) noexcept {
  const std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const float size = std::fabs(value);
  if (std::isnan(size)) return static_cast<std::uint16_t>(sign | 0x7e00);
  // Halfway between the greatest finite number, 65504, and what would be the next.
  if (size >= 65520) return static_cast<std::uint16_t>(sign | 0x7c00);
  // In units of the last place that the result has. Both steps are exact; lrint rounds to even.
  int exponent = -24;  // of 0, for which frexp says another
  if (size > 0) (void)std::frexp(size, &exponent);
  const int last = std::max(exponent - 11, -24);
  const auto units = static_cast<std::uint32_t>(std::nearbyint(std::ldexp(size, -last)));
  // A normal number has its leading bit, 0x400, and the exponent's field counts from last == -24;
  // where rounding reaches the next power of two, the addition carries into it.
  const std::uint32_t field = static_cast<std::uint32_t>(last + 24) << 10u;
  return static_cast<std::uint16_t>(sign | (field + units));
}

}  // namespace ringmain::collective::loopback::detail
