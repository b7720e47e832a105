// Does every operation carry one id, whoever joins the wrapper's events with a plugin's log? Eight
// threads call for operations in groups as a seed has it.
#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "bus/bus.hpp"

#include "adapters/sources/collective/collective_current.hpp"

#include "tests/adapters/nccl/wrapper_fixture.hpp"

namespace ringmain::tests {
namespace {

using collective::Completed;
using collective::Failed;
using collective::Issued;

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr int kOperations = 1000;
#else
constexpr int kOperations = 10000;
#endif
constexpr int kThreads = 8;

/// What the plugin saw inside of a call, as its thread's part of the driver's log.
struct Saw {
  std::uint64_t op_id;
  const void* comm;
};
thread_local std::vector<Saw>* log_here = nullptr;
void see(const char*, const void* comm) {
  log_here->push_back({collective::current_operation(), comm});
  (void)collective::promise_end();
}

struct Driver {
  std::vector<Saw> log;
  std::uint64_t groups = 0;
};

void drive(Driver& driver, nccl::ncclComm_t comm, collective::Ledger& ledger, unsigned seed) {
  log_here = &driver.log;
  std::mt19937 random(seed);
  float data = 0;
  std::size_t ended = 0;
  const auto end_all = [&] {
    for (; ended < driver.log.size(); ++ended) {
      if (!ledger.completed(driver.log[ended].op_id)) ADD_FAILURE() << "its end was said before";
    }
  };
  int depth = 0;
  for (int i = 0; i < kOperations; ++i) {
    if (depth < 3 && random() % 3 == 0) {
      ++depth;
      (void)nccl::GroupStart();
    }
    const auto on = stream_of(random() % 4);
    const auto count = static_cast<std::size_t>(i);
    nccl::ncclResult_t result{};
    switch (random() % 3) {
      case 0:
        result = nccl::AllReduce(&data, &data, count, nccl::ncclFloat32, nccl::ncclSum, comm, on);
        break;
      case 1:
        result = nccl::Send(&data, count, nccl::ncclFloat32, 0, comm, on);
        break;
      default:
        result = nccl::Bcast(&data, count, nccl::ncclFloat32, 0, comm, on);
        break;
    }
    if (result != nccl::ncclSuccess) ADD_FAILURE() << static_cast<int>(result);
    // Groups are short: what is open has room in the ledger.
    if (depth != 0 && (random() % 2 == 0 || driver.log.size() - ended > 100)) {
      for (; depth != 0; --depth) (void)nccl::GroupEnd();
      ++driver.groups;
    }
    if (depth == 0) end_all();
  }
  for (; depth != 0; --depth) (void)nccl::GroupEnd();
  end_all();
}

TEST(WrapperThreadsTest, AJoinByIdEqualsTheDriversOwnLog) {
  fake_nccl::fake_nccl_reset();
  Bus bus;
  PublisherOptions large;
  large.capacity_events = 1 << 20;
  ASSERT_TRUE(bus.channel<Issued>().set_thread_lanes(large));
  ASSERT_TRUE(bus.channel<Completed>().set_thread_lanes(large));
  std::mutex mutex;
  std::vector<Issued> issued;
  std::vector<std::uint64_t> completed;
  std::atomic<int> failed{0};
  const auto hears = bus.channel<Issued>().subscribe([&](const Issued& one) {
    const std::lock_guard lock(mutex);
    issued.push_back(one);
  });
  const auto hears_ends = bus.channel<Completed>().subscribe([&](const Completed& one) {
    const std::lock_guard lock(mutex);
    completed.push_back(one.op_id);
  });
  const auto hears_failures = bus.channel<Failed>().subscribe([&](const Failed&) { ++failed; });
  auto calls = nccl::Calls::attach(bus);
  ASSERT_TRUE(calls);
  const auto ledger = collective::Ledger::of(bus).value();
  fake_nccl::fake_nccl_inside(see);

  std::vector<nccl::ncclComm_t> comms(kThreads);
  ASSERT_EQ(nccl::CommInitAll(comms.data(), kThreads, nullptr), nccl::ncclSuccess);
  std::vector<Driver> drivers(kThreads);
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] { drive(drivers[i], comms[i], *ledger, i); });
  }
  for (auto& one : threads) one.join();
  ASSERT_TRUE(bus.flush(std::chrono::minutes(10)));
  fake_nccl::fake_nccl_inside(nullptr);

  std::map<std::uint64_t, const Issued*> by_id;
  for (const Issued& one : issued) EXPECT_TRUE(by_id.emplace(one.op_id, &one).second);
  EXPECT_EQ(by_id.size(), std::size_t{kThreads} * kOperations);
  std::set<std::uint64_t> joined;
  for (int i = 0; i < kThreads; ++i) {
    const Driver& driver = drivers[static_cast<std::size_t>(i)];
    EXPECT_EQ(driver.log.size(), static_cast<std::size_t>(kOperations));
    EXPECT_GT(driver.groups, 0u);
    for (std::size_t at = 0; at < driver.log.size(); ++at) {
      const auto found = by_id.find(driver.log[at].op_id);
      ASSERT_NE(found, by_id.end());
      EXPECT_TRUE(joined.insert(found->first).second);
      EXPECT_EQ(found->second->rank, i);
      const std::uint64_t count = std::max(found->second->in_elements, found->second->out_elements);
      EXPECT_EQ(count, at);
    }
  }
  std::sort(completed.begin(), completed.end());
  EXPECT_TRUE(std::equal(completed.begin(), completed.end(), joined.begin(), joined.end()));
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(ledger->figures().open, 0u);
  EXPECT_EQ(ledger->figures().late, 0u);
  for (auto* const one : comms) EXPECT_EQ(nccl::CommDestroy(one), nccl::ncclSuccess);
}

TEST(WrapperThreadsTest, OneMayAbortWhatOthersCallForAndAttachmentsMayGo) {
  fake_nccl::fake_nccl_reset();
  for (int round = 0; round < 20; ++round) {
    Bus bus;
    const auto hears = bus.channel<Issued>().subscribe([](const Issued&) {});
    auto calls = nccl::Calls::attach(bus);
    ASSERT_TRUE(calls);
    nccl::ncclComm_t comms[4] = {};
    ASSERT_EQ(nccl::CommInitAll(comms, 4, nullptr), nccl::ncclSuccess);
    std::atomic<bool> over{false};
    std::vector<std::thread> threads;
    for (auto* const comm : comms) {
      threads.emplace_back([&, comm] {
        float data = 0;
        while (!over) {
          (void)nccl::GroupStart();
          (void)nccl::AllReduce(&data, &data, 1, nccl::ncclFloat32, nccl::ncclSum, comm, nullptr);
          (void)nccl::GroupEnd();
        }
      });
    }
    for (int i = 0; i < 2; ++i) EXPECT_EQ(nccl::CommAbort(comms[i]), nccl::ncclSuccess);
    calls.value().detach();
    over = true;
    for (auto& one : threads) one.join();
    for (int i = 2; i < 4; ++i) EXPECT_EQ(nccl::CommDestroy(comms[i]), nccl::ncclSuccess);
  }
}

}  // namespace
}  // namespace ringmain::tests
