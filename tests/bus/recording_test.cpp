// Is what is published on recorded channels in the file, as it was published, however it ended?
#include <atomic>
#include <barrier>
#include <cstdint>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "bus/bus.hpp"
#include "bus/core/schema_text.hpp"
#include "bus/test_bus.hpp"

#include "tests/bus/events.hpp"
#include "tests/bus/recording_reader.hpp"
#include "tests/engine/flight/flight_rig.hpp"

namespace ringmain::tests {

struct Recordable {
  std::uint64_t n = 0;
  Name word;
};
constexpr auto describe(EventOf<Recordable>) {
  return event("recorded.one", field<&Recordable::n>("n"), field<&Recordable::word>("word"));
}
struct Other {
  std::uint64_t n = 0;
};
constexpr auto describe(EventOf<Other>) {
  return event("other.one", field<&Other::n>("n"));
}

namespace {

using engine::flight::FlightRead;
using engine::flight::read_flight;
using engine::flight::TextKind;

class RecordingTest : public ::testing::Test {
 protected:
  Recording record(Bus& bus, std::string_view patterns) {
    auto made = bus.record(patterns, in_folder(folder_.path()));
    EXPECT_TRUE(made.has_value()) << made.error().message;
    EXPECT_EQ(made.value().complaint(), "");
    return std::move(made).value();
  }
  Folder folder_;
};

TEST_F(RecordingTest, WhatIsPublishedIsInTheFileWithItsNamesAndItsType) {
  Bus bus(with_workers(1));
  auto& before = bus.channel<Recordable>();
  const Recording recording = record(bus, "recorded.*");
  auto& after = bus.channel<Recordable>("recorded.two");
  EXPECT_EQ(before.publish({1, Name("first word of RecordingTest")}), PublishCode::accepted);
  EXPECT_EQ(after.publish({2, Name("second word of RecordingTest")}), PublishCode::accepted);
  const FlightRead file = read_whole(recording);
  const auto records = records_of<Recordable>(file);
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].event.n, 1u);
  EXPECT_EQ(records[0].channel, "recorded.one");
  EXPECT_EQ(records[1].event.n, 2u);
  EXPECT_EQ(records[1].channel, "recorded.two");
  for (const auto& one : records) {
    EXPECT_EQ(one.head.code, PublishCode::accepted);
    EXPECT_EQ(one.head.sequence, 1u);
    EXPECT_NE(one.publisher, 0u);
    EXPECT_GT(one.head.time_ns, 0);
    const auto* const name = file.find(TextKind::name, one.event.word.id());
    ASSERT_NE(name, nullptr);
    EXPECT_EQ(name->text, one.event.word.view());
  }
  const auto* const described = file.find(TextKind::schema, schema<Recordable>().hash);
  ASSERT_NE(described, nullptr);
  const Schema* const again = detail::schema_of(described->text, schema<Recordable>().hash);
  ASSERT_NE(again, nullptr);
  EXPECT_EQ(again->fields.size(), 2u);
  EXPECT_EQ(again->fields[1].name, "word");
}

TEST_F(RecordingTest, OnlyChannelsThatMatchAreRecordedAndOthersAreNotHeard) {
  Bus bus(with_workers(1));
  const Recording recording = record(bus, "recorded.>");
  EXPECT_EQ(bus.channel<Other>().publish({7}), PublishCode::unheard);
  EXPECT_EQ(bus.channel<Recordable>().publish({8, {}}), PublishCode::accepted);
  const FlightRead file = read_whole(recording);
  EXPECT_EQ(records_of<Other>(file).size(), 0u);
  EXPECT_EQ(records_of<Recordable>(file).size(), 1u);
}

TEST_F(RecordingTest, EachPatternHasARingSoAChattyOnePushesOutNoOther) {
  Bus bus(with_workers(1));
  const Recording recording = record(bus, "other.*,recorded.*,>");
  EXPECT_EQ(bus.channel<Recordable>().publish({1, {}}), PublishCode::accepted);
  for (std::uint64_t n = 0; n < 1000; ++n)
    EXPECT_EQ(bus.channel<Other>().publish({n}), PublishCode::accepted);
  const FlightRead file = read_whole(recording);
  EXPECT_EQ(records_of<Recordable>(file).size(), 1u);
  ASSERT_EQ(file.rings.size(), 2u);
  for (const auto& ring : file.rings) {
    EXPECT_EQ(ring.ring.written, ring.ring.overwritten + ring.ring.records.size());
    EXPECT_EQ(ring.ring.unreadable, 0u);
  }
  const auto others = records_of<Other>(file);
  EXPECT_EQ(others.back().event.n, 999u);
  EXPECT_LT(others.size(), 1000u);
}

