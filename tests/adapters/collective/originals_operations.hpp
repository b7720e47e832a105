// What goes wrong around one operation with torchcomms' and c10d's hooks: pairs, ids, ends, aborts?
// Each program shows one fault on a model of the original (originals.hpp), and none on ours.
#pragma once
#include <atomic>
#include <cstdint>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tests/adapters/collective/originals.hpp"

namespace ringmain::tests::originals {

// --- pairs ---

/// Is each operation that pre hooks have seen one that post hooks saw, once?
template <class R, class F>
Saw unpaired(R& r, F operations) {
  std::multiset<std::uint64_t> before, after;
  r.pre([&](const Told& told) { before.insert(told.op_id); }, 1);
  r.post([&](const Told& told) { after.insert(told.op_id); }, 1);
  operations();
  return {before != after, static_cast<int>(before.size())};
}
struct ThrowingBackend {
  static constexpr auto fact = "a backend that throws leaves a pre hook without its post hook";
  template <class R>
  static Saw on() {
    R r;
    return unpaired(r, [&] {
      EXPECT_FALSE(r.all_reduce([](const End&) { throw std::runtime_error("no route"); }).result);
    });
  }
};
struct Vetoed {
  static constexpr auto fact =
      "what a pre hook refuses is not paired: the others hear no more of it";
  template <class R>
  static Saw on() {
    R r;
    std::set<std::uint64_t> before, after;
    int refusals = 0;
    const Hook asked = [&](const Told& told) { before.insert(told.op_id); };
    // By number, by registration, forwards or backwards: one is asked before the guard.
    r.pre(asked, 1);
    r.pre([&](const Told&) { ++refusals, throw std::runtime_error("NaN"); }, 2);
    r.pre(asked, 3);
    r.post([&](const Told& told) { after.insert(told.op_id); });
    EXPECT_FALSE(r.all_reduce().result);
    return {before != after, refusals};
  }
};
struct EmptySplit {
  static constexpr auto fact = "a split that gives this rank nothing has no post hook";
  template <class R>
  static Saw on() {
    R r;
    return unpaired(r, [&] { EXPECT_EQ(r.split(false), nullptr); });
  }
};
struct ThrowingPost {
  static constexpr auto fact = "a post hook that throws costs the caller the result";
  template <class R>
  static Saw on() {
    R r;
    int calls = 0;
    r.post([&](const Told&) {
      ++calls;
      throw std::runtime_error("a hook's own");
    });
    return {!r.all_reduce().result, calls};
  }
};

// --- which operation? ---

/// Is one id given to two operations?
template <class F>
Saw repeated(F operations) {
  std::vector<std::uint64_t> ids;
  operations([&](const Told& told) { ids.push_back(told.op_id); });
  const std::set<std::uint64_t> different(ids.begin(), ids.end());
  return {different.size() != ids.size(), static_cast<int>(ids.size())};
}
struct ResetIds {
  static constexpr auto fact = "another recorder sets the ids of the whole process back";
  template <class R>
  static Saw on() {
    return repeated([](const Hook& see) {
      R::another_recorder();
      R r;
      r.pre(see);
      for (int i = 0; i < 4; ++i) r.all_reduce();
      R::another_recorder();
      for (int i = 0; i < 4; ++i) r.all_reduce();
    });
  }
};
struct GroupsIds {
  static constexpr auto fact =
      "ids count what one group issues: operations of two groups share them";
  template <class R>
  static Saw on() {
    return repeated([](const Hook& see) {
      R one, other;
      one.pre(see);
      other.pre(see);
      one.all_reduce();
      other.all_reduce();
    });
  }
};
struct FinalizeId {
  static constexpr auto fact = "every finalize has the same id, the largest number";
  template <class R>
  static Saw on() {
    return repeated([](const Hook& see) {
      R one, other;
      one.pre(see);
      other.pre(see);
      one.finalize();
      other.finalize();
    });
  }
};
struct Unhooked {
  static constexpr auto fact = "operations beyond the 22, a window's put among them, have no hook";
  template <class R>
  static Saw on() {
    R r;
    int calls = 0;
    r.pre([&](const Told&) { ++calls; });
    EXPECT_TRUE(r.all_reduce().result);
    EXPECT_TRUE(r.window_put().result);
    return {calls != 2, calls};
  }
};

// --- ends ---

struct PostIsNoEnd {
  static constexpr auto fact =
      "the hook that is documented as called at the end is called at issue";
  template <class R>
  static Saw on() {
    R r;
    int ends = 0;
    r.end([&](const Told&) { ++ends; });
    r.all_reduce();
    const bool too_soon = ends != 0;
    r.complete();
    return {too_soon, ends};
  }
};
struct EndHooksRace {
  static constexpr auto fact =
      "end hooks are a vector without a lock: one registered while an end is said is lost";
  template <class R>
  static Saw on() {
    R r;
    int ends = 0, fresh = 0;
    r.end_of_last([](const Told&) {});  // what nobody wants to hear of has no end on ours
    r.all_reduce();
    r.end_of_last([&](const Told&) {
      if (ends++ == 0) std::thread([&] { r.end_of_last([&](const Told&) { ++fresh; }); }).join();
    });
    r.complete();
    r.all_reduce();
    r.complete();
    return {r.undefined() || fresh != 1, ends};
  }
};
struct FailureIsNoEnd {
  static constexpr auto fact = "completion hooks do not hear of an operation that failed";
  template <class R>
  static Saw on() {
    R r;
    int ends = 0, failures = 0;
    r.end([&](const Told& told) {
      ++ends;
      failures += told.failed ? 1 : 0;
    });
    r.all_reduce([](const End& end) { end(true); });
    r.all_reduce([](const End& end) { end(false); });
    return {failures != 1, ends};
  }
};
struct EndBeforePost {
  static constexpr auto fact =
      "an end that comes before the post hook cannot be matched: only that one tells whose it is";
  template <class R>
  static Saw on() {
    R r;
    std::set<std::uint64_t> open;
    int ends = 0, strangers = 0;
    r.pre([&](const Told& told) { open.insert(told.op_id); }, 1);
    r.post([&](const Told& told) { open.insert(told.work); }, 1);
    r.end([&](const Told& told) {
      ++ends;
      if (!open.contains(told.work)) ++strangers;
    });
    r.all_reduce([](const End& said) { said(true); });
    return {strangers != 0, ends};
  }
};

// --- aborts ---

struct AbortsTwice {
  static constexpr auto fact = "abort hooks are called again for the failure they were called for";
  template <class R>
  static Saw on() {
    R r;
    std::atomic<int> calls{0};
    r.abort([&](const Told&) { ++calls; });
    r.fail();
    return {calls != 1, calls};
  }
};
struct AbortsInTurn {
  static constexpr auto fact =
      "abort hooks are called one after another by who gives up, so a stuck one stops all of it";
  template <class R>
  static Saw on() {
    R r;
    std::atomic<int> calls{0}, in_the_callers_thread{0};
    const auto caller = std::this_thread::get_id();
    const Hook see = [&](const Told&) {
      ++calls;
      if (std::this_thread::get_id() == caller) ++in_the_callers_thread;
    };
    r.abort(see);
    r.abort(see);
    r.fail_once();
    return {in_the_callers_thread != 0, calls};
  }
};

}  // namespace ringmain::tests::originals
