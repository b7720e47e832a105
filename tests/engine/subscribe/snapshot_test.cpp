// Which subscribers are called, in which order, and when is a row freed that nobody reads?
#include "engine/subscribe/snapshot.hpp"

#include <vector>

#include <gtest/gtest.h>

#include "tests/engine/rig.hpp"

namespace ringmain::engine {
namespace {

/// A subscriber that the test holds, so that it can see when the list has let go of it.
struct Watched {
  explicit Watched(int priority = 0) : s(tests::make_test_subscriber([](const engine::Run&) {})) {
    s->priority = priority;
    s->holders.fetch_add(1);  // the list's
  }
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;
  ~Watched() { drop_subscriber(s); }
  [[nodiscard]] bool listed() const { return s->holders.load() == 2; }
  Subscriber* s;
};

std::vector<Subscriber*> row(const SubscriberList& list) {
  const Snapshot* now = list.current().load();
  return now == nullptr ? std::vector<Subscriber*>{} : now->subscribers;
}

TEST(SnapshotTest, HigherPrioritiesComeFirstAndEqualOnesInOrderOfArrival) {
  Watched a(0), b(5), c(0), d(5), e(-1);
  SubscriberList list;
  for (Watched* w : {&a, &b, &c, &d, &e}) list.add(w->s);
  EXPECT_EQ(row(list), (std::vector<Subscriber*>{b.s, d.s, a.s, c.s, e.s}));
}

TEST(SnapshotTest, RemovingTakesOneAndKeepsTheOrderOfTheRest) {
  Watched a, b, c;
  SubscriberList list;
  for (Watched* w : {&a, &b, &c}) list.add(w->s);
  EXPECT_TRUE(list.remove(b.s));
  EXPECT_FALSE(list.remove(b.s));
  EXPECT_EQ(row(list), (std::vector<Subscriber*>{a.s, c.s}));
}

TEST(SnapshotTest, AnEmptyListHasNoSnapshot) {
  Watched a;
  SubscriberList list;
  EXPECT_FALSE(list.remove(a.s));
  list.add(a.s);
  EXPECT_TRUE(list.remove(a.s));
  EXPECT_EQ(list.current().load(), nullptr);
  EXPECT_EQ(list.size(), 0u);
  list.add(a.s);
  EXPECT_EQ(list.size(), 1u);
  a.s->holders.fetch_add(1);  // added twice: one more holder for the list
}

TEST(SnapshotTest, ItSaysWhetherAnybodyWantsTime) {
  Watched a, b;
  b.s->wants_time = true;
  SubscriberList list;
  list.add(a.s);
  EXPECT_FALSE(list.any_wants_time());
  list.add(b.s);
  EXPECT_TRUE(list.any_wants_time());
  list.remove(b.s);
  EXPECT_FALSE(list.any_wants_time());
}

TEST(SnapshotTest, WhatAWorkerReadsIsNotFreedAndAllElseIs) {
  Watched a, b, c;
  SubscriberList list;
  Reading reading{nullptr};
  const std::vector<const Reading*> readings{&reading};
  list.add(a.s);
  list.add(b.s);
  list.remove(a.s);
  list.add(c.s);
  ASSERT_EQ(protect(list.current(), reading), list.current().load());
  list.remove(b.s);  // the worker still reads the row that names b
  list.reclaim(readings);
  EXPECT_FALSE(a.listed());
  EXPECT_TRUE(b.listed());
  reading.store(nullptr);
  list.reclaim(readings);
  EXPECT_FALSE(b.listed());
  EXPECT_EQ(list.retired(), 0u);
  EXPECT_TRUE(c.listed());
}

TEST(SnapshotTest, ARemovedSubscriberOutlivesEveryOlderRowThatNamesIt) {
  Watched a, b;
  SubscriberList list;
  Reading reading{nullptr};
  list.add(a.s);
  ASSERT_NE(protect(list.current(), reading), nullptr);  // reads the row of a alone
  list.add(b.s);
  list.remove(a.s);
  list.reclaim({&reading});
  EXPECT_TRUE(a.listed());
  reading.store(nullptr);
  list.reclaim({&reading});
  EXPECT_FALSE(a.listed());
}

TEST(SnapshotTest, AReaderThatStaysKeepsItsOwnRowAndNoYoungerOne) {
  Watched stays, passing;
  passing.s->holders.fetch_add(999);  // one more for each further time that it is listed
  const auto before = passing.s->holders.load();
  SubscriberList list;
  Reading reading{nullptr};
  list.add(stays.s);
  const Snapshot* held = protect(list.current(), reading);
  for (int i = 0; i < 1000; ++i) {
    list.add(passing.s);
    list.remove(passing.s);
    if (list.due()) list.reclaim({&reading});
    ASSERT_LE(list.retired(), SubscriberList::kDueAt + 1);
    ASSERT_TRUE(list.keeps(held));
  }
  list.reclaim({&reading});
  EXPECT_EQ(list.retired(), 1u);
  EXPECT_EQ(passing.s->holders.load(), before - 1000);
  EXPECT_EQ(held->subscribers, (std::vector<Subscriber*>{stays.s}));
  reading.store(nullptr);
  list.reclaim({&reading});
  EXPECT_FALSE(list.keeps(held));
}

TEST(SnapshotTest, WhatAHeldRowNamesStaysThoughItsOwnRowIsFreed) {
  Watched a, b, c;
  SubscriberList list;
  Reading reading{nullptr};
  list.add(a.s);
  list.add(b.s);
  ASSERT_NE(protect(list.current(), reading), nullptr);  // reads the row of a and b
  list.add(c.s);
  list.remove(c.s);
  list.remove(b.s);
  list.reclaim({&reading});
  EXPECT_TRUE(b.listed());
  EXPECT_FALSE(c.listed()) << "the row that is read never named it";
  EXPECT_EQ(list.retired(), 2u) << "the row that is read, and b";
  reading.store(nullptr);
  list.reclaim({&reading});
  EXPECT_FALSE(b.listed());
  EXPECT_EQ(list.retired(), 0u);
}

TEST(SnapshotTest, TheListsEndLetsGoOfEverybody) {
  Watched a, b;
  {
    SubscriberList list;
    list.add(a.s);
    list.add(b.s);
    list.remove(a.s);
  }
  EXPECT_FALSE(a.listed());
  EXPECT_FALSE(b.listed());
}

}  // namespace
}  // namespace ringmain::engine
