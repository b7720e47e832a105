// What if others act in the middle of an attach(), a detach(), a lend() or a take_back()? At each
// moment at which it calls CUPTI, in another thread and in its own.
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>

#include <gtest/gtest.h>

#include "tests/adapters/cuda/source_moments.hpp"

namespace ringmain::cuda {
namespace {

constexpr std::initializer_list<Doing> kAll{Doing::attach, Doing::detach, Doing::lend,
                                            Doing::take_back};
constexpr std::uint32_t kRuntime = 2, kEventRecord = 135, kStreamSynchronize = 131;

struct Poke {
  int n;
};

/// As a subscriber of this bus, in another thread.
void in_a_callback(Bus& bus, const std::function<void()>& act) {
  const auto poked = bus.channel<Poke>("poke").subscribe_inline([&](const Poke&) { act(); });
  elsewhere([&] { (void)bus.channel<Poke>("poke").publish({}); });
}

class SourceMiddleTest : public SourceFixture {
 protected:
  /// `act(life)` at one moment after the other, then `check(life)`, and its place is free.
  template <class Act, class Check>
  void at_each_moment(Doing doing, Act act, Check check) {
    at_each_moment(doing, act, std::function<void()>(), check);
  }
  template <class Act, class Check>
  void at_each_moment(Doing doing, Act act, const std::function<void()>& then, Check check) {
    for (int at = 0; !HasFailure(); ++at) {
      SCOPED_TRACE("doing " + std::to_string(static_cast<int>(doing)) + ", moment " +
                   std::to_string(at));
      Life life(doing);
      bool came = false;
      {
        const Moment moment(
            at, [&] { return act(life), 0; }, then);
        life.go_on();
        came = moment.came();
      }
      for (auto& each : waiting) each.join();
      waiting.clear();
      if (came) check(life);
      (void)life.source.detach();
      EXPECT_EQ(fake_cupti_subscribers(), 0);
      EXPECT_EQ(Source::state_in_process(), std::nullopt);
      if (!came) {
        EXPECT_GT(at, is_on(life) ? 3 : 1) << "it calls CUPTI less often than is known";
        return;
      }
    }
  }
  /// In another thread, which may have to wait for its turn.
  void beside(std::function<void()> act) { waiting.emplace_back(std::move(act)); }
  void record_elsewhere() const {
    elsewhere([this] {
      (void)cudaSetDevice(0);
      (void)cudaEventRecord(event, nullptr);
    });
  }
  static bool is_on(const Life& life) {
    return life.doing == Doing::attach || life.doing == Doing::take_back;
  }
  std::vector<std::thread> waiting;
};

TEST_F(SourceMiddleTest, WhoComesToListenIsServed) {
  for (const Doing doing : kAll) {
    std::optional<Heard<StreamSynchronization>> other;
    at_each_moment(
        doing,
        [&](Life& life) { elsewhere([&] { other = life.bus.heard<StreamSynchronization>(); }); },
        [&](Life& life) {
          ASSERT_TRUE(life.bus.wait_told(kPatience));
          EXPECT_EQ(fake_cupti_enabled(kRuntime, kStreamSynchronize) != 0, is_on(life));
          EXPECT_EQ(fake_cupti_enabled(kRuntime, kEventRecord) != 0, is_on(life));
          other.reset();
        });
  }
}

TEST_F(SourceMiddleTest, WhoGoesIsNotServedAnyMore) {
  for (const Doing doing : kAll) {
    at_each_moment(
        doing, [&](Life& life) { elsewhere([&] { const auto gone = std::move(life.heard); }); },
        [&](Life& life) {
          ASSERT_TRUE(life.bus.wait_told(kPatience));
          record();
          EXPECT_EQ(life.source.counts(), Counts{});  // whatever CUPTI tells
          if (!is_on(life)) {
            EXPECT_EQ(fake_cupti_enabled_count(), 0);
          }
        });
  }
}

TEST_F(SourceMiddleTest, ACallIsHeardOnceOrNotAndTheNextAsItShould) {
  for (const Doing doing : kAll) {
    at_each_moment(
        doing,
        [&](Life&) {
          record();
          record_elsewhere();
        },
        [&](Life& life) {
          life.bus.deliver();
          const auto before = life.heard.size();
          EXPECT_LE(before, 2);
          EXPECT_EQ(life.source.counts(), (Counts{.published = before}));
          record();
          record_elsewhere();
          life.bus.deliver();
          EXPECT_EQ(life.heard.size(), before + (is_on(life) ? 2 : 0));
        });
  }
}

TEST_F(SourceMiddleTest, QuestionsAndEventsOfOthersDoNotWait) {
  for (const Doing doing : kAll) {
    at_each_moment(
        doing,
        [&](Life& life) {
          elsewhere([&] {
            (void)life.source.counts();
            (void)Source::state_in_process();
            if (life.doing != Doing::attach) (void)life.source.state();
            EXPECT_TRUE(life.bus.channel<EventRecord>().publish({}));
          });
        },
        [&](Life& life) {
          life.bus.deliver();
          EXPECT_EQ(life.heard.size(), 1);
        });
  }
}

TEST_F(SourceMiddleTest, AnotherAttachWaitsAndIsRefusedOrWhole) {
  for (const Doing doing : kAll) {
    Source other;
    at_each_moment(
        doing,
        [&](Life&) {
          beside([&] {
            auto made = Source::attach(bus);
            if (made) other = std::move(made).value();
          });
        },
        [&](Life& life) {
          const bool came = doing == Doing::detach;
          EXPECT_EQ(other.state(), came ? SourceState::attached : SourceState::detached);
          EXPECT_EQ(fake_cupti_subscribers(), doing == Doing::lend ? 0 : 1);
          EXPECT_EQ(life.source.state(), came                   ? SourceState::detached
                                         : doing == Doing::lend ? SourceState::lent
                                                                : SourceState::attached);
          (void)other.detach();
        });
  }
}

TEST_F(SourceMiddleTest, ADetachElsewhereWaitsAndEndsIt) {
  for (const Doing doing : {Doing::detach, Doing::lend, Doing::take_back}) {
    std::optional<Detached> answer;
    at_each_moment(
        doing, [&](Life& life) { beside([&] { answer = life.source.detach(); }); },
        [&](Life& life) {
          const bool twice = doing == Doing::detach;
          EXPECT_EQ(answer, twice ? Detached::was_not_attached : Detached::done);
          EXPECT_EQ(life.source.state(), SourceState::detached);
          EXPECT_EQ(fake_cupti_subscribers(), 0);
          record();
          life.bus.deliver();
          EXPECT_EQ(life.heard.size(), 0);
          EXPECT_EQ(life.said.back().state, SourceState::detached);
          // That it came back is said only if it was to stay then.
          EXPECT_GE(life.said.size(), doing == Doing::detach ? 2 : 3);
        });
  }
}

TEST_F(SourceMiddleTest, LendAndTakeBackElsewhereComeAfterIt) {
  for (const Doing doing : {Doing::detach, Doing::lend, Doing::take_back}) {
    for (const bool lends : {false, true}) {
      std::optional<bool> answer;
      at_each_moment(
          doing,
          [&](Life& life) {
            beside([&] {
              answer = (lends ? life.source.lend("a third") : life.source.take_back()).value();
            });
          },
          [&](Life&) {
            const bool possible = doing == (lends ? Doing::take_back : Doing::lend);
            EXPECT_EQ(answer, possible);
            EXPECT_EQ(fake_cupti_subscribers(),
                      doing != Doing::detach && (doing == Doing::take_back) != possible ? 1 : 0);
          });
    }
  }
}

TEST_F(SourceMiddleTest, ADetachInACallbackIsObeyedAtOnce) {
  for (const bool stays : {false, true}) {  // CUPTI does not let go of it
    for (const Doing doing : {Doing::lend, Doing::take_back}) {
      std::optional<Detached> answer;
      at_each_moment(
          doing,
          [&](Life& life) {
            in_a_callback(life.bus, [&] { answer = life.source.detach(); });
            record_elsewhere();
            if (stays) fake_cupti_answer("cuptiUnsubscribe", 999, 1, nullptr);
          },
          [&] { record_elsewhere(); },
          [&](Life& life) {
            EXPECT_EQ(answer, Detached::deferred);
            fake_cupti_answer("cuptiUnsubscribe", 0, 0, nullptr);
            record();
            life.bus.deliver();
            EXPECT_EQ(life.heard.size(), 0);
            EXPECT_FALSE(life.answer.value_or(false) && doing == Doing::take_back);
            EXPECT_EQ(life.source.state(), SourceState::detached);
            EXPECT_EQ(life.said.back().state, SourceState::detached);
            if (fake_cupti_subscribers() != 0) (void)attached(bus).detach();  // ends it, too
          });
    }
  }
}

TEST_F(SourceMiddleTest, WhatIsDoneInItsOwnThreadIsAsInACallback) {
  for (const Doing doing : kAll) {
    std::optional<Detached> ended;
    at_each_moment(
        doing,
        [&](Life& life) {
          const auto refused = Source::attach(bus);
          ASSERT_FALSE(refused);
          EXPECT_EQ(refused.error().code, Error::Code::refused);
          EXPECT_FALSE(Source::lend_in_process("nobody"));
          EXPECT_FALSE(Source::take_back_in_process());
          (void)Source::state_in_process();
          ended = life.source.detach();
        },
        [&](Life& life) {
          if (doing == Doing::attach) return;
          EXPECT_EQ(ended,
                    doing == Doing::detach ? Detached::was_not_attached : Detached::deferred);
          EXPECT_EQ(life.source.state(), SourceState::detached);
          EXPECT_EQ(fake_cupti_subscribers(), 0);
        });
  }
}

/// `said` is in order: nothing but its end comes after a loss.
void expect_in_order(const Heard<SourceNotice>& said) {
  bool lost = false;
  for (const SourceNotice& notice : said) {
    EXPECT_TRUE(!lost || notice.state == SourceState::detached ||
                notice.state == SourceState::unavailable)
        << static_cast<int>(notice.state) << " after it was lost";
    lost = lost || notice.state == SourceState::lost;
  }
}

TEST_F(SourceMiddleTest, WhatIsLostIsSaidToBeNothingElse) {
  for (const bool told : {false, true}) {
    for (const Doing doing : kAll) {
      at_each_moment(
          doing,
          [&](Life&) {
            elsewhere([&] {
              if (told)
                fake_cupti_fatal(999, "the GPU has fallen off the bus");
              else
                (void)cuptiFinalize();
            });
          },
          [&](Life& life) {
            record();
            const SourceState state = life.source.state();
            life.bus.deliver();
            EXPECT_EQ(life.heard.size(), state == SourceState::attached ? 1 : 0);
            if (doing == Doing::lend) {
              EXPECT_EQ(life.answer.value_or(false), state == SourceState::lent);
            }
            (void)life.source.detach();
            life.bus.deliver();
            expect_in_order(life.said);
            const auto heard = bus.heard<EventRecord>();
            Source next = attached(bus);
            record();
            (void)next.detach();
            bus.deliver();
            EXPECT_EQ(heard.size(), 1) << "the next one is whole";
            fake_cupti_reset();  // it cannot be told that its handle is dead
          });
    }
  }
}

TEST_F(SourceMiddleTest, WhoLeavesForGoodSaysTheLastWord) {
  for (const Doing doing : {Doing::detach, Doing::lend, Doing::take_back}) {
    at_each_moment(
        doing, [&](Life& life) { elsewhere([&] { (void)life.source.leave(kPatience); }); },
        [&](Life& life) {
          record();
          life.bus.deliver();
          EXPECT_EQ(life.heard.size(), 0);
          EXPECT_EQ(life.source.state(), SourceState::detached);
          EXPECT_EQ(life.said.back().state, SourceState::detached);
          EXPECT_FALSE(life.answer.value_or(false));
        });
  }
}

/// What the child finds wrong, as a bit each.
int wrong_in_child(Life& life, cudaEvent_t event) {
  int wrong = 0;
  const auto published = life.source.counts().published;
  const auto asked = fake_cupti_asked();
  (void)cudaEventRecord(event, nullptr);
  if (life.source.counts().published != published) wrong |= 1;
  if (life.source.lend("nobody") || life.source.take_back()) wrong |= 2;
  if (life.source.detach() != Detached::was_not_attached) wrong |= 4;
  if (life.source.leave(kPatience) != Detached::was_not_attached) wrong |= 8;
  if (Source::attach(life.bus)) wrong |= 16;
  if (Source::state_in_process().has_value()) wrong |= 32;
  if (fake_cupti_asked() != asked) wrong |= 64;
  return wrong;
}

TEST_F(SourceMiddleTest, AChildThatIsForkedThenIsInert) {
  for (const bool in_its_own_thread : {false, true}) {
    for (const Doing doing : kAll) {
      int status = -1;
      at_each_moment(
          doing,
          [&](Life& life) {
            const auto fork_here = [&] {
              const pid_t child = ::fork();
              if (child == 0) ::_exit(wrong_in_child(life, event));
              ASSERT_EQ(::waitpid(child, &status, 0), child);
            };
            in_its_own_thread ? fork_here() : elsewhere(fork_here);
          },
          [&](Life& life) {
            EXPECT_EQ(status, 0) << WEXITSTATUS(status);
            record();
            life.bus.deliver();
            EXPECT_EQ(life.heard.size(), is_on(life) ? 1 : 0) << "the parent goes on";
          });
    }
  }
}

}  // namespace
}  // namespace ringmain::cuda
