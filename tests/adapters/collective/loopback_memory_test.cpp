// What becomes of ranks of which one lacks memory in the middle of what they do together?
#include <new>
#include <span>
#include <system_error>

#include <gtest/gtest.h>

#include "bus/bus.hpp"

#include "adapters/sources/collective/collective_ledger.hpp"
#include "adapters/sources/collective/loopback.hpp"

#include "tests/adapters/collective/loopback_operations.hpp"
#include "tests/process/allocation_faults.hpp"

namespace ringmain::tests {
namespace {

using loopback::Rank;
using loopback::Work;
using loopback::World;

/// What lacks memory throws, which gives the group up; whatever else fails does so because of that.
using Program = void (*)(const Rank&);
void need(const Work& work) {
  if (work.wait() != loopback::State::completed) throw std::bad_alloc();
}

void waits(const Rank& rank) {
  float one = 1;
  const std::span<float> all(&one, 1);
  const loopback::Values values(all);
  need(rank.all_reduce({.tensor = values}));
  need(rank.barrier());
}

void waits_for_none(const Rank& rank) {
  float given = 1, taken = 0;
  const std::span<float> out(&given, 1), in(&taken, 1);
  const loopback::Values outs(out), ins(in);
  const int peer = 1 - rank.rank();
  const loopback::OneToOne both[] = {collective::Send{.tensor = outs, .peer = peer},
                                     collective::Recv{{.tensor = ins, .peer = peer}}};
  const Work first = rank.batch_op_issue(both, true);
  try {
    const Work second = rank.barrier({.async_op = true});
    need(first);
    need(second);
  } catch (const std::bad_alloc&) {
    (void)rank.comm().abort("no memory");  // `given` and `taken` are the backend's until its end
    (void)first.wait();
    throw;
  }
}

void calls_for_what_cannot_be(const Rank& rank) {
  const Work work = rank.broadcast({.tensor = {}, .root = 7 + rank.rank()});
  EXPECT_EQ(work.wait(), loopback::State::failed);
  need(rank.barrier());
}

void splits(const Rank& rank) {
  const int both[] = {0, 1};
  const auto part = rank.split({.ranks = both, .name = "part"});
  if (!part) throw std::bad_alloc();
  need(part.value().barrier());
}

void has_windows(const Rank& rank) {
  float memory = 0, given = 1;
  const std::span<float> in(&memory, 1), out(&given, 1);
  const loopback::Values ins(in), outs(out);
  const auto window = rank.new_window(ins);
  if (!window) throw std::bad_alloc();
  need(window.value().put(outs, 1 - rank.rank()));
  need(window.value().signal(1 - rank.rank()));
  need(window.value().wait_signal(1 - rank.rank()));
}

/// How often an allocation of all ranks was there to fail.
long fail_each(Program program) {
  bool reached = true;
  long k = 1;
  for (; reached && !testing::Test::HasFailure(); ++k) {
    Bus bus;
    // Somebody listens: operations have an end to be said.
    const auto ends = bus.channel<collective::Completed>().subscribe_inline([](const auto&) {});
    const auto ledger = collective::Ledger::of(bus).value();
    {
      const World world = World::make(bus).value();
      fail_allocations(k, 1);
      try {
        world.run([program](Rank& rank) { program(rank); });
      } catch (const std::bad_alloc&) {
      } catch (const std::system_error&) {  // no thread
      }
      reached = heal_allocations();
    }  // ends every thread, and waits for it
    EXPECT_EQ(ledger->figures().open, 0u) << "allocation " << k;
  }
  return k;
}

TEST(LoopbackMemoryTest, OneThatLacksMemoryLeavesNobodyWaiting) {
  for (const Program one : {waits, waits_for_none, calls_for_what_cannot_be, splits, has_windows}) {
    EXPECT_GT(fail_each(one), 10) << "the test sees too little";
  }
}

}  // namespace
}  // namespace ringmain::tests