TEST_F(RecordingTest, AnEventThatIsOnlyRecordedIsAcceptedAndAccountedFor) {
  Bus bus(with_workers(1));
  const Recording recording = record(bus, "recorded.*");
  auto& channel = bus.channel<Recordable>();
  auto publisher = channel.publisher();
  for (std::uint64_t n = 1; n <= 5; ++n)
    EXPECT_EQ(publisher.publish({n, {}}), PublishCode::accepted);
  const Ledger ledger = publisher.ledger();
  EXPECT_EQ(ledger.offered, 5u);
  EXPECT_EQ(ledger.delivered, 5u);
  EXPECT_EQ(ledger.in_flight + ledger.dropped, 0u);
  EXPECT_TRUE(bus.verify_accounting().has_value());
  const auto records = records_of<Recordable>(read_whole(recording));
  ASSERT_EQ(records.size(), 5u);
  for (std::uint64_t n = 1; n <= 5; ++n) EXPECT_EQ(records[n - 1].head.sequence, n);
}

TEST_F(RecordingTest, ARecordHasTheSequenceThatSubscribersSee) {
  Bus bus(with_workers(1));
  auto& channel = bus.channel<Recordable>();
  std::vector<std::uint64_t> heard;
  const Subscription hears = channel.subscribe(
      [&heard](const Recordable&, const Stamp& stamp) { heard.push_back(stamp.sequence); });
  auto publisher = std::move(channel.publisher({.capacity_events = 4096})).value();
  EXPECT_EQ(publisher.publish({1, {}}), PublishCode::accepted);
  const Recording recording = record(bus, "recorded.*");
  const Recordable several[] = {{2, {}}, {3, {}}, {4, {}}};
  EXPECT_EQ(publisher.publish_all(several).accepted, 3u);
  ASSERT_TRUE(bus.flush(kLong));
  EXPECT_EQ(heard, (std::vector<std::uint64_t>{1, 2, 3, 4}));
  const auto records = records_of<Recordable>(read_whole(recording));
  ASSERT_EQ(records.size(), 3u);
  for (std::uint64_t n = 2; n <= 4; ++n) {
    EXPECT_EQ(records[n - 2].event.n, n);
    EXPECT_EQ(records[n - 2].head.sequence, n);
  }
  EXPECT_TRUE(bus.verify_accounting().has_value());
}

TEST_F(RecordingTest, RefusedAndVetoedEventsAreRecordedWithTheirCode) {
  TestBus bus;
  auto& channel = bus.channel<Recordable>();
  const Recording recording = record(bus, "recorded.*");
  auto publisher = std::move(channel.publisher({.capacity_events = 1})).value();
  Subscription vetoes = channel.subscribe_inline([](const Recordable& one) {
    return one.n == 1 ? Verdict::veto(Name("odd")) : Verdict::allow();
  });
  EXPECT_EQ(publisher.publish({1, {}}), PublishCode::vetoed);
  (void)vetoes.reset();
  const Subscription hears = channel.subscribe([](const Recordable&) {});
  EXPECT_EQ(publisher.publish({2, {}}), PublishCode::accepted);
  EXPECT_EQ(publisher.publish({3, {}}), PublishCode::full);
  (void)bus.stop();
  EXPECT_EQ(publisher.publish({4, {}}), PublishCode::closed);
  const auto records = records_of<Recordable>(read_whole(recording));
  ASSERT_EQ(records.size(), 4u);
  EXPECT_EQ(records[0].head.code, PublishCode::vetoed);
  EXPECT_EQ(records[1].head.code, PublishCode::accepted);
  EXPECT_EQ(records[2].head.code, PublishCode::full);
  EXPECT_EQ(records[3].head.code, PublishCode::closed);
  for (std::uint64_t n = 1; n <= 4; ++n) EXPECT_EQ(records[n - 1].event.n, n);
}

