// What do the tests of the C interface share? An event as C describes it, and a bus of their own.
#pragma once
#include <atomic>
#include <cstring>
#include <string>

#include <gtest/gtest.h>

#include "bindings/c/ringmain.h"

namespace ringmain::tests {

struct CTick {
  std::uint64_t n;
  std::uint32_t device;
  std::uint32_t who;
};

inline const ringmain_field kTickFields[] = {
    RINGMAIN_FIELD(CTick, n, RINGMAIN_U64, RINGMAIN_UNIT_COUNT),
    RINGMAIN_FIELD(CTick, device, RINGMAIN_U32, RINGMAIN_UNIT_DEVICE),
    RINGMAIN_FIELD(CTick, who, RINGMAIN_NAME, RINGMAIN_UNIT_NONE)};

inline ringmain_event_type tick_type(const char* name = "c.tick") {
  return {sizeof(ringmain_event_type), sizeof(CTick), name, kTickFields, 3, sizeof(ringmain_field)};
}

/// A sentence says what is wrong and, after a semicolon, how to mend it.
inline void expect_error(ringmain_code code, ringmain_code expected, const std::string& part) {
  const std::string said = ringmain_last_error();
  EXPECT_EQ(code, expected) << ringmain_code_name(code) << ": " << said;
  EXPECT_NE(said.find(part), std::string::npos) << said;
}
inline void expect_ok(ringmain_code code) {
  EXPECT_EQ(code, RINGMAIN_OK) << ringmain_code_name(code) << ": " << ringmain_last_error();
}

/// Counts what it hears of one publisher, and that it is in order.
struct Heard {
  std::atomic<std::uint64_t> count{0}, last{0}, destroyed{0};
  std::atomic<bool> disordered{false};
  static void hear(void* user, const ringmain_event* event) {
    auto& self = *static_cast<Heard*>(user);
    const auto& tick = *static_cast<const CTick*>(event->event);
    if (tick.n <= self.last) self.disordered = true;
    self.last = tick.n;
    ++self.count;
  }
  static void destroy(void* user) { ++static_cast<Heard*>(user)->destroyed; }
};

class CBusTest : public testing::Test {
 protected:
  CBusTest() {
    ringmain_bus_options options{};
    options.bytes = sizeof options;
    options.workers = 2;
    expect_ok(ringmain_open(&options, &bus_));
    const ringmain_event_type type = tick_type();
    expect_ok(ringmain_define(bus_, &type, &ticks_));
  }
  ~CBusTest() override {
    if (bus_ != nullptr) expect_ok(ringmain_close(bus_, -1));
  }
  ringmain_code publish(std::uint64_t n) {
    const CTick tick{n, 0, 0};
    return ringmain_publish(ticks_, &tick, sizeof tick);
  }
  ringmain_subscription* subscribe(Heard& heard,
                                   const ringmain_subscribe_options* options = nullptr) {
    ringmain_subscription* made = nullptr;
    expect_ok(ringmain_subscribe(ticks_, Heard::hear, &heard, Heard::destroy, options, &made));
    return made;
  }

  ringmain_bus* bus_ = nullptr;
  ringmain_channel* ticks_ = nullptr;
};

}  // namespace ringmain::tests
