// What does a schema know of an event's fields, and which of it makes another hash?
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <gtest/gtest.h>

#include "bus/bus.hpp"

namespace ringmain::tests {

enum class Phase : std::uint8_t { instant, begin, end };
struct Everything {
  std::uint8_t u8;
  std::int16_t i16;
  std::uint32_t u32;
  std::int64_t i64;
  float f32;
  double f64;
  bool flag;
  Phase phase;
  Name name;
  Text<32> text;
};
constexpr auto describe(EventOf<Everything>) {
  return event("test.everything", field<&Everything::u8>("u8"), field<&Everything::i16>("i16"),
               field<&Everything::u32>("u32", Unit::device),
               field<&Everything::i64>("i64", Unit::ns), field<&Everything::f32>("f32"),
               field<&Everything::f64>("f64"), field<&Everything::flag>("flag"),
               field<&Everything::phase>("phase", "instant,begin,end"),
               field<&Everything::name>("name"), field<&Everything::text>("text"));
}

// The same but for one word each: hashes must differ.
struct TickA {
  std::uint64_t n;
};
struct TickB {
  std::uint64_t n;
};
struct TickC {
  std::int64_t n;
};
struct TickD {
  std::uint64_t n;
};
struct TickE {
  std::uint64_t n;
  std::uint64_t hidden;
};
constexpr auto describe(EventOf<TickA>) {
  return event("t", field<&TickA::n>("n"));
}
constexpr auto describe(EventOf<TickB>) {
  return event("t", field<&TickB::n>("m"));
}
constexpr auto describe(EventOf<TickC>) {
  return event("t", field<&TickC::n>("n"));
}
constexpr auto describe(EventOf<TickD>) {
  return event("t", field<&TickD::n>("n", Unit::ns));
}
constexpr auto describe(EventOf<TickE>) {
  return event("t", field<&TickE::n>("n"));
}

namespace {

TEST(SchemaTest, ItKnowsEveryFieldsPlaceKindAndUnit) {
  const Schema& s = schema<Everything>();
  EXPECT_EQ(s.name, "test.everything");
  EXPECT_EQ(s.bytes, sizeof(Everything));
  EXPECT_NE(s.type.find("Everything"), std::string_view::npos);
  ASSERT_EQ(s.fields.size(), 10u);
  const auto is = [&](std::size_t i, std::string_view name, Kind kind, std::size_t offset,
                      std::size_t bytes, Unit unit) {
    EXPECT_EQ(s.fields[i].name, name);
    EXPECT_EQ(s.fields[i].kind, kind) << name;
    EXPECT_EQ(s.fields[i].offset, offset) << name;
    EXPECT_EQ(s.fields[i].bytes, bytes) << name;
    EXPECT_EQ(s.fields[i].unit, unit) << name;
  };
  is(0, "u8", Kind::u8, offsetof(Everything, u8), 1, Unit::none);
  is(1, "i16", Kind::i16, offsetof(Everything, i16), 2, Unit::none);
  is(2, "u32", Kind::u32, offsetof(Everything, u32), 4, Unit::device);
  is(3, "i64", Kind::i64, offsetof(Everything, i64), 8, Unit::ns);
  is(4, "f32", Kind::f32, offsetof(Everything, f32), 4, Unit::none);
  is(5, "f64", Kind::f64, offsetof(Everything, f64), 8, Unit::none);
  is(6, "flag", Kind::boolean, offsetof(Everything, flag), 1, Unit::none);
  is(7, "phase", Kind::enumeration, offsetof(Everything, phase), 1, Unit::none);
  is(8, "name", Kind::name, offsetof(Everything, name), 4, Unit::none);
  is(9, "text", Kind::text, offsetof(Everything, text), 32, Unit::none);
  EXPECT_EQ(s.fields[7].enumerators, "instant,begin,end");
  EXPECT_EQ(&s, &schema<Everything>());
}

TEST(SchemaTest, AnotherNameKindUnitOrSizeIsAnotherHash) {
  const std::vector<std::uint64_t> hashes{schema_hash<TickA>(), schema_hash<TickB>(),
                                          schema_hash<TickC>(), schema_hash<TickD>(),
                                          schema_hash<TickE>()};
  for (std::size_t i = 0; i < hashes.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) EXPECT_NE(hashes[i], hashes[j]) << i << ", " << j;
  }
}

TEST(SchemaTest, EveryUnitKindAndCodeHasAWord) {
  for (int u = 0; u <= static_cast<int>(Unit::id); ++u)
    EXPECT_NE(to_string(static_cast<Unit>(u)), "?");
  for (int k = 0; k <= static_cast<int>(Kind::text); ++k)
    EXPECT_NE(to_string(static_cast<Kind>(k)), "?");
  for (int c = 0; c <= static_cast<int>(PublishCode::vetoed); ++c)
    EXPECT_NE(to_string(static_cast<PublishCode>(c)), "?");
  for (int d = 0; d <= static_cast<int>(Detached::was_not_attached); ++d)
    EXPECT_NE(to_string(static_cast<Detached>(d)), "?");
}

}  // namespace
}  // namespace ringmain::tests
