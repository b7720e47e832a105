// How does a process end while its buses run? At once and without a crash, whichever thread calls
// exit() and whatever static objects, exit handlers and threads still do.
#include <atomic>
#include <cstdlib>
#include <memory>
#include <optional>
#include <thread>
#include <unistd.h>

#include <gtest/gtest.h>

#include "bus/bus.hpp"

#include "tests/bus/events.hpp"
#include "tests/process/child.hpp"

namespace ringmain::tests {
namespace {

/// Static objects of a program, made in the child and destroyed by its exit().
struct Program {
  std::atomic<std::uint64_t> heard{0};
  Bus bus{with_workers(2)};
  Subscription seen = bus.channel<Tick>().subscribe([this](const Tick&) { ++heard; });
  Subscription views = bus.subscribe(">", [this](const EventView&) { ++heard; });
  Publisher<Tick> publisher = bus.channel<Tick>().publisher();
  ~Program() { (void)publisher.publish({1}); }
};
Program& program() {
  static Program it;
  return it;
}

/// Publishes until the process is gone.
void publish_for_ever(Publisher<Tick> publisher) {
  std::thread([mine = std::move(publisher)]() mutable {
    for (std::uint64_t n = 1;; ++n) (void)mine.publish({n});
  }).detach();
}

void use_both_buses() {
  Program& p = program();
  publish_for_ever(p.bus.channel<Tick>().publisher());
  Bus::process().channel<Tick>().subscribe([](const Tick&) {}).release();
  publish_for_ever(Bus::process().channel<Tick>().publisher());
  for (std::uint64_t n = 1; n <= 100; ++n) {
    (void)p.publisher.publish({n});
    (void)Bus::process().channel<Tick>().publish({n});
  }
}

[[noreturn]] void wait_for_the_end() {
  for (;;) ::pause();
}

class ExitTest : public ::testing::Test {
 protected:
  template <class Body>
  static void expect_fine(Body body) {
    const unsigned runs = rounds("RINGMAIN_EXITS", 40);
    for (unsigned i = 0; i < runs && !HasFailure(); ++i) EXPECT_EQ(in_child(body), kFine);
  }
};

TEST_F(ExitTest, BusesRunAndThreadsPublishWhileTheProcessExits) {
  expect_fine([](Findings&) { use_both_buses(); });
}

TEST_F(ExitTest, ACallbackCallsExit) {
  expect_fine([](Findings&) {
    Program& p = program();
    const Subscription ends = p.bus.channel<Tock>().subscribe([](const Tock&) { std::exit(0); });
    use_both_buses();
    (void)p.bus.channel<Tock>().publish({});
    wait_for_the_end();
  });
}

TEST_F(ExitTest, ACallbackOfTheProcessBusCallsExit) {
  expect_fine([](Findings&) {
    use_both_buses();
    Bus::process().channel<Tock>().subscribe([](const Tock&) { std::exit(0); }).release();
    (void)Bus::process().channel<Tock>().publish({});
    wait_for_the_end();
  });
}

TEST_F(ExitTest, ACallbackEndsTheProcessWithoutDestructors) {
  for (const bool quick : {true, false}) {
    expect_fine([quick](Findings&) {
      Program& p = program();
      const Subscription ends = p.bus.channel<Tock>().subscribe([quick](const Tock&) {
        if (quick) std::quick_exit(0);
        ::_exit(0);
      });
      use_both_buses();
      (void)p.bus.channel<Tock>().publish({});
      wait_for_the_end();
    });
  }
}

TEST_F(ExitTest, ExitHandlersPublishResetAndEndBuses) {
  static std::unique_ptr<Bus> bus;
  static std::optional<Subscription> seen;
  static std::atomic<int> heard{0};
  expect_fine([](Findings&) {
    heard = 0;
    bus = std::make_unique<Bus>(with_workers(1));
    seen = bus->channel<Tick>().subscribe([](const Tick&) { ++heard; });
    std::atexit([] {
      if (!bus->channel<Tick>().publish({1}) || !bus->flush(kLong) || heard != 1) ::_exit(3);
      if (seen->reset() != Detached::done) ::_exit(4);
      bus.reset();
      if (Bus::process().channel<Tick>().publish({1}) != PublishCode::accepted) ::_exit(5);
    });
    use_both_buses();
  });
}

TEST_F(ExitTest, ThreadsPublishFromTheirLastDestructors) {
  struct Last {
    std::uint64_t accepted = 0;
    ~Last() {
      (void)Bus::process().channel<Tick>().publish({2});
      (void)program().publisher.publish({3});
    }
  };
  expect_fine([](Findings& f) {
    (void)program();
    std::atomic<int> heard{0};
    Subscription seen = Bus::process().channel<Tick>().subscribe([&](const Tick&) { ++heard; });
    std::thread([] {
      static thread_local Last last;
      (void)Bus::process().channel<Tick>().publish({last.accepted});
    }).join();
    f.expect(Bus::process().flush(kLong) && heard == 2, "a thread's last word is lost");
    (void)seen.reset();
    static thread_local Last mine;  // of the thread that exits
    (void)Bus::process().channel<Tick>().publish({mine.accepted});
  });
}

}  // namespace
}  // namespace ringmain::tests
