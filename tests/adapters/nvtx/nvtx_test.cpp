// Is each call to NVTX published exactly, from each copy of its headers, and passed on to another
// tool?
#include "events/nvtx.hpp"

#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "adapters/sources/nvtx/nvtx_source.hpp"
#include "adapters/sources/nvtx/nvtx_started.hpp"

#include "tests/adapters/nvtx/fake_copy.hpp"

namespace ringmain::nvtx {
namespace {

using abi::EventAttributes;
using abi::Handle;
using abi::RangeId;
using One = FakeCopy<1>;
using Two = FakeCopy<2>;

/// The process has one source, so all tests share one bus. Inline subscribers hear in the call.
Bus& bus() {
  static Bus& only = *new Bus(BusOptions{});
  return only;
}

template <class E>
class Heard {
 public:
  Heard()
      : subscription_(bus().channel<E>().subscribe_inline([this](const E& event) {
          const std::lock_guard lock(mutex_);
          events_.push_back(event);
        })) {}
  std::vector<E> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(events_, {});
  }
  void deafen() { subscription_.reset(); }
  E only() {
    auto all = take();
    EXPECT_EQ(all.size(), 1u);
    return all.empty() ? E{} : all.front();
  }

 private:
  std::mutex mutex_;
  std::vector<E> events_;
  Subscription subscription_;
};

EventAttributes attributes() {
  EventAttributes a{};
  a.version = 3;
  a.bytes = sizeof a;
  return a;
}
EventAttributes words(const char* text) {
  EventAttributes a = attributes();
  a.message_type = abi::kAscii;
  a.message.ascii = text;
  return a;
}

class NvtxTest : public testing::Test {
 protected:
  NvtxTest() {
    One::fill();
    EXPECT_TRUE(attach(bus(), One::get, nullptr));
    One::settle();
  }
  static int push(const char* text) { return One::call<int(const char*)>(abi::kRangePushA, text); }
  static int pop() { return One::call<int()>(abi::kRangePop); }
  static Handle domain(const char* name) {
    return One::call<Handle(const char*)>(abi::kDomainCreateA, name);
  }
  static int push_in(Handle domain, EventAttributes a) {
    return One::call<int(Handle, const EventAttributes*)>(abi::kDomainRangePushEx, domain, &a);
  }
  static int pop_in(Handle domain) { return One::call<int(Handle)>(abi::kDomainRangePop, domain); }

  Heard<Range> ranges_;
  Heard<Mark> marks_;
};

TEST_F(NvtxTest, PushedRangesNestAndTheirEndsSayWhatEnds) {
  EXPECT_EQ(push("outer"), 0);
  EXPECT_EQ(push("inner"), 1);
  EXPECT_EQ(pop(), 1);
  EXPECT_EQ(pop(), 0);
  const auto all = ranges_.take();
  ASSERT_EQ(all.size(), 4u);
  for (const Range& r : all) {
    EXPECT_EQ(r.shape, Shape::pushed);
    EXPECT_EQ(r.thread, static_cast<std::uint32_t>(::gettid()));
    EXPECT_EQ(r.domain, Name());
  }
  const char* const messages[] = {"outer", "inner", "inner", "outer"};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(all[i].message.view(), messages[i]);
    EXPECT_EQ(all[i].edge, i < 2 ? Edge::begin : Edge::end);
    EXPECT_EQ(all[i].depth, i == 1 || i == 2 ? 1u : 0u);
    EXPECT_EQ(all[i].id, all[3 - i].id);
  }
  EXPECT_NE(all[0].id, all[1].id);
  EXPECT_EQ(all[0].took_ns, 0);
  EXPECT_GE(all[3].took_ns, all[2].took_ns);
  EXPECT_GT(all[3].took_ns, 0);
}

TEST_F(NvtxTest, APopWithoutAPushIsRefusedAndSaysNothing) {
  EXPECT_LT(pop(), 0);
  EXPECT_TRUE(ranges_.take().empty());
}

