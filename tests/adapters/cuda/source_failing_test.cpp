// What if a call of CUPTI's fails, any of them, once or from then on? Nothing is kept in silence,
// and the next source is whole.
#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>

#include "tests/adapters/cuda/source_moments.hpp"

namespace ringmain::cuda {
namespace {

/// From its `from`-th call in this thread on `times` calls of `function` fail; "": of any.
class Failing {
 public:
  Failing(std::string_view function, int from, int times, int code)
      : function_(function), from_(from), times_(times), code_(code) {
    fake_cupti_script(
        +[](const char* called, void* with) { return static_cast<Failing*>(with)->answer(called); },
        this);
  }
  Failing(const Failing&) = delete;
  Failing& operator=(const Failing&) = delete;
  ~Failing() { fake_cupti_script(nullptr, nullptr); }
  [[nodiscard]] bool failed() const { return calls_ > from_; }

 private:
  int answer(const char* called) {
    if (!function_.empty() && function_ != called) return 0;
    const int now = calls_++;
    return now >= from_ && now - from_ < times_ ? code_ : 0;
  }
  const std::string_view function_;
  const int from_, times_, code_;
  int calls_ = 0;
};

auto times_said(const Heard<SourceNotice>& said, SourceState state) {
  return std::count_if(said.begin(), said.end(),
                       [state](const SourceNotice& notice) { return notice.state == state; });
}

class SourceFailingTest : public SourceFixture {
 protected:
  /// A life in which all of CUPTI's functions are called.
  void live() {
    TestBus mine;
    const auto heard = mine.heard<EventRecord>();
    const auto said = mine.heard<SourceNotice>();
    auto made = Source::attach(mine);
    const bool whole = static_cast<bool>(made);
    if (whole) live_attached(mine, std::move(made).value());
    mine.deliver();
    EXPECT_EQ(times_said(said, SourceState::detached), whole ? 1 : 0);
    EXPECT_EQ(times_said(said, SourceState::unavailable), whole ? 0 : 1);
    for (const SourceNotice& notice : said) {
      EXPECT_TRUE(notice.result == 0 || !notice.reason.view().empty() ||
                  notice.state == SourceState::attached)
          << "what CUPTI refused is not said in words";
      EXPECT_NE(notice.reason.view().substr(0, 2), "0 ");
    }
  }
  /// The next source has CUPTI's place, hears, and gives it up.
  void expect_whole() {
    const auto heard = bus.heard<EventRecord>();
    {
      Source next = attached(bus);
      record();
    }
    bus.deliver();
    EXPECT_EQ(heard.size(), 1);
    EXPECT_EQ(fake_cupti_subscribers(), 0);
    EXPECT_EQ(Source::state_in_process(), std::nullopt);
  }
  /// False: `function` is not called that often.
  bool live_without(std::string_view function, int from, int times, int code) {
    SCOPED_TRACE(std::string(function) + " from " + std::to_string(from) + ", " +
                 std::to_string(code));
    bool failed = false;
    {
      const Failing failing(function, from, times, code);
      live();
      failed = failing.failed();
    }
    expect_whole();
    return failed && !HasFailure();
  }

 private:
  void live_attached(TestBus& mine, Source source) {
    {
      const auto more = mine.heard<StreamCreation>();
      ASSERT_TRUE(mine.wait_told(kPatience));
      (void)source.state();
      record();
    }
    ASSERT_TRUE(mine.wait_told(kPatience));
    (void)source.lend("a tool");
    (void)source.take_back();
    record();
    EXPECT_EQ(source.detach(), Detached::done);
  }
};

TEST_F(SourceFailingTest, EachCallOfCuptisMayFailOnce) {
  live();
  for (const int code : {1, 15, 39, 999}) {
    int from = 0;
    while (live_without("", from, 1, code)) ++from;
    ASSERT_GT(from, 50) << "it calls CUPTI less often than is known";
  }
}

TEST_F(SourceFailingTest, EachFunctionOfCuptisMayFailFromAnyMomentOn) {
  live();
  for (const char* function : {"cuptiSubscribe_v2", "cuptiEnableCallback", "cuptiUnsubscribe",
                               "cuptiGetCallbackState", "cuptiGetDeviceId"}) {
    for (const int code : {1, 15, 39, 999}) {
      for (const int times : {2, 1 << 20}) {
        int from = 0;
        while (live_without(function, from, times, code)) ++from;
        ASSERT_GT(from, 0) << function;
      }
    }
  }
}

TEST_F(SourceFailingTest, OneCallThatWasRefusedIsAskedForAgain) {
  const auto heard = bus.heard<EventRecord>();
  Source source = attached(bus);
  const unsigned all = fake_cupti_enabled_count();
  ASSERT_TRUE(source.lend("a tool").value());
  {
    const Failing failing("cuptiEnableCallback", 3, 1, 35);  // after its own state and contexts
    ASSERT_TRUE(source.take_back().value());
  }
  EXPECT_EQ(fake_cupti_enabled_count(), all - 1);
  const auto more = bus.heard<EventRecord>();  // needs no other calls
  ASSERT_TRUE(bus.wait_told(kPatience));
  EXPECT_EQ(fake_cupti_enabled_count(), all);
}

TEST_F(SourceFailingTest, ACuptiThatCannotSayWhatItMeansIsQuotedByNumber) {
  const auto said = bus.heard<SourceNotice>();
  const auto heard = bus.heard<EventRecord>();
  const Failing silent("cuptiGetResultString", 0, 1 << 20, 1);
  for (const char* function : {"cuptiSubscribe_v2", "cuptiEnableCallback"}) {
    fake_cupti_answer(function, 999, 1000, nullptr);
    const auto refused = Source::attach(bus);
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().message.find("CUPTI's error (999)"), std::string::npos)
        << refused.error().message;
    fake_cupti_answer(function, 0, 0, nullptr);
  }
  Source source = attached(bus);
  fake_cupti_answer("cuptiUnsubscribe", 999, 1, nullptr);
  const auto kept = source.lend("a tool");
  ASSERT_FALSE(kept);
  EXPECT_NE(kept.error().message.find("CUPTI's error (999)"), std::string::npos);
  (void)source.detach();
  bus.deliver();
  EXPECT_EQ(times_said(said, SourceState::detached), 1);
}

}  // namespace
}  // namespace ringmain::cuda
