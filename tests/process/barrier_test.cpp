// What if the system refuses the barrier that publishers rely on when a bus already runs?
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <linux/filter.h>
#include <linux/membarrier.h>
#include <linux/seccomp.h>
#include <memory>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>

#include "bus/bus.hpp"

#include "tests/bus/events.hpp"
#include "tests/engine/eventually.hpp"
#include "tests/process/child.hpp"

namespace ringmain::tests {
namespace {

/// From here on no thread of this process may ask for a barrier. False: it cannot be forbidden
/// here.
bool forbid_membarrier() {
  sock_filter rules[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                         BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
                         BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
                         BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  sock_fprog filter{4, rules};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter) == 0;
}

bool has_membarrier() {
  const long known = ::syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
  return known > 0 && (known & MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0;
}

enum : int { kCannotForbid = 3 };

class LateRefusalTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_membarrier()) GTEST_SKIP() << "no membarrier here that could be refused later";
  }
  /// `body` in a child whose bus was made before the refusal.
  template <class Body>
  static void in_refused_child(Body body) {
    const std::string end = in_child([&](Findings& findings) {
      Bus bus(with_workers(2));
      auto& ticks = bus.channel<Tick>();
      std::atomic<std::uint64_t> heard{0};
      const Subscription sub = ticks.subscribe([&heard](const Tick&) { ++heard; });
      auto before = ticks.publisher();
      (void)before.publish({0});
      findings.expect(bus.flush(kLong), "flush before the refusal");
      if (!forbid_membarrier()) ::_exit(kCannotForbid);
      body(findings, bus, before, heard);
      findings.expect(bus.verify_accounting().has_value(), "accounts balance");
      findings.expect(bus.stop(StopMode::drain, kLong).left == 0, "stop() delivers all");
    });
    if (end == "exited with " + std::to_string(kCannotForbid))
      GTEST_SKIP() << "the system installs no filter";
    EXPECT_EQ(end, kFine);
  }
};

TEST_F(LateRefusalTest, ABusThatRunsGoesOnAndNothingIsLost) {
  in_refused_child([](Findings& findings, Bus& bus, Publisher<Tick>& before, auto& heard) {
    // Each is heard before the next is said, so that workers park between two.
    std::uint64_t said = 1;
    const auto say = [&](Publisher<Tick>& by) {
      findings.expect(by.publish({++said}) == PublishCode::accepted, "accepted");
      findings.expect(eventually([&] { return heard == said; }), "heard");
    };
    auto after = bus.channel<Tick>().publisher();
    for (int i = 0; i < 50; ++i) {
      say(before);
      say(after);
    }
    findings.expect(bus.flush(kLong), "flush");
  });
}

TEST_F(LateRefusalTest, SubscribersComeAndGoAndFullPublishersWait) {
  in_refused_child([](Findings& findings, Bus& bus, Publisher<Tick>&, auto& heard) {
    auto& ticks = bus.channel<Tick>();
    PublisherOptions small;
    small.capacity_events = 4;
    small.overflow = Overflow::block;
    small.block_us_max = std::chrono::seconds(60);
    std::thread other([&] {
      auto publisher = std::move(ticks.publisher(small)).value();
      for (std::uint64_t n = 0; n < 200; ++n)
        findings.expect(publisher.publish({n}) == PublishCode::accepted, "a full one waits");
    });
    for (int i = 0; i < 60; ++i) {
      auto captures = std::make_unique<int>(0);
      Subscription sub = ticks.subscribe([p = captures.get()](const Tick&) { ++*p; });
      sub.reset();
    }
    other.join();
    findings.expect(bus.flush(kLong), "flush");
    findings.expect(heard == 201, "heard");
  });
}

TEST_F(LateRefusalTest, OfACheapAndADearSideOneStillSeesTheOther) {
  in_refused_child([](Findings& findings, Bus&, Publisher<Tick>&, auto&) {
    enum : std::size_t { kRounds = 200 };
    std::vector<std::atomic<int>> cheap(kRounds), dear(kRounds);
    std::vector<char> cheap_saw(kRounds), dear_saw(kRounds);
    std::atomic<std::size_t> round{0};
    std::thread other([&] {
      for (std::size_t i = 0; i < kRounds; ++i) {
        while (round < i) {
        }
        cheap[i].store(1, std::memory_order_relaxed);
        engine::asymmetric_fence_light();  // as a publisher that does not fence
        cheap_saw[i] = static_cast<char>(dear[i].load(std::memory_order_relaxed));
      }
    });
    for (std::size_t i = 0; i < kRounds; ++i) {
      round = i;
      dear[i].store(1, std::memory_order_relaxed);
      engine::asymmetric_fence_heavy();
      dear_saw[i] = static_cast<char>(cheap[i].load(std::memory_order_relaxed));
    }
    other.join();
    for (std::size_t i = 0; i < kRounds; ++i)
      findings.expect(cheap_saw[i] != 0 || dear_saw[i] != 0, "neither saw the other");
  });
}

}  // namespace
}  // namespace ringmain::tests