TEST_F(NvtxTest, DomainsNestApartAndTheSameNameIsTheSameDomain) {
  const Handle a = domain("a");
  const Handle b = domain("b");
  EXPECT_NE(a, b);
  EXPECT_EQ(domain("a"), a);
  EXPECT_EQ(push_in(a, words("1")), 0);
  EXPECT_EQ(push_in(b, words("2")), 0);
  EXPECT_EQ(push_in(a, words("3")), 1);
  EXPECT_EQ(pop_in(b), 0);
  EXPECT_EQ(pop_in(a), 1);
  EXPECT_EQ(pop_in(a), 0);
  std::string order;
  for (const Range& r : ranges_.take()) {
    order += std::string(r.domain.view()) + std::string(r.message.view()) + " ";
  }
  EXPECT_EQ(order, "a1 b2 a3 b2 a3 a1 ");
}

TEST_F(NvtxTest, AStartedRangeMayEndInAnotherThread) {
  const RangeId id = One::call<RangeId(const char*)>(abi::kRangeStartA, "download");
  EXPECT_NE(id, 0u);
  std::thread([id] { One::call<void(RangeId)>(abi::kRangeEnd, id); }).join();
  const auto all = ranges_.take();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].message.view(), "download");
  EXPECT_EQ(all[0].id, id);
  EXPECT_EQ(all[1].id, id);
  EXPECT_EQ(all[1].edge, Edge::end);
  EXPECT_EQ(all[1].shape, Shape::started);
  EXPECT_NE(all[0].thread, all[1].thread);
  EXPECT_EQ(all[1].message.view(), "download");
  EXPECT_EQ(all[0].took_ns, 0);
  EXPECT_GT(all[1].took_ns, 0);
}

TEST_F(NvtxTest, TheEndOfAStartedRangeRepeatsItsMessageOnceAndAsLongAsThereIsRoom) {
  std::vector<RangeId> ids;
  for (std::size_t i = 0; i < StartedRanges::kMax + 10; ++i) {
    ids.push_back(One::call<RangeId(const char*)>(abi::kRangeStartA, "many"));
  }
  ranges_.take();
  for (const RangeId id : ids) One::call<void(RangeId)>(abi::kRangeEnd, id);
  std::size_t with_message = 0;
  for (const Range& end : ranges_.take()) with_message += end.message.view() == "many" ? 1u : 0u;
  EXPECT_EQ(with_message, StartedRanges::kMax);
  One::call<void(RangeId)>(abi::kRangeEnd, ids.front());
  EXPECT_EQ(ranges_.only().message.view(), "") << "it has ended already";
}

TEST_F(NvtxTest, AStartedRangeWhoseBeginWasUnheardEndsWithItsIdAlone) {
  ranges_.deafen();
  const RangeId id = One::call<RangeId(const char*)>(abi::kRangeStartA, "unheard");
  Heard<Range> later;
  One::call<void(RangeId)>(abi::kRangeEnd, id);
  const Range end = later.only();
  EXPECT_EQ(end.id, id);
  EXPECT_EQ(end.message.view(), "");
  EXPECT_EQ(end.took_ns, 0);
}

TEST_F(NvtxTest, EachPayloadArrivesInItsOwnField) {
  const auto payload = [&](std::int32_t type, auto set) {
    EventAttributes a = words("p");
    a.payload_type = type;
    set(a.payload);
    One::call<void(const EventAttributes*)>(abi::kMarkEx, &a);
    return marks_.only();
  };
  using V = EventAttributes::Value;
  const Mark none = payload(0, [](V& v) { v.u64 = 9; });
  EXPECT_EQ(none.payload, Payload::none);
  EXPECT_EQ(none.payload_unsigned, 0u);
  EXPECT_EQ(payload(1, [](V& v) { v.u64 = ~0ull; }).payload_unsigned, ~0ull);
  EXPECT_EQ(payload(2, [](V& v) { v.i64 = -5; }).payload_signed, -5);
  EXPECT_EQ(payload(3, [](V& v) { v.f64 = 0.1; }).payload_float, 0.1);
  EXPECT_EQ(payload(4, [](V& v) { v.u32 = 7; }).payload_unsigned, 7u);
  EXPECT_EQ(payload(5, [](V& v) { v.i32 = -7; }).payload_signed, -7);
  EXPECT_EQ(payload(6, [](V& v) { v.f32 = 0.5f; }).payload_float, 0.5);
  EXPECT_EQ(payload(5, [](V& v) { v.i32 = 1; }).payload, Payload::i32);
  const Mark extended = payload(abi::kExtendedPayload, [](V& v) { v.u64 = 12345; });
  EXPECT_EQ(extended.payload, Payload::extended);
  EXPECT_EQ(extended.payload_unsigned, 0u);
  EXPECT_EQ(payload(77, [](V& v) { v.u64 = 1; }).payload, Payload::none);
}

