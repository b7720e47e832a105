// What goes wrong with torchcomms' and c10d's hooks when they come, go and are called in order?
// Each program shows one fault on a model of the original (originals.hpp), and none on a
// communicator.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tests/adapters/collective/originals.hpp"

namespace ringmain::tests::originals {

struct RemovesItself {
  static constexpr auto fact = "a hook that removes itself changes the map that is iterated";
  template <class R>
  static Saw on() {
    R r;
    int calls = 0;
    std::function<void()> remove;
    auto handle = r.pre([&](const Told&) {
      ++calls;
      remove();
    });
    remove = [&] { handle.remove(); };
    for (int i = 0; i < 2; ++i) r.all_reduce();
    return {r.undefined() || calls != 1, calls};
  }
};

struct RemovesAnother {
  static constexpr auto fact = "a hook that removes another changes the map that is iterated";
  template <class R>
  static Saw on() {
    R r;
    int calls = 0, others = 0;
    std::function<void()> remove;
    r.post([&](const Told&) {
      if (calls++ == 0) remove();
    });
    auto other = r.post([&](const Told&) { ++others; });
    remove = [&] { other.remove(); };
    for (int i = 0; i < 2; ++i) r.all_reduce();
    return {r.undefined() || others != 0, calls};
  }
};

struct RegistersInside {
  static constexpr auto fact =
      "a hook that is registered inside a hook changes the map that is iterated, or is called for "
      "the same operation";
  template <class R>
  static Saw on() {
    R r;
    int calls = 0, fresh = 0, fresh_at_first = 0;
    r.pre([&](const Told&) {
      if (calls++ == 0) r.pre([&](const Told&) { ++fresh; });
    });
    r.all_reduce();
    fresh_at_first = fresh;
    r.all_reduce();
    return {r.undefined() || fresh_at_first != 0 || fresh != 1, calls};
  }
};

/// While a hook is being called, another thread does `meanwhile`.
template <class R>
int while_called(R& r, const std::function<void()>& meanwhile) {
  int calls = 0;
  r.pre([&](const Told&) {
    if (calls++ == 0) std::thread(meanwhile).join();
  });
  for (int i = 0; i < 2; ++i) r.all_reduce();
  return calls;
}
struct RegistersElsewhere {
  static constexpr auto fact =
      "a hook is registered by another thread while a collective is issued";
  template <class R>
  static Saw on() {
    R r;
    int fresh = 0;
    const int calls = while_called(r, [&] { r.pre([&](const Told&) { ++fresh; }); });
    return {r.undefined() || fresh != 1, calls};
  }
};
struct RemovesElsewhere {
  static constexpr auto fact = "a hook is removed by another thread while a collective is issued";
  template <class R>
  static Saw on() {
    R r;
    int before = 0;
    auto old = r.pre([&](const Told&) { ++before; });
    r.all_reduce();
    const int calls = while_called(r, [&] { old.remove(); });
    // The second one may have been asked before the other thread came.
    return {r.undefined() || before > 2, calls};
  }
};

struct RunsAfterRemoval {
  static constexpr auto fact = "a removal returns while another thread is inside the hook";
  template <class R>
  static Saw on() {
    R r;
    std::atomic<bool> inside{false}, go{false}, removing{false};
    int calls = 0;
    auto handle = r.pre([&](const Told&) {
      ++calls;
      inside = true;
      inside.notify_all();
      go.wait(false);
      inside = false;
    });
    std::thread caller([&] { r.all_reduce(); });
    inside.wait(false);
    bool still_inside = false;
    std::thread remover([&] {
      removing = true;
      removing.notify_all();
      handle.remove();
      still_inside = inside;
    });
    removing.wait(false);
    if (!R::kRemovalWaits) remover.join();
    go = true;
    go.notify_all();
    if (R::kRemovalWaits) remover.join();
    caller.join();
    return {still_inside, calls};
  }
};

struct OutlivesItsHandle {
  static constexpr auto fact =
      "no handle takes its hook away: it is called after what it refers to";
  template <class R>
  static Saw on() {
    R r;
    int calls = 0;
    const auto scope = std::make_shared<std::atomic<bool>>(true);
    bool called_after = false;
    {
      [[maybe_unused]] const auto handle = r.scoped_pre([&, scope](const Told&) {
        ++calls;
        called_after |= !*scope;
      });
      r.all_reduce();
    }
    *scope = false;
    r.all_reduce();
    return {called_after, calls};
  }
};

struct SilentRemoval {
  static constexpr auto fact = "who removes a hook that is gone does not learn it";
  template <class R>
  static Saw on() {
    R r;
    int calls = 0;
    auto handle = r.pre([&](const Told&) { ++calls; }, 7);
    r.all_reduce();
    const bool first = handle.remove();
    return {!first || handle.remove(), calls};
  }
};

struct SameNumber {
  static constexpr auto fact = "two hooks with one number: the second takes the first one's place";
  template <class R>
  static Saw on() {
    R r;
    int first = 0, second = 0;
    r.pre([&](const Told&) { ++first; }, 7);
    r.pre([&](const Told&) { ++second; }, 7);
    r.all_reduce();
    return {first == 0, second};
  }
};

struct NotInOrder {
  static constexpr auto fact = "hooks are not called in the order of their registration";
  template <class R>
  static Saw on() {
    R r;
    std::vector<int> order, registered(16);
    std::iota(registered.begin(), registered.end(), 0);
    for (const int i : registered) r.pre([&order, i](const Told&) { order.push_back(i); }, 100 - i);
    r.all_reduce();
    return {order != registered, static_cast<int>(order.size())};
  }
};

struct PartsHaveNone {
  static constexpr auto fact = "the parts of a split do not have their parent's hooks";
  template <class R>
  static Saw on() {
    R r;
    int calls = 0;
    r.pre([&](const Told&) { ++calls; });
    const auto part = r.split(true);
    const int before = calls;
    part->all_reduce();
    r.all_reduce();
    return {calls != before + 2, calls};
  }
};

}  // namespace ringmain::tests::originals
