// Does whoever visits an event's fields get each value as it was published?
#include "bus/fields.hpp"

#include <limits>
#include <string>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "bus/bus.hpp"

namespace ringmain {
namespace {

enum class Wide : std::uint32_t { none, some };
enum class Flag : std::uint8_t { off, on, odd };

struct Everything {
  std::uint8_t u8 = 0;
  std::uint16_t u16 = 0;
  std::uint32_t u32 = 0;
  std::uint64_t u64 = 0;
  std::int8_t i8 = 0;
  std::int16_t i16 = 0;
  std::int32_t i32 = 0;
  std::int64_t i64 = 0;
  float f32 = 0;
  double f64 = 0;
  bool yes = false;
  Flag flag = Flag::off;
  Wide bare = Wide::none;
  Name name;
  Text<16> text;
};
constexpr auto describe(EventOf<Everything>) {
  using E = Everything;
  return event("fields.everything", field<&E::u8>("u8", Unit::count), field<&E::u16>("u16"),
               field<&E::u32>("u32"), field<&E::u64>("u64", Unit::bytes), field<&E::i8>("i8"),
               field<&E::i16>("i16"), field<&E::i32>("i32"), field<&E::i64>("i64", Unit::ns),
               field<&E::f32>("f32"), field<&E::f64>("f64"), field<&E::yes>("yes"),
               field<&E::flag>("flag", "off,on"), field<&E::bare>("bare"), field<&E::name>("name"),
               field<&E::text>("text"));
}

using Value = std::variant<std::uint64_t, std::int64_t, float, double, bool, std::string,
                           std::pair<std::uint64_t, std::string>>;

struct Taken {
  Value operator()(std::string_view text) const { return std::string(text); }
  Value operator()(Enumerator one) const {
    return std::pair{one.value, std::string(one.word.value_or("(none)"))};
  }
  Value operator()(auto value) const { return value; }
};

std::vector<Value> values_of(const Everything& event) {
  const Stamp stamp;
  const EventView view("fields.everything", schema<Everything>(),
                       reinterpret_cast<const std::byte*>(&event), stamp);
  std::vector<Value> values;
  for (const FieldView field : fields_of(view)) values.push_back(field.visit(Taken{}));
  return values;
}

TEST(FieldsTest, EachValueHasItsOwnTypeAndIsWhole) {
  Everything event;
  event.u8 = std::numeric_limits<std::uint8_t>::max();
  event.u16 = std::numeric_limits<std::uint16_t>::max();
  event.u32 = std::numeric_limits<std::uint32_t>::max();
  event.u64 = std::numeric_limits<std::uint64_t>::max();
  event.i8 = std::numeric_limits<std::int8_t>::min();
  event.i16 = std::numeric_limits<std::int16_t>::min();
  event.i32 = std::numeric_limits<std::int32_t>::min();
  event.i64 = std::numeric_limits<std::int64_t>::min();
  event.f32 = 0.1f;
  event.f64 = 0.1;
  event.yes = true;
  event.flag = Flag::on;
  event.bare = Wide::some;
  event.name = Name("all_reduce");
  event.text = std::string_view("a\"b");
  const std::vector<Value> want{std::uint64_t{255},
                                std::uint64_t{65535},
                                std::uint64_t{4294967295u},
                                std::numeric_limits<std::uint64_t>::max(),
                                std::int64_t{-128},
                                std::int64_t{-32768},
                                std::int64_t{-2147483648ll},
                                std::numeric_limits<std::int64_t>::min(),
                                0.1f,
                                0.1,
                                true,
                                std::pair{std::uint64_t{1}, std::string("on")},
                                std::pair{std::uint64_t{1}, std::string("(none)")},
                                std::string("all_reduce"),
                                std::string("a\"b")};
  EXPECT_EQ(values_of(event), want);
}

TEST(FieldsTest, AnEnumeratorWithoutAWordIsItsNumber) {
  Everything event;
  event.flag = Flag::odd;
  EXPECT_EQ(values_of(event)[11], Value(std::pair{std::uint64_t{2}, std::string("(none)")}));
}

TEST(FieldsTest, NamesUnitsAndKindsAreThoseOfTheDescription) {
  const Everything event;
  const FieldsView fields(schema<Everything>(), reinterpret_cast<const std::byte*>(&event));
  EXPECT_EQ(fields.size(), 15u);
  EXPECT_EQ(fields[0].name(), "u8");
  EXPECT_EQ(fields[0].unit(), Unit::count);
  EXPECT_EQ(fields[7].unit(), Unit::ns);
  EXPECT_EQ(fields[14].kind(), Kind::text);
  ASSERT_TRUE(fields.find("f64"));
  EXPECT_EQ(fields.find("f64")->kind(), Kind::f64);
  EXPECT_FALSE(fields.find("f6"));
}

TEST(FieldsTest, ACutTextSaysSo) {
  Everything event;
  event.text = std::string_view("fourteen bytes");
  const FieldsView fields(schema<Everything>(), reinterpret_cast<const std::byte*>(&event));
  EXPECT_FALSE(fields[14].cut());
  event.text = std::string_view("fifteen letters");
  EXPECT_TRUE(fields[14].cut());
  EXPECT_FALSE(fields[0].cut());
}

TEST(FieldsTest, ATextWhoseSizeIsWrongDoesNotLeadPastItsField) {
  Everything event;
  const std::uint16_t size = 0x7fff;
  std::memcpy(static_cast<void*>(&event.text), &size, sizeof size);
  EXPECT_EQ(std::get<std::string>(values_of(event)[14]).size(), 14u);
}

TEST(FieldsTest, AnEventWithoutDescriptionHasNone) {
  struct Plain {
    int number = 3;
  } event;
  const FieldsView fields(schema<Plain>(), reinterpret_cast<const std::byte*>(&event));
  EXPECT_EQ(fields.begin(), fields.end());
}

}  // namespace
}  // namespace ringmain
