// The inline phase and the retire list by themselves: who sees which event, and which thread
// destroys a subscriber?
#include "engine/publish/inline_phase.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/engine/eventually.hpp"
#include "tests/engine/rig.hpp"
#include "tests/engine/subscribe/shown_words.hpp"

namespace ringmain::engine {
namespace {

/// An inline subscriber made of a lambda that returns a Judgement; the test holds it.
template <class Judge>
class Seer {
 public:
  explicit Seer(Judge judge) : s_(make_subscriber(sizeof(Captures))) {
    ::new (s_->captures()) Captures{std::move(judge), &destroyed_};
    s_->judge = [](Subscriber& self, const std::byte* event) noexcept -> Judgement {
      return static_cast<Captures*>(self.captures())->judge(event);
    };
    s_->destroy = [](Subscriber& self) noexcept {
      ++*static_cast<Captures*>(self.captures())->destroyed;
    };
    s_->holders.fetch_add(1);  // the list's
  }
  Seer(const Seer&) = delete;
  Seer& operator=(const Seer&) = delete;
  ~Seer() { drop_subscriber(s_); }
  [[nodiscard]] Subscriber* get() const { return s_; }
  [[nodiscard]] int destroyed() const { return destroyed_; }
  [[nodiscard]] std::uint32_t holders() const { return s_->holders.load(); }

