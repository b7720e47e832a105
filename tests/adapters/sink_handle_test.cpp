// Does a sink's handle make each of its calls as a subscriber's?
#include "adapters/sink_handle.hpp"

#include <atomic>
#include <memory>
#include <stdexcept>

#include <gtest/gtest.h>

#include "bus/bus.hpp"

#include "tests/bus/events.hpp"
#include "tests/engine/eventually.hpp"

namespace ringmain::tests {
namespace {

/// Asks in each of its calls whether the thread knows where it is.
class AskingSink : public registry::Sink {
 public:
  void hear(const EventView&) override {
    heard += in_subscriber() ? 1 : 0;
    throw std::runtime_error("as it says");
  }
  void idle() override {
    (in_subscriber() ? idle_inside : idle_outside) += 1;
    throw std::runtime_error("as it says");
  }

  std::atomic<int> heard{0};
  std::atomic<int> idle_inside{0};
  std::atomic<int> idle_outside{0};
};

/// A sink that causes events when it is idle would be called again for each of them.
TEST(SinkHandleTest, ASinkThatHearsOrIsIdleIsInASubscriber) {
  Bus bus(with_workers(1));
  auto& ticks = bus.channel<Tick>();
  const auto sink = std::make_shared<AskingSink>();
  registry::SinkHandle handle("asking", sink);
  ASSERT_TRUE(handle.attach(bus, "test.>"));
  ASSERT_TRUE(ticks.publish({}));
  EXPECT_TRUE(eventually([&] { return sink->heard == 1 && sink->idle_inside >= 1; }));
  handle.flush();  // in this thread
  EXPECT_FALSE(in_subscriber());
  EXPECT_TRUE(handle.close());
  EXPECT_EQ(handle.heard(), 1u);
  EXPECT_EQ(sink->idle_outside, 0);
}

}  // namespace
}  // namespace ringmain::tests
