// Is an event that C describes the same event to C++, and is a wrong description refused?
#include <cstddef>
#include <functional>
#include <vector>

#include "bus/bus.hpp"
#include "bus/core/erased.hpp"

#include "tests/bindings/c/c_support.hpp"

namespace ringmain::tests {
namespace {

enum class Edge : std::uint8_t { begin, end };
struct Place {
  std::uint64_t step = 0;
  double loss = 0;
  Name phase;
  Edge edge = Edge::begin;
  bool last = false;
  Text<16> note;
};
constexpr auto describe(EventOf<Place>) {
  return event("c.place", field<&Place::step>("step", Unit::id), field<&Place::loss>("loss"),
               field<&Place::phase>("phase"), field<&Place::edge>("edge", "begin,end"),
               field<&Place::last>("last"), field<&Place::note>("note"));
}

struct CPlace {
  std::uint64_t step;
  double loss;
  std::uint32_t phase;
  std::uint8_t edge;
  std::uint8_t last;
  char note[16];
};
static_assert(sizeof(CPlace) == sizeof(Place) && offsetof(CPlace, note) == 22);

std::vector<ringmain_field> place_fields() {
  std::vector<ringmain_field> fields = {
      RINGMAIN_FIELD(CPlace, step, RINGMAIN_U64, RINGMAIN_UNIT_ID),
      RINGMAIN_FIELD(CPlace, loss, RINGMAIN_F64, RINGMAIN_UNIT_NONE),
      RINGMAIN_FIELD(CPlace, phase, RINGMAIN_NAME, RINGMAIN_UNIT_NONE),
      RINGMAIN_FIELD(CPlace, edge, RINGMAIN_ENUM, RINGMAIN_UNIT_NONE),
      RINGMAIN_FIELD(CPlace, last, RINGMAIN_BOOL, RINGMAIN_UNIT_NONE),
      RINGMAIN_FIELD(CPlace, note, RINGMAIN_TEXT, RINGMAIN_UNIT_NONE)};
  fields[3].enumerators = "begin,end";
  return fields;
}
ringmain_event_type place_type(const std::vector<ringmain_field>& fields) {
  return {sizeof(ringmain_event_type),
          sizeof(CPlace),
          "c.place",
          fields.data(),
          static_cast<std::uint32_t>(fields.size()),
          sizeof(ringmain_field)};
}

class CDefineTest : public CBusTest {
 protected:
  void expect_refused(std::function<void(ringmain_event_type&, std::vector<ringmain_field>&)> spoil,
                      const std::string& part, ringmain_code code = RINGMAIN_REFUSED) {
    std::vector<ringmain_field> fields = place_fields();
    ringmain_event_type type = place_type(fields);
    spoil(type, fields);
    type.fields = fields.data();
    ringmain_channel* untouched = ticks_;
    expect_error(ringmain_define(bus_, &type, &untouched), code, part);
    EXPECT_EQ(untouched, ticks_);
  }
};

TEST_F(CDefineTest, WhatCSaysIsHeardByItsCppTypeAndFieldByField) {
  ringmain_bus* bus = nullptr;
  expect_ok(ringmain_open_process(&bus));
  const auto fields = place_fields();
  const auto type = place_type(fields);
  ringmain_channel* places = nullptr;
  expect_ok(ringmain_define(bus, &type, &places));
  Place heard;
  const Subscription hearing =
      Bus::process().channel<Place>().subscribe([&heard](const Place& p) { heard = p; });
  CPlace said{7, 0.5, ringmain_name("forward", 7), 1, 1, {}};
  expect_ok(ringmain_set_text(said.note, sizeof said.note, "a note too long", 15));
  expect_ok(ringmain_publish(places, &said, sizeof said));
  expect_ok(ringmain_flush(bus, -1));
  EXPECT_EQ(heard.step, 7u);
  EXPECT_EQ(heard.loss, 0.5);
  EXPECT_EQ(heard.phase.view(), "forward");
  EXPECT_EQ(heard.edge, Edge::end);
  EXPECT_TRUE(heard.last);
  EXPECT_EQ(heard.note.view(), "a note too lon");
  EXPECT_TRUE(heard.note.cut());
  std::size_t bytes = 0;
  EXPECT_EQ(std::string(ringmain_text(&heard.note, sizeof heard.note, &bytes), 3), "a n");
  EXPECT_EQ(bytes, 14u);

  ringmain_field field{};
  expect_ok(ringmain_channel_field(places, 3, &field));
  EXPECT_STREQ(field.name, "edge");
  EXPECT_STREQ(field.enumerators, "begin,end");
  EXPECT_EQ(field.offset, offsetof(CPlace, edge));
  EXPECT_EQ(field.type, std::uint32_t{RINGMAIN_ENUM});
  expect_error(ringmain_channel_field(places, 6, &field), RINGMAIN_NOT_FOUND, "no field 6, only 6");
  EXPECT_EQ(ringmain_channel_event_bytes(places), sizeof(CPlace));
  expect_ok(ringmain_close(bus, -1));
}

TEST_F(CDefineTest, TheSameEventIsTheSameChannelFromWhereverItComes) {
  ringmain_channel* again = nullptr;
  const auto type = tick_type();
  expect_ok(ringmain_define(bus_, &type, &again));
  EXPECT_EQ(again, ticks_);
  expect_ok(ringmain_find(bus_, "c.tick", &again));
  EXPECT_EQ(again, ticks_);
  expect_error(ringmain_find(bus_, "c.tock", &again), RINGMAIN_NOT_FOUND, "'c.tock'");
}

TEST_F(CDefineTest, AnotherEventOfAKnownNameIsAConflict) {
  expect_refused([](auto& type, auto&) { type.name = "c.tick"; },
                 "channel 'c.tick' holds a C event of 16 bytes", RINGMAIN_CONFLICT);
}

TEST_F(CDefineTest, TheSameFieldsElsewhereAreAConflict) {
  const auto fields = place_fields();
  const auto type = place_type(fields);
  ringmain_channel* places = nullptr;
  expect_ok(ringmain_define(bus_, &type, &places));
  expect_refused([](auto&, auto& rows) { std::swap(rows[3].offset, rows[4].offset); },
                 "field 'edge' at offset 20, not 21", RINGMAIN_CONFLICT);
}

TEST_F(CDefineTest, WhatIsNoEventIsRefusedInASentence) {
  expect_refused([](auto& t, auto&) { t.name = nullptr; }, "name is NULL");
  expect_refused([](auto& t, auto&) { t.name = ""; }, "name is empty");
  expect_refused([](auto& t, auto&) { t.name = "a..b"; }, "empty token");
  expect_refused([](auto& t, auto&) { t.name = ".b"; }, "empty token");
  expect_refused([](auto& t, auto&) { t.name = "a.*"; }, "leave them out");
  expect_refused([](auto& t, auto&) { t.name = "a b"; }, "leave them out");
  const std::string long_name(256, 'x');
  expect_refused([&](auto& t, auto&) { t.name = long_name.c_str(); }, "more than 255 bytes");
  expect_refused([](auto& t, auto&) { t.event_bytes = 0; }, "an event has 1 … 1024");
  expect_refused([](auto& t, auto&) { t.event_bytes = 1025; }, "an event has 1 … 1024");
  expect_refused([](auto& t, auto&) { t.bytes = 4; }, "ringmain_event_type.bytes is 4");
  expect_refused([](auto& t, auto&) { t.bytes = 0; }, "set it to sizeof(ringmain_event_type)");
  expect_refused([](auto& t, auto&) { t.field_bytes = 8; }, "field_bytes is 8");
  expect_refused([](auto& t, auto&) { t.fields_count = 1000; }, "more fields than bytes");
}

TEST_F(CDefineTest, AFieldThatCannotBeIsNamed) {
  expect_refused([](auto&, auto& f) { f[1].name = nullptr; }, "field 1 has no name");
  expect_refused([](auto&, auto& f) { f[1].name = ""; }, "field 1 has no name");
  expect_refused([](auto&, auto& f) { f[1].name = "step"; }, "two fields 'step'");
  expect_refused([](auto&, auto& f) { f[1].type = 14; }, "'loss' is of type 14");
  expect_refused([](auto&, auto& f) { f[1].unit = 8; }, "'loss' is in unit 8");
  expect_refused([](auto&, auto& f) { f[1].size = 4; },
                 "'loss' has 4 bytes, which no RINGMAIN_F64");
  expect_refused([](auto&, auto& f) { f[3].size = 3; }, "'edge' has 3 bytes");
  expect_refused([](auto&, auto& f) { f[5].size = 12; }, "'note' has 12 bytes");
  expect_refused([](auto&, auto& f) { f[0].enumerators = "a,b"; }, "'step' has enumerators");
  expect_refused([](auto&, auto& f) { f[0].offset = 40; }, "'step' ends at byte 48 of 40");
  expect_refused([](auto&, auto& f) { f[0].offset = ~7u; }, "ends at byte 4294967296 of 40");
  expect_refused([](auto&, auto& f) { f[2].offset = 18; }, "'phase' lies at offset 18");
  expect_refused([](auto&, auto& f) { f[1].offset = 0; }, "share bytes");
}

TEST_F(CDefineTest, ALongerStructOfANewerCallerIsTakenWhileItsRestIsZero) {
  struct Newer {
    ringmain_event_type known;
    std::uint64_t added;
  } newer{tick_type("c.newer"), 0};
  newer.known.bytes = sizeof newer;
  ringmain_channel* channel = nullptr;
  expect_ok(ringmain_define(bus_, &newer.known, &channel));
  newer.added = 1;
  expect_error(ringmain_define(bus_, &newer.known, &channel), RINGMAIN_REFUSED,
               "does not know; leave it 0");
}

TEST_F(CDefineTest, AHashOfAnEventIsTheOneThatCppComputes) {
  EXPECT_EQ(detail::schema_hash_of(schema<Place>()), schema_hash<Place>());
}

TEST_F(CDefineTest, NullIsRefusedAndSaysWhichArgument) {
  const auto type = tick_type();
  ringmain_channel* channel = nullptr;
  ringmain_field field{};
  expect_error(ringmain_define(nullptr, &type, &channel), RINGMAIN_REFUSED, "bus is NULL");
  expect_error(ringmain_define(bus_, nullptr, &channel), RINGMAIN_REFUSED, "type is NULL");
  expect_error(ringmain_define(bus_, &type, nullptr), RINGMAIN_REFUSED, "channel is NULL");
  expect_error(ringmain_find(nullptr, "x", &channel), RINGMAIN_REFUSED, "bus is NULL");
  expect_error(ringmain_find(bus_, nullptr, &channel), RINGMAIN_REFUSED, "name is NULL");
  expect_error(ringmain_find(bus_, "x", nullptr), RINGMAIN_REFUSED, "channel is NULL");
  expect_error(ringmain_channel_field(nullptr, 0, &field), RINGMAIN_REFUSED, "channel is NULL");
  expect_error(ringmain_channel_field(ticks_, 0, nullptr), RINGMAIN_REFUSED, "field is NULL");
  EXPECT_EQ(ringmain_channel_event_bytes(nullptr), 0u);
  ringmain_event_type none = type;
  none.fields = nullptr;
  expect_error(ringmain_define(bus_, &none, &channel), RINGMAIN_REFUSED, "fields is NULL");
}

}  // namespace
}  // namespace ringmain::tests
