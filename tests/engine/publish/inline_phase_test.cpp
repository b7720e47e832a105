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

namespace ringmain::engine {
namespace {

/// An inline subscriber made of a lambda that returns a Judgement; the test holds it.
template <class Judge>
class Seer {
 public:
  explicit Seer(Judge judge) : s_(make_subscriber(sizeof(Captures))) {
    ::new (s_->captures()) Captures{std::move(judge), &destroyed_};
    s_->judge = [](Subscriber& self, const std::byte* event) noexcept -> Judgement {
      self.delivered.add(1, Writers::many);
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
  InlinePhase show(std::size_t level = 0) {
    return show_inline(list_.current(), readings_.at(level), retire_list_, nullptr, true);
  }
  void reset_inside(Subscriber* s) {
    ASSERT_FALSE(s->gate.close_deferred());
    ASSERT_TRUE(list_.remove(s));
  }
  RetireList retire_list_;
  SubscriberList list_;
  std::array<Reading, 2> readings_{};
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
  list_.add(a.get());
  (void)show();
  EXPECT_EQ(seen, list_.current().load());
  EXPECT_EQ(readings_[0].load(), nullptr);
}

TEST_F(InlinePhaseTest, AClosedOneIsSkippedAndTheRestAreShown) {
  int calls = 0;
  Seer a([&](const std::byte*) { return Judgement{++calls > 0, 7}; });
  Seer b([&](const std::byte*) { return Judgement{++calls > 0, 8}; });
  list_.add(a.get());
  list_.add(b.get());
  a.get()->gate.close();
  const InlinePhase phase = show();
  EXPECT_TRUE(phase.judgement.veto);
  EXPECT_EQ(phase.judgement.why, 8u);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(a.get()->offered.get(), 1u);
  EXPECT_EQ(a.get()->skipped.get(), 1u);
  EXPECT_EQ(b.get()->delivered.get(), 1u);
}

TEST_F(InlinePhaseTest, ALastCallThatWasClosedInsideIsRetiredOnceAndReclaimedOnce) {
  Subscriber* self = nullptr;
  Seer a([&](const std::byte*) {
    if (!self->gate.closed()) reset_inside(self);
    return Judgement{};
  });
  self = a.get();
  list_.add(self);
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
  list_.add(self);
  ASSERT_TRUE(show().retired);
  ASSERT_EQ(self->gate.wait(-1), Gate::Waited::claimed);
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
  list_.add(self);
  retire_list_.close();
  EXPECT_FALSE(retire_list_.occupied());
  EXPECT_FALSE(show().retired);
  EXPECT_EQ(a.destroyed(), 1);
  retire_list_.close();  // and again
  retire_list_.reclaim_all();
  EXPECT_FALSE(retire_list_.occupied());
}

TEST_F(InlinePhaseTest, EachLevelProtectsItsOwnRow) {
  // The inner call reads a younger row; the outer one's must outlive it.
  Subscriber* self = nullptr;
  Seer b([](const std::byte*) { return Judgement{}; });
  bool inner = false;
  std::size_t kept = 0;
  Seer a([&](const std::byte*) {
    if (std::exchange(inner, true)) return Judgement{};
    list_.add(b.get());
    (void)show(1);
    list_.reclaim({&readings_[0], &readings_[1]});
    kept = list_.retired();
    return Judgement{};
  });
  self = a.get();
  list_.add(self);
  (void)show();
  EXPECT_EQ(kept, 1u);
  EXPECT_EQ(b.get()->delivered.get(), 1u);
  list_.reclaim({&readings_[0], &readings_[1]});
  EXPECT_EQ(list_.retired(), 0u);
}

TEST_F(InlinePhaseTest, ALeaverWithoutASystemCallIsFoundByLooking) {
  tests::Door door;
  Seer a([&](const std::byte*) {
    door.pass();
    return Judgement{};
  });
  list_.add(a.get());
  std::thread publisher(
      [&] { (void)show_inline(list_.current(), readings_[1], retire_list_, nullptr, false); });
  ASSERT_TRUE(door.await_arrival());
  a.get()->gate.close();
  std::thread waiter([&] {
    EXPECT_EQ(a.get()->gate.wait(-1, 1'000'000), Gate::Waited::claimed);
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
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < kEach; ++i) {
          Subscriber* s = make_subscriber(sizeof(std::atomic<int>*));
          ::new (s->captures()) std::atomic<int>*(&destroyed);
          s->destroy = [](Subscriber& self) noexcept {
            ++**static_cast<std::atomic<int>**>(self.captures());
          };
          EXPECT_TRUE(s->gate.enter());
          EXPECT_FALSE(s->gate.close_deferred());
          if (s->gate.leave_to_retire(true)) (void)retire_list.retire(*s);
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
  }
}

}  // namespace
}  // namespace ringmain::engine