TEST_F(NvtxTest, CategoryAndColourComeWithTheirNames) {
  const Handle a = domain("categories");
  using NameIt = void(Handle, std::uint32_t, const char*);
  One::call<NameIt>(abi::kDomainNameCategoryA, a, 5u, "io");
  One::call<void(std::uint32_t, const char*)>(abi::kNameCategoryA, 5u, "other");
  for (std::uint32_t i = 1000; i < 2000; ++i) {
    One::call<NameIt>(abi::kDomainNameCategoryA, a, i, "many");  // more than there is room for
  }
  One::call<NameIt>(abi::kDomainNameCategoryA, a, 5u, "input");  // named anew
  EventAttributes given = words("read");
  given.category = 5;
  given.color_type = abi::kArgb;
  given.color = 0xff00ff00;
  push_in(a, given);
  pop_in(a);
  const Range begin = ranges_.take().front();
  EXPECT_EQ(begin.category, 5u);
  EXPECT_EQ(begin.category_name.view(), "input");
  EXPECT_EQ(begin.color, 0xff00ff00u);
  given.category = 6;
  given.color_type = 0;
  One::call<void(Handle, const EventAttributes*)>(abi::kDomainMarkEx, a, &given);
  const Mark unnamed = marks_.only();
  EXPECT_EQ(unnamed.category_name, Name());
  EXPECT_EQ(unnamed.color, 0u);
}

TEST_F(NvtxTest, ACategoryIsNamedWhileOthersUseItAndNeverByAnothersName) {
  const Handle a = domain("named meanwhile");
  std::thread naming([a] {
    for (std::uint32_t i = 1; i <= 200; ++i) {
      const std::string name = std::to_string(i);
      One::call<void(Handle, std::uint32_t, const char*)>(abi::kDomainNameCategoryA, a, i * 256,
                                                          name.c_str());
    }
  });
  for (int round = 0; round < 20; ++round) {
    for (std::uint32_t i = 1; i <= 200; ++i) {
      EventAttributes given = words("");
      given.category = i * 256;  // they all want the same place
      One::call<void(Handle, const EventAttributes*)>(abi::kDomainMarkEx, a, &given);
    }
  }
  naming.join();
  for (const Mark& m : marks_.take()) {
    const std::string_view name = m.category_name.view();
    ASSERT_TRUE(name.empty() || name == std::to_string(m.category / 256)) << name;
  }
  EventAttributes given = words("");
  given.category = 200 * 256;
  One::call<void(Handle, const EventAttributes*)>(abi::kDomainMarkEx, a, &given);
  EXPECT_EQ(marks_.only().category_name.view(), "200");
}

TEST_F(NvtxTest, RegisteredAndWideTextsAreUtf8) {
  const Handle a = domain("texts");
  using RegisterA = Handle(Handle, const char*);
  using RegisterW = Handle(Handle, const wchar_t*);
  EventAttributes given = attributes();
  given.message_type = abi::kRegistered;
  given.message.registered = One::call<RegisterA>(abi::kDomainRegisterStringA, a, "forward");
  EXPECT_EQ(One::call<RegisterA>(abi::kDomainRegisterStringA, a, "forward"),
            given.message.registered);
  push_in(a, given);
  EXPECT_EQ(ranges_.only().message.view(), "forward");
  given.message.registered =
      One::call<RegisterW>(abi::kDomainRegisterStringW, a, L"sch\u00f6n \u20ac \U0001f600");
  push_in(a, given);
  EXPECT_EQ(ranges_.only().message.view(), "sch\u00f6n \u20ac \U0001f600");
  const wchar_t broken[] = {L'a', static_cast<wchar_t>(0xd800), static_cast<wchar_t>(0x110000), 0};
  One::call<void(const wchar_t*)>(abi::kMarkW, broken);
  EXPECT_EQ(marks_.only().message.view(), "a\ufffd\ufffd");
  pop_in(a);
  pop_in(a);
}

