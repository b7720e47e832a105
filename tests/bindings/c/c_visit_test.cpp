// Does C get each field of an event of any type, with its value?
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "bus/bus.hpp"

#include "bindings/c/ringmain.h"

namespace {

enum class Mood : std::uint8_t { calm, odd };
struct Mixed {
  std::uint16_t u16 = 7;
  std::int8_t i8 = -3;
  float f32 = 0.5f;
  double f64 = 0.25;
  bool yes = true;
  Mood mood = Mood::odd;
  Mood bare = Mood::odd;
  ringmain::Name name;
  ringmain::Text<8> text;
};
constexpr auto describe(ringmain::EventOf<Mixed>) {
  using E = Mixed;
  using ringmain::field;
  return ringmain::event("visit.mixed", field<&E::u16>("u16", ringmain::Unit::bytes),
                         field<&E::i8>("i8"), field<&E::f32>("f32"), field<&E::f64>("f64"),
                         field<&E::yes>("yes"), field<&E::mood>("mood", "calm,odd"),
                         field<&E::bare>("bare"), field<&E::name>("name"), field<&E::text>("text"));
}

struct Visits {
  std::vector<std::string> said{};
  std::size_t most = 100;
};

std::string words_of(const ringmain_value& value) {
  const std::string text(value.text == nullptr ? "" : value.text, value.text_bytes);
  switch (value.kind) {
    case RINGMAIN_U64:
      return "u " + std::to_string(value.u64);
    case RINGMAIN_I64:
      return "i " + std::to_string(value.i64);
    case RINGMAIN_F64:
      return "f " + std::to_string(value.f64);
    case RINGMAIN_BOOL:
      return "b " + std::to_string(value.u64);
    case RINGMAIN_ENUM:
      return "e " + std::to_string(value.u64) + (value.text == nullptr ? "" : " " + text);
    default:
      return "t " + text + (value.cut != 0 ? " (cut)" : "");
  }
}

int note(void* user, const ringmain_field* field, const ringmain_value* value) {
  Visits& visits = *static_cast<Visits*>(user);
  EXPECT_EQ(value->bytes, sizeof *value);
  visits.said.push_back(std::string(field->name) + " " + words_of(*value));
  return visits.said.size() >= visits.most ? 1 : 0;
}

class CVisitTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(ringmain_open(nullptr, &bus), RINGMAIN_OK);
    ASSERT_EQ(ringmain_mailbox_open_pattern(bus, "visit.*", nullptr, &mailbox), RINGMAIN_OK);
  }
  void TearDown() override {
    ringmain_mailbox_close(mailbox);
    EXPECT_EQ(ringmain_close(bus, -1), RINGMAIN_OK);
  }
  /// An event as a mailbox gives it.
  ringmain_event take() {
    ringmain_event heard{};
    heard.bytes = sizeof heard;
    EXPECT_EQ(ringmain_flush(bus, -1), RINGMAIN_OK);
    EXPECT_EQ(ringmain_mailbox_take(mailbox, place, sizeof place, &heard), RINGMAIN_OK);
    return heard;
  }

  ringmain_bus* bus = nullptr;
  ringmain_mailbox* mailbox = nullptr;
  alignas(16) unsigned char place[RINGMAIN_EVENT_BYTES_MAX];
};

/// Fields as C describes them.
void publish_mixed(ringmain_bus* bus) {
  Mixed event;
  event.name = ringmain::Name("n");
  event.text = std::string_view("too long");
  const ringmain::Schema& schema = ringmain::schema<Mixed>();
  std::vector<ringmain_field> fields;
  std::vector<std::string> words(2 * schema.fields.size());
  for (std::size_t i = 0; i < schema.fields.size(); ++i) {
    const auto& f = schema.fields[i];
    words[2 * i] = f.name;
    words[2 * i + 1] = f.enumerators;
    fields.push_back({words[2 * i].c_str(), words[2 * i + 1].c_str(),
                      static_cast<std::uint32_t>(f.kind), static_cast<std::uint32_t>(f.unit),
                      f.offset, f.bytes});
  }
  const ringmain_event_type type{sizeof type, sizeof event,          "visit.mixed", fields.data(),
                                 9,           sizeof(ringmain_field)};
  ringmain_channel* channel = nullptr;
  ASSERT_EQ(ringmain_define(bus, &type, &channel), RINGMAIN_OK) << ringmain_last_error();
  ASSERT_EQ(ringmain_publish(channel, &event, sizeof event), RINGMAIN_OK);
}

TEST_F(CVisitTest, EachFieldComesInItsOrderWithItsValue) {
  publish_mixed(bus);
  const ringmain_event heard = take();
  Visits visits;
  ASSERT_EQ(ringmain_event_visit(&heard, note, &visits), RINGMAIN_OK);
  const std::vector<std::string> want{"u16 u 7",        "i8 i -3",  "f32 f 0.500000",
                                      "f64 f 0.250000", "yes b 1",  "mood e 1 odd",
                                      "bare e 1",       "name t n", "text t too lo (cut)"};
  EXPECT_EQ(visits.said, want);
}

TEST_F(CVisitTest, ItEndsWhereTheVisitorSaysSo) {
  publish_mixed(bus);
  const ringmain_event heard = take();
  Visits visits{.most = 2};
  ASSERT_EQ(ringmain_event_visit(&heard, note, &visits), RINGMAIN_OK);
  EXPECT_EQ(visits.said.size(), 2u);
}

TEST_F(CVisitTest, WhatWasNotHeardIsRefusedInASentence) {
  ringmain_event heard{};
  EXPECT_EQ(ringmain_event_visit(nullptr, note, nullptr), RINGMAIN_REFUSED);
  EXPECT_EQ(ringmain_event_visit(&heard, note, nullptr), RINGMAIN_REFUSED);
  EXPECT_NE(std::string(ringmain_last_error()).find("was not heard"), std::string::npos);
  publish_mixed(bus);
  heard = take();
  EXPECT_EQ(ringmain_event_visit(&heard, nullptr, nullptr), RINGMAIN_REFUSED);
  EXPECT_NE(std::string(ringmain_last_error()).find("visit is NULL"), std::string::npos);
}

TEST(CUnitTest, EachUnitHasTheNameThatSinksWrite) {
  EXPECT_STREQ(ringmain_unit_name(RINGMAIN_UNIT_NONE), "");
  EXPECT_STREQ(ringmain_unit_name(RINGMAIN_UNIT_NS), "ns");
  EXPECT_STREQ(ringmain_unit_name(RINGMAIN_UNIT_ID), "id");
  EXPECT_STREQ(ringmain_unit_name(RINGMAIN_UNIT_ID + 1), "");
}

}  // namespace