TEST_F(RecordingTest, WhatAnInlineSubscriberPublishesIsRecordedBeforeWhatItSaw) {
  Bus bus(with_workers(1));
  const Recording recording = record(bus, "recorded.*,other.*");
  auto& channel = bus.channel<Recordable>();
  const Subscription again = channel.subscribe_inline([&channel](const Recordable& one) {
    if (one.n == 1) (void)channel.publish({2, {}});
  });
  EXPECT_EQ(channel.publish({1, {}}), PublishCode::accepted);
  const auto records = records_of<Recordable>(read_whole(recording));
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].event.n, 2u);
  EXPECT_EQ(records[1].event.n, 1u);
  EXPECT_TRUE(bus.verify_accounting().has_value());
}

TEST_F(RecordingTest, ItCountsAsInterestAndIsToldAsItComesAndGoes) {
  Bus bus(with_workers(1));
  auto& channel = bus.channel<Recordable>();
  std::vector<std::uint32_t> told;
  const Subscription asked =
      bus.on_interest(channel, [&told](Interest i) { told.push_back(i.subscribers); });
  ASSERT_TRUE(bus.wait_told(kLong));
  Recording recording = record(bus, ">");
  ASSERT_TRUE(bus.wait_told(kLong));
  recording.reset();
  ASSERT_TRUE(bus.wait_told(kLong));
  EXPECT_EQ(told, (std::vector<std::uint32_t>{0, 1, 0}));
}

TEST_F(RecordingTest, AfterResetNothingIsRecordedAndTheFileSaysThatItWasClosed) {
  Bus bus(with_workers(1));
  auto& channel = bus.channel<Recordable>();
  Recording recording = record(bus, "recorded.*");
  const std::string path = recording.path();
  EXPECT_EQ(channel.publish({1, {}}), PublishCode::accepted);
  recording.reset();
  EXPECT_EQ(channel.publish({2, {}}), PublishCode::unheard);
  EXPECT_EQ(bus.channel<Recordable>("recorded.late").publish({3, {}}), PublishCode::unheard);
  const FlightRead file = read_flight(path);
  EXPECT_EQ(file.counts.closed, 1u);
  EXPECT_EQ(records_of<Recordable>(file).size(), 1u);
}

TEST_F(RecordingTest, ThreadsThatEndLeaveTheirRingsToLaterOnes) {
  constexpr std::uint64_t kThreads = 200;
  Bus bus(with_workers(1));
  auto& channel = bus.channel<Recordable>();
  const Recording recording = record(bus, "recorded.*");
  for (std::uint64_t n = 1; n <= kThreads; ++n)
    std::thread([&channel, n] { (void)channel.publish({n, {}}); }).join();
  const FlightRead file = read_whole(recording);
  EXPECT_LT(file.rings.size(), kThreads / 2);
  EXPECT_EQ(file.counts.rings_refused, 0u);
  const auto records = records_of<Recordable>(file);
  ASSERT_EQ(records.size(), kThreads);
  std::set<std::uint32_t> publishers;
  for (const auto& one : records) publishers.insert(one.publisher);
  EXPECT_EQ(publishers.size(), kThreads) << "a record says which thread's it is";
}

TEST_F(RecordingTest, WhatAThreadWithoutARingPublishesIsCounted) {
  Bus bus(with_workers(1));
  auto& channel = bus.channel<Recordable>();
  RecordOptions options = in_folder(folder_.path());
  options.file_bytes = 2u << 20;
  options.ring_bytes = 512u << 10;
  auto made = bus.record("recorded.*", options);
  ASSERT_TRUE(made.has_value()) << made.error().message;
  const Recording recording = std::move(made).value();
  constexpr std::uint64_t kThreads = 4, kEach = 3;
  std::barrier<> all_have_tried(kThreads);
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (std::uint64_t n = 0; n < kEach; ++n)
        EXPECT_EQ(channel.publish({n, {}}), PublishCode::accepted);
      all_have_tried.arrive_and_wait();
    });
  }
  for (std::thread& thread : threads) thread.join();
  const FlightRead file = read_whole(recording);
  ASSERT_LT(file.rings.size(), kThreads) << "there is a ring for each: the test sees nothing";
  EXPECT_EQ(file.counts.rings_refused, kThreads - file.rings.size());
  EXPECT_EQ(file.counts.unrecorded, kEach * (kThreads - file.rings.size()));
  EXPECT_EQ(records_of<Recordable>(file).size(), kEach * file.rings.size());
}

