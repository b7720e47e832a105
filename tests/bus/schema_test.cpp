// Is an event whose fields lie elsewhere another event, wherever two are compared?
#include <bit>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include <gtest/gtest.h>

#include "bus/bus.hpp"
#include "bus/core/erased.hpp"

#include "tests/bus/events.hpp"

namespace ringmain::tests {

/// The same fields by the same names, described in the same order, in two layouts.
struct Copied {
  std::uint64_t bytes = 0, stream = 0;
};
struct Swapped {
  std::uint64_t stream = 0, bytes = 0;
};
constexpr auto describe(EventOf<Copied>) {
  return event("test.copied", field<&Copied::bytes>("bytes", Unit::bytes),
               field<&Copied::stream>("stream", Unit::stream));
}
constexpr auto describe(EventOf<Swapped>) {
  return event("test.copied", field<&Swapped::bytes>("bytes", Unit::bytes),
               field<&Swapped::stream>("stream", Unit::stream));
}

/// The same layout again, as another program would write it.
struct CopiedElsewhere {
  std::uint64_t b = 0, s = 0;
};
constexpr auto describe(EventOf<CopiedElsewhere>) {
  return event("test.copied", field<&CopiedElsewhere::b>("bytes", Unit::bytes),
               field<&CopiedElsewhere::s>("stream", Unit::stream));
}

/// All that makes a member's place hard to know.
struct Left {
  std::uint64_t left = 0;
};
struct Above {
  std::uint16_t inherited = 0;
};
struct alignas(16) Awkward : Left, Above {
  char gap = 0;
  const void* undescribed = nullptr;
  Text<32> text;
  Name name;
  bool flag = false;
  double numbers[100] = {};
  const float constant = 0;
  std::int8_t last = 0;
};
constexpr auto describe(EventOf<Awkward>) {
  return event("test.awkward", field<&Awkward::inherited>("inherited"),
               field<&Awkward::text>("text"), field<&Awkward::name>("name"),
               field<&Awkward::flag>("flag"), field<&Awkward::last>("last"));
}

namespace {

static_assert(schema_hash<Copied>() == schema_hash<CopiedElsewhere>(), "it is a constant");

TEST(SchemaTest, TheSameFieldsElsewhereAreAnotherHash) {
  EXPECT_NE(schema_hash<Copied>(), schema_hash<Swapped>());
  EXPECT_NE(&schema<Copied>(), &schema<Swapped>());
  EXPECT_EQ(schema<Swapped>().fields[0].offset, offsetof(Swapped, bytes));
  EXPECT_EQ(schema<Copied>().fields[0].offset, offsetof(Copied, bytes));
}

TEST(SchemaTest, TheHashOfWhatIsKnownAtRunTimeIsTheSame) {
  for (const Schema* s : {&schema<Copied>(), &schema<Swapped>(), &schema<Awkward>()})
    EXPECT_EQ(detail::schema_hash_of(*s), s->hash);
  EXPECT_EQ(schema<Swapped>().hash, schema_hash<Swapped>());
  EXPECT_EQ(schema<Awkward>().hash, schema_hash<Awkward>());
}

TEST(SchemaTest, AHashIsTheSumOfWhatItCovers) {
  const FieldSchema a{.name = "a",
                      .enumerators = "x,y",
                      .offset = 8,
                      .bytes = 1,
                      .unit = Unit::none,
                      .kind = Kind::enumeration};
  std::uint64_t hash = 0xcbf29ce484222325ull;
  const auto with = [&hash](std::initializer_list<int> bytes) {
    for (const int b : bytes) hash = (hash ^ static_cast<unsigned>(b)) * 0x100000001b3ull;
  };
  with({1, 't', '.', 'e', 255});                      // little endian; the event's name
  with({'a', 255, 'x', ',', 'y', 255, 0, 11, 1, 8});  // the field
  with({16});                                         // the event's size
  const std::span<const FieldSchema> fields(&a, 1);
  EXPECT_EQ(detail::hash_of("t.e", fields, 16, std::endian::little), hash);
  EXPECT_NE(detail::hash_of("t.e", fields, 16, std::endian::big), hash);
}

TEST(SchemaTest, AFieldsPlaceIsKnownWhateverLiesBeforeIt) {
  const Awkward event;
  const auto* begin = reinterpret_cast<const std::byte*>(&event);
  const auto at = [begin](const auto& member) {
    return reinterpret_cast<const std::byte*>(&member) - begin;
  };
  const auto fields = schema<Awkward>().fields;
  EXPECT_EQ(fields[0].offset, at(event.inherited));
  EXPECT_EQ(fields[1].offset, at(event.text));
  EXPECT_EQ(fields[2].offset, at(event.name));
  EXPECT_EQ(fields[3].offset, at(event.flag));
  EXPECT_EQ(fields[4].offset, at(event.last));
}

TEST(SchemaTest, AnEventIsNotReadAsOneWhoseFieldsLieElsewhere) {
  Bus bus(with_workers(1));
  auto& copied = bus.channel<Copied>();
  int right = 0;
  int wrong = 0;
  const Subscription sub = bus.subscribe("test.copied", [&](const EventView& event) {
    if (const auto* e = event.as<CopiedElsewhere>()) right += e->b == 7 && e->s == 111 ? 1 : 0;
    wrong += event.as<Swapped>() != nullptr ? 1 : 0;
  });
  ASSERT_EQ(copied.publish({.bytes = 7, .stream = 111}), PublishCode::accepted);
  ASSERT_TRUE(bus.flush(kLong));
  EXPECT_EQ(right, 1);
  EXPECT_EQ(wrong, 0);
}

TEST(SchemaTest, AChannelOfTheSameFieldsElsewhereIsAConflictThatSaysWhichField) {
  Bus bus(with_workers(1));
  (void)bus.channel<Copied>();
  const auto made = bus.configure<Swapped>(ChannelOptions{});
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, Error::Code::conflict);
  EXPECT_NE(made.error().message.find("field 'bytes' at offset 0, not 8"), std::string::npos)
      << made.error().message;
}

TEST(SchemaDeathTest, AndEndsTheProcessWithThatSentenceWhereNoErrorIsReturned) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        Bus bus(with_workers(1));
        (void)bus.channel<Copied>();
        (void)bus.channel<Swapped>();
      },
      "field 'bytes' at offset 0, not 8");
}

TEST(SchemaTest, WhoAwaitsAnEventIsNotGivenOneWhoseFieldsLieElsewhere) {
  Bus bus(with_workers(1));
  int seen = 0;
  const Subscription sub = bus.subscribe_inline_once_made<Swapped>([&](const Swapped&) { ++seen; });
  auto& copied = bus.channel<Copied>();
  EXPECT_EQ(copied.publish({1, 2}), PublishCode::unheard);
  EXPECT_EQ(seen, 0);
}

}  // namespace
}  // namespace ringmain::tests