TEST_F(NvtxTest, LongTextIsCutAndMarkedAndNoTextIsNone) {
  const std::string fits(Message::kBytesMax, 'x');
  One::call<void(const char*)>(abi::kMarkA, fits.c_str());
  Mark said = marks_.only();
  EXPECT_EQ(said.message.view(), fits);
  EXPECT_FALSE(said.message.cut());
  One::call<void(const char*)>(abi::kMarkA, (fits + "y").c_str());
  said = marks_.only();
  EXPECT_EQ(said.message.view(), fits);
  EXPECT_TRUE(said.message.cut());
  One::call<void(const wchar_t*)>(abi::kMarkW, std::wstring(1000, L'z').c_str());
  EXPECT_TRUE(marks_.only().message.cut());
  for (const char* text : {static_cast<const char*>(nullptr), ""}) {
    One::call<void(const char*)>(abi::kMarkA, text);
    EXPECT_EQ(marks_.only().message.view(), "");
  }
  const EventAttributes* const nothing = nullptr;
  One::call<void(const EventAttributes*)>(abi::kMarkEx, nothing);
  EXPECT_EQ(marks_.only().message.view(), "");
  EventAttributes older = words("not read");
  older.bytes = 8;
  One::call<void(const EventAttributes*)>(abi::kMarkEx, &older);
  EXPECT_EQ(marks_.only().message.view(), "");
}

TEST_F(NvtxTest, DeeperThanIsKeptIsCountedAndTheOuterOnesStillEnd) {
  for (int i = 0; i < 100; ++i) push("deep");
  for (int i = 0; i < 36; ++i) EXPECT_LT(pop(), 0);
  for (int i = 63; i >= 0; --i) EXPECT_EQ(pop(), i);
  EXPECT_EQ(ranges_.take().size(), 164u);
  EXPECT_LT(pop(), 0);
}

TEST_F(NvtxTest, WhatNobodyHearsNestsAllTheSame) {
  const Handle a = domain("unheard");
  ranges_.deafen();
  EXPECT_EQ(push_in(a, words("outer")), 0);
  Heard<Range> later;
  EXPECT_EQ(push_in(a, words("inner")), 1);
  EXPECT_EQ(pop_in(a), 1);
  EXPECT_EQ(pop_in(a), 0);
  const auto all = later.take();
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].depth, 1u);
  EXPECT_EQ(all[2].message.view(), "");  // its begin was not looked at
  EXPECT_EQ(all[2].took_ns, 0);
}

TEST_F(NvtxTest, EachCopyInTheProcessIsHeard) {
  Two::fill();
  ASSERT_TRUE(attach(bus(), Two::get, nullptr));
  ASSERT_TRUE(attach(bus(), Two::get, nullptr));  // as often as it likes
  Two::settle();
  push("of one");
  Two::call<int(const char*)>(abi::kRangePushA, "of two");
  EXPECT_EQ(pop(), 1);  // one thread, one domain: one stack
  EXPECT_EQ(Two::call<int()>(abi::kRangePop), 0);
  EXPECT_EQ(ranges_.take().size(), 4u);
}

TEST_F(NvtxTest, ManyThreadsEachHaveTheirStackAndNoIdIsUsedTwice) {
  constexpr int kThreads = 4;
  constexpr int kEach = 500;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([] {
      for (int i = 0; i < kEach; ++i) {
        const Handle mine = domain("shared");
        EXPECT_EQ(push("outer"), 0);
        EXPECT_EQ(push_in(mine, words("inner")), 0);
        EXPECT_EQ(pop_in(mine), 0);
        EXPECT_EQ(pop(), 0);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::multiset<std::uint64_t> ids;
  for (const Range& r : ranges_.take()) ids.insert(r.id);
  EXPECT_EQ(ids.size(), std::size_t{kThreads} * kEach * 4);
  for (const std::uint64_t id : ids) ASSERT_EQ(ids.count(id), 2u);
}

TEST_F(NvtxTest, WhatShowsNoTableIsRefused) {
  EXPECT_FALSE(attach(
      bus(), [](std::uint32_t) -> const void* { return nullptr; }, nullptr));
}

TEST_F(NvtxTest, AProgramThatHasAnotherEventByOurNameGoesOn) {
  Bus of_program;
  (void)of_program.channel<Mark>("nvtx.range");
  const auto attached = attach(of_program, Two::get, nullptr);
  ASSERT_FALSE(attached);
  EXPECT_EQ(attached.error().code, Error::Code::conflict) << attached.error().message;
}

}  // namespace
}  // namespace ringmain::nvtx