TEST_F(RecordingTest, SeveralRecordingsOfABusAreKeptApart) {
  Bus bus(with_workers(1));
  auto& channel = bus.channel<Recordable>();
  Recording first = record(bus, "recorded.*");
  const Recording second = record(bus, ">");
  EXPECT_EQ(channel.publish({1, {}}), PublishCode::accepted);
  first.reset();
  EXPECT_EQ(channel.publish({2, {}}), PublishCode::accepted);
  EXPECT_EQ(records_of<Recordable>(read_whole(second)).size(), 2u);
  const Recording third = record(bus, "recorded.one"), fourth = record(bus, "other.one"),
                  fifth = record(bus, "*.one");
  EXPECT_FALSE(bus.record("recorded.*", in_folder(folder_.path())).has_value());
}

TEST_F(RecordingTest, WrongPatternsAndSizesAreRefusedInASentence) {
  Bus bus(with_workers(1));
  for (const char* wrong : {"", "a,,b", "a b", "a,b,c,d,e,f,g,h,i", "a,b..c", "b.>.c", "**"}) {
    const auto made = bus.record(wrong, in_folder(folder_.path()));
    ASSERT_FALSE(made.has_value()) << wrong;
    EXPECT_NE(made.error().message, "");
  }
  RecordOptions odd = in_folder(folder_.path());
  odd.ring_bytes = 5000;
  EXPECT_FALSE(bus.record("recorded.*", odd).has_value());
}

TEST_F(RecordingTest, WhereNoFileCanBeHadItIsInMemoryAndSaysWhy) {
  Bus bus(with_workers(1));
  auto made = bus.record("recorded.*", in_folder("/proc/self/nowhere"));
  ASSERT_TRUE(made.has_value());
  EXPECT_EQ(made.value().path(), "");
  EXPECT_NE(made.value().complaint(), "");
  EXPECT_EQ(bus.channel<Recordable>().publish({1, {}}), PublishCode::accepted);
}

struct Plain {
  std::uint64_t n = 0;
};
struct Bait {
  std::uint64_t n = 0;
};
constexpr auto describe(EventOf<Bait>) {
  return event("recorded.bait", field<&Bait::n>("n"));
}

TEST(SchemaTextTest, ATypeWithoutADescriptionIsNoneOfThoseThatHaveOne) {
  const Schema* const plain =
      detail::schema_of(detail::text_of(schema<Plain>()), schema<Plain>().hash);
  ASSERT_NE(plain, nullptr);
  EXPECT_EQ(plain->bytes, sizeof(Plain));
  // An enemy's file that is read first.
  const Schema* const enemys = detail::schema_of("\t1\tT\n", schema_hash<Bait>());
  ASSERT_NE(enemys, nullptr);
  EXPECT_NE(enemys->hash, schema_hash<Bait>());
  EXPECT_EQ(schema<Bait>().bytes, sizeof(Bait));
  EXPECT_EQ(schema<Bait>().fields.size(), 1u);
}

TEST(SchemaTextTest, DamagedDescriptionsAreNoSchema) {
  const std::string whole = detail::text_of(schema<Recordable>());
  const std::uint64_t hash = schema<Recordable>().hash;
  ASSERT_NE(detail::schema_of(whole, hash), nullptr);
  for (std::size_t cut = 0; cut + 1 < whole.size(); ++cut)
    EXPECT_EQ(detail::schema_of(whole.substr(0, cut), hash ^ 1), nullptr);
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string odd = whole;
    odd[at] = odd[at] == '7' ? '8' : '7';
    const Schema* const read = detail::schema_of(odd, hash);
    if (read == nullptr) continue;
    EXPECT_EQ(read->bytes, sizeof(Recordable));  // the C++ type's name is not in the hash
    EXPECT_EQ(read->fields.size(), 2u);
  }
  EXPECT_EQ(detail::schema_of("\t4096\tT\n", 5), nullptr);
  EXPECT_EQ(detail::schema_of("a\t8\tT\nn\tu64\t\t1\t8\t\n", 5), nullptr);
}

}  // namespace
}  // namespace ringmain::tests
