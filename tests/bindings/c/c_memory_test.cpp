// Does each failed allocation in the C interface become a code, with nothing thrown or lost?
#include <thread>

#include "tests/bindings/c/c_support.hpp"
#include "tests/process/allocation_faults.hpp"

namespace ringmain::tests {
namespace {

/// What a script without memory found, in words that need none.
struct Script {
  const char* fault = nullptr;
  int destroyed = 0, owned = 0;

  void expect(bool holds, const char* what) {
    if (!holds && fault == nullptr) fault = what;
  }
  /// Memory, or the thread that needs it.
  bool done(ringmain_code code) {
    expect(code == RINGMAIN_OK || code == RINGMAIN_NO_MEMORY || code == RINGMAIN_SYSTEM,
           ringmain_code_name(code));
    expect(code == RINGMAIN_OK || *ringmain_last_error() != '\0', "no sentence");
    return code == RINGMAIN_OK;
  }
  static void destroy(void* user) { ++static_cast<Script*>(user)->destroyed; }
  static void hear(void*, const ringmain_event*) {}

  void run() {
    ringmain_bus* bus = nullptr;
    if (!done(ringmain_open(nullptr, &bus))) return;
    ringmain_channel* ticks = nullptr;
    const auto type = tick_type("c.scarce");
    if (done(ringmain_define(bus, &type, &ticks))) use(bus, ticks);
    expect(ringmain_close(bus, -1) == RINGMAIN_OK, "close");
    expect(destroyed == owned, "a user is destroyed twice or never");
  }
  void use(ringmain_bus* bus, ringmain_channel* ticks) {
    ringmain_subscription* each = nullptr;
    ringmain_subscription* all = nullptr;
    ringmain_mailbox* box = nullptr;
    ringmain_publisher* publisher = nullptr;
    ringmain_recording* recording = nullptr;
    ringmain_record_options recorded{};
    recorded.bytes = sizeof recorded;
    recorded.folder = "/proc/no";  // in memory: what the system gives is tried elsewhere
    recorded.file_bytes = 1u << 20;
    owned += 2;
    done(ringmain_subscribe(ticks, hear, this, destroy, nullptr, &each));
    done(ringmain_subscribe_pattern(bus, "c.*", hear, this, destroy, nullptr, &all));
    done(ringmain_mailbox_open(ticks, nullptr, &box));
    done(ringmain_publisher_open(ticks, nullptr, &publisher));
    done(ringmain_record(bus, "c.*", &recorded, &recording));
    CTick tick{1, 0, ringmain_name("a name of this script", 21)};
    for (int i = 0; i < 3; ++i) {
      const ringmain_code code = ringmain_publish(ticks, &tick, sizeof tick);
      if (code != RINGMAIN_UNHEARD) done(code);
      if (publisher == nullptr) continue;
      const ringmain_code own = ringmain_publisher_publish(publisher, &tick, sizeof tick);
      if (own != RINGMAIN_UNHEARD) done(own);
    }
    ringmain_channel* other = nullptr;
    (void)ringmain_define(bus, nullptr, &other);  // an error's sentence needs memory as well
    expect(ringmain_publish(ticks, &tick, 3) != RINGMAIN_OK, "a wrong size");
    expect(ringmain_flush(bus, -1) == RINGMAIN_OK, "flush");
    if (box != nullptr) {
      while (ringmain_mailbox_take(box, &tick, sizeof tick, nullptr) == RINGMAIN_OK) {
      }
    }
    ringmain_subscription_free(each);
    ringmain_subscription_free(all);
    ringmain_mailbox_close(box);
    ringmain_publisher_close(publisher);
    ringmain_recording_close(recording);
  }
};

/// In a thread of its own, whose lanes and sentences end with it. True: an allocation failed.
bool run(long first, long width, Script& script) {
  bool reached = false;
  std::thread([&] {
    fail_allocations(first, width);
    script.run();
    reached = heal_allocations();
  }).join();
  return reached;
}

void fail_in_turn(long step, long width) {
  Script whole;  // what the process makes once and keeps is there when blocks are counted
  EXPECT_FALSE(run(1L << 50, 0, whole));
  ASSERT_EQ(whole.fault, nullptr) << whole.fault;
  const long before = allocations_living();
  long k = 1;
  for (bool reached = true; reached && !::testing::Test::HasFailure(); k += step) {
    Script script;
    reached = run(k, width, script);
    EXPECT_EQ(script.fault, nullptr) << "allocation " << k << ": " << script.fault;
    EXPECT_EQ(allocations_living(), before) << "allocation " << k << " leaks";
  }
  EXPECT_GT(k, 50) << "the script allocates next to nothing: the test sees too little";
}

TEST(CMemoryTest, EachAllocationMayFail) {
  fail_in_turn(1, 1);
}

TEST(CMemoryTest, FromEachAllocationOnAllMayFail) {
  fail_in_turn(3, 1L << 40);
}

}  // namespace
}  // namespace ringmain::tests