 private:
  struct Captures {
    Judge judge;
    std::atomic<int>* destroyed;
  };
  std::atomic<int> destroyed_{0};
  Subscriber* s_;
};

class InlinePhaseTest : public ::testing::Test {
 protected:
  /// As the thread of lane `level`, or at that level of nesting.
  InlinePhase show(std::size_t level = 0, bool wakes = true) {
    return show_inline(
        list_.current(),
        {readings_.at(level), words_.at(level), ChunkPlace::of(static_cast<std::uint32_t>(level))},
        retire_list_, nullptr, wakes);
  }
  void list(Subscriber* s) {
    s->shown_by = &words_;
    list_.add(s);
  }
  void reset_inside(Subscriber* s) {
    ASSERT_TRUE(list_.remove(s));
    ASSERT_FALSE(close_deferred(*s));
  }
  RetireList retire_list_;
  SubscriberList list_;
  std::array<Reading, 2> readings_{};
  tests::ShownWords<2> words_;
};

TEST_F(InlinePhaseTest, AnEmptyRowAllowsAndLeavesNoTrace) {
  EXPECT_FALSE(show().judgement.veto);
  EXPECT_EQ(readings_[0].load(), nullptr);
}

TEST_F(InlinePhaseTest, TheRowIsShownAsReadDuringTheCallsOnly) {
  const Snapshot* seen = nullptr;
  Seer a([&](const std::byte*) {
    seen = readings_[0].load();
    return Judgement{};
  });
  list(a.get());
  (void)show();
  EXPECT_EQ(seen, list_.current().load());
  EXPECT_EQ(readings_[0].load(), nullptr);
}

TEST_F(InlinePhaseTest, AClosedOneIsSkippedAndTheRestAreShown) {
  int calls = 0;
  Seer a([&](const std::byte*) { return Judgement{.veto = ++calls > 0, .why = 7}; });
  Seer b([&](const std::byte*) { return Judgement{.veto = ++calls > 0, .why = 8}; });
  list(a.get());
  list(b.get());
  a.get()->gate.close();
  const InlinePhase phase = show();
  EXPECT_TRUE(phase.judgement.veto);
  EXPECT_EQ(phase.judgement.why, 8u);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(a.get()->calls().offered, 1u);
  EXPECT_EQ(a.get()->skipped.get(), 1u);
  EXPECT_EQ(b.get()->calls().delivered, 1u);
}

TEST_F(InlinePhaseTest, ALastCallThatWasClosedInsideIsRetiredOnceAndReclaimedOnce) {
  Subscriber* self = nullptr;
  Seer a([&](const std::byte*) {
    if (!self->gate.closed()) reset_inside(self);
    return Judgement{};
  });
  self = a.get();
  list(self);
  EXPECT_FALSE(retire_list_.occupied());
  EXPECT_TRUE(show().retired);
  EXPECT_TRUE(retire_list_.occupied());
  EXPECT_EQ(a.destroyed(), 0);
  retire_list_.reclaim_all();
  EXPECT_FALSE(retire_list_.occupied());
  EXPECT_EQ(a.destroyed(), 1);
  list_.reclaim({});
  EXPECT_EQ(a.holders(), 1u);
}

TEST_F(InlinePhaseTest, OneWhoWaitsForARetiredOneDestroysItAndTheReclaimerDoesNot) {
  Subscriber* self = nullptr;
  Seer a([&](const std::byte*) {
    reset_inside(self);
    return Judgement{};
  });
  self = a.get();
  list(self);
  ASSERT_TRUE(show().retired);
  ASSERT_EQ(wait_uncalled(*self, -1), Gate::Waited::claimed);
  destroy_captures(*self);
  retire_list_.reclaim_all();
  EXPECT_EQ(a.destroyed(), 1);
}

TEST_F(InlinePhaseTest, WhatIsRetiredOnAClosedListIsDestroyedAtOnce) {
  Subscriber* self = nullptr;
  Seer a([&](const std::byte*) {
    reset_inside(self);
    return Judgement{};
  });
  self = a.get();
  list(self);
  retire_list_.close();
  EXPECT_FALSE(retire_list_.occupied());
  EXPECT_FALSE(show().retired);
  EXPECT_EQ(a.destroyed(), 1);
  retire_list_.close();  // and again
  retire_list_.reclaim_all();
  EXPECT_FALSE(retire_list_.occupied());
}

TEST_F(InlinePhaseTest, ACallIsShownWhileItRuns) {
  const Subscriber* shown[2] = {};
  Seer a([&](const std::byte*) {
    shown[0] = words_.at(0).load();
    return Judgement{};
  });
  Seer b([&](const std::byte*) {
    shown[1] = words_.at(0).load();
    return Judgement{};
  });
  list(a.get());
  list(b.get());
  (void)show();
  EXPECT_EQ(shown[0], a.get());
  EXPECT_EQ(shown[1], b.get());
  EXPECT_EQ(words_.at(0).load(), nullptr);
}

TEST_F(InlinePhaseTest, OneThatIsResetBesideItsCallIsRetiredByThatCallAndNotBefore) {
  tests::Door door;
  Seer a([&](const std::byte*) {
    door.pass();
    return Judgement{};
  });
  list(a.get());
  bool retired = false;
  std::thread publisher([&] { retired = show(1).retired; });
  ASSERT_TRUE(door.await_arrival());
  reset_inside(a.get());
  EXPECT_FALSE(retire_list_.occupied());
  door.open();
  publisher.join();
  EXPECT_TRUE(retired);
  EXPECT_EQ(words_.kept(), 1);
  EXPECT_EQ(a.destroyed(), 0);
  retire_list_.reclaim_all();
  EXPECT_EQ(a.destroyed(), 1);
  EXPECT_EQ(words_.kept(), 0);
}

TEST_F(InlinePhaseTest, WhatIsRetiredThoughAnotherCallRunsIsLeftToThatCall) {
  // Level 0 stands in the call while level 1 has left it, found it closed and retired it.
  Subscriber* self = nullptr;
  bool inner = false;
  Seer a([&](const std::byte*) {
    if (std::exchange(inner, true)) {
      reset_inside(self);
      return Judgement{};
    }
    EXPECT_TRUE(show(1).retired);
    retire_list_.reclaim_all();
    EXPECT_FALSE(retire_list_.occupied());
    return Judgement{};
  });
  self = a.get();
  list(self);
  EXPECT_TRUE(show().retired);
  EXPECT_EQ(a.destroyed(), 0);
  retire_list_.reclaim_all();
  EXPECT_EQ(a.destroyed(), 1);
  EXPECT_EQ(words_.kept(), 0);
}

TEST_F(InlinePhaseTest, OneThatIsIdleIsClaimedAtOnceAndOnlyOnce) {
  Seer a([](const std::byte*) { return Judgement{}; });
  list(a.get());
  (void)show();
  a.get()->gate.close();
  ASSERT_TRUE(list_.remove(a.get()));
  EXPECT_TRUE(close_deferred(*a.get()));
  EXPECT_FALSE(close_deferred(*a.get()));
  destroy_captures(*a.get());
  EXPECT_EQ(wait_uncalled(*a.get(), 0), Gate::Waited::gone);
}

TEST_F(InlinePhaseTest, AWaitGivesUpWhileTheCallRunsAndTheCallThenDestroysNothing) {
  tests::Door door;
  Seer a([&](const std::byte*) {
    door.pass();
    return Judgement{};
  });
  list(a.get());
  std::thread publisher([&] { (void)show(1); });
  ASSERT_TRUE(door.await_arrival());
  a.get()->gate.close();
  ASSERT_TRUE(list_.remove(a.get()));
  EXPECT_EQ(wait_uncalled(*a.get(), 0), Gate::Waited::timeout);
  EXPECT_EQ(wait_uncalled(*a.get(), 1'000'000), Gate::Waited::timeout);
  door.open();
  publisher.join();
  EXPECT_FALSE(retire_list_.occupied());  // not deferred: who closed it destroys it
  EXPECT_EQ(wait_uncalled(*a.get(), -1), Gate::Waited::claimed);
  destroy_captures(*a.get());
}

TEST_F(InlinePhaseTest, WhileTheLastIsDestroyedHereTheNextIsNotWaitedFor) {
  // After stop() the publishing thread destroys: what it destroys may reset the next of the row.
  Subscriber* self = nullptr;
  Seer b([](const std::byte*) { return Judgement{}; });
  Gate::Waited waited = Gate::Waited::timeout;
  Seer a([&](const std::byte*) {
    if (!self->gate.closed()) reset_inside(self);
    return Judgement{};
  });
  struct Instead {
    Subscriber* next;
    Gate::Waited* waited;
  };
  static Instead instead;
  instead = {b.get(), &waited};
  a.get()->destroy = [](Subscriber&) noexcept {
    instead.next->gate.close();
    *instead.waited = wait_uncalled(*instead.next, 0);
    if (*instead.waited == Gate::Waited::claimed) destroy_captures(*instead.next);
  };
  self = a.get();
  list(a.get());
  list(b.get());
  retire_list_.close();
  (void)show();
  EXPECT_EQ(waited, Gate::Waited::claimed);
  EXPECT_EQ(b.destroyed(), 1);
  EXPECT_EQ(b.get()->calls().delivered, 0u);
  EXPECT_EQ(b.get()->skipped.get(), 1u);
}

TEST_F(InlinePhaseTest, CallsAreCountedInTheCellsOfTheirLanesAndWithoutThemTogether) {
  Seer a([](const std::byte*) { return Judgement{}; });
  list(a.get());
  (void)show(0);
  EXPECT_EQ(a.get()->offered.get(), 1u);
  a.get()->cells.make(2);
  (void)show(0);
  (void)show(1);
  EXPECT_EQ(a.get()->offered.get(), 1u);
  EXPECT_EQ(a.get()->calls().offered, 3u);
  EXPECT_EQ(a.get()->calls().delivered, 3u);
  EXPECT_EQ(a.get()->cells.of(ChunkPlace::of(1))->offered.load(), 1u);
}

TEST_F(InlinePhaseTest, ACallThatThrewIsNotDelivered) {
  Seer a([](const std::byte*) { return Judgement{.threw = true}; });
  list(a.get());
  a.get()->cells.make(1);
  (void)show();
  EXPECT_EQ(a.get()->calls().offered, 1u);
  EXPECT_EQ(a.get()->calls().delivered, 0u);
}

TEST_F(InlinePhaseTest, EachLevelProtectsItsOwnRow) {
  // The inner call reads a younger row; the outer one's must outlive it.
  Subscriber* self = nullptr;
  Seer b([](const std::byte*) { return Judgement{}; });
  bool inner = false;
  std::size_t kept = 0;
  Seer a([&](const std::byte*) {
    if (std::exchange(inner, true)) return Judgement{};
    list(b.get());
    (void)show(1);
    list_.reclaim({&readings_[0], &readings_[1]});
    kept = list_.retired();
    return Judgement{};
  });
  self = a.get();
  list(self);
  (void)show();
  EXPECT_EQ(kept, 1u);
  EXPECT_EQ(b.get()->calls().delivered, 1u);
  list_.reclaim({&readings_[0], &readings_[1]});
  EXPECT_EQ(list_.retired(), 0u);
}

TEST_F(InlinePhaseTest, ALeaverWithoutASystemCallIsFoundByLooking) {
  tests::Door door;
  Seer a([&](const std::byte*) {
    door.pass();
    return Judgement{};
  });
  list(a.get());
  std::thread publisher([&] { (void)show(1, false); });
  ASSERT_TRUE(door.await_arrival());
  a.get()->gate.close();
  std::thread waiter([&] {
    EXPECT_EQ(wait_uncalled(*a.get(), -1), Gate::Waited::claimed);
    destroy_captures(*a.get());
  });
  door.open();
  publisher.join();
  waiter.join();
  EXPECT_EQ(a.destroyed(), 1);
}

TEST(RetireListTest, WhatManyRetireIsDestroyedOnceHoweverManyReclaimAndClose) {
  enum : int { kThreads = 2, kEach = 2000 };
  for (const bool closes : {false, true}) {
    std::atomic<int> destroyed{0};
    RetireList retire_list;
    std::atomic<int> retiring{kThreads};
    tests::ShownWords<kThreads> words;
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < kEach; ++i) {
          Subscriber* s = make_subscriber(sizeof(std::atomic<int>*));
          ::new (s->captures()) std::atomic<int>*(&destroyed);
          s->destroy = [](Subscriber& self) noexcept {
            ++**static_cast<std::atomic<int>**>(self.captures());
          };
          s->judge = [](Subscriber&, const std::byte*) noexcept { return Judgement{}; };
          s->shown_by = &words;
          words.at(t).store(s);
          EXPECT_FALSE(close_deferred(*s));
          words.at(t).store(nullptr);
          if (s->gate.leave_shown(true)) (void)retire_list.retire(*s);
          drop_subscriber(s);
        }
        --retiring;
      });
    }
    threads.emplace_back([&] {
      while (retiring != 0) retire_list.reclaim_all();
    });
    threads.emplace_back([&] {
      while (retiring != 0) {
        if (closes && destroyed > kEach) retire_list.close();
        retire_list.reclaim_all();
      }
    });
    for (auto& t : threads) t.join();
    retire_list.reclaim_all();
    EXPECT_EQ(destroyed, kThreads * kEach);
    EXPECT_FALSE(retire_list.occupied());
    EXPECT_EQ(words.kept(), 0);
  }
}

}  // namespace
}  // namespace ringmain::engine
