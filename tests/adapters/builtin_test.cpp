// Is each source that comes with ringmain found by its name, and does it say how it is opened?
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "adapters/registry.hpp"
#include "adapters/sources/heartbeat.hpp"

namespace ringmain::registry {
namespace {

class BuiltinTest : public testing::Test {
 protected:
  BuiltinTest() { add_builtin_providers(registry); }
  Registry registry;
};

TEST_F(BuiltinTest, EachHasItsNameAndALineForLists) {
  std::vector<std::string> names;
  for (const ProviderInfo& one : registry.list()) {
    names.push_back(one.name);
    EXPECT_NE(one.summary, "") << one.name;
    EXPECT_TRUE(registry.load(one.kind, one.name)) << one.name;
  }
  EXPECT_EQ(names,
            (std::vector<std::string>{"alarms", "cuda", "heartbeat", "json_lines", "mpi", "nccl",
                                      "nccl_calls", "nvtx", "summary", "torch", "torch_waits"}));
}

TEST_F(BuiltinTest, WhatHearsFromTheLaunchOnIsNotOpenedButSaysHowToStartTheProgram) {
  const std::vector<std::pair<std::string, std::string>> ends = {
      {"mpi", "COMMAND, such as mpirun -n 4 ./train"},
      {"nccl_calls", "COMMAND, or include nccl.hpp in the program"},
      {"nvtx", "COMMAND"},
      {"torch", "COMMAND, or call ringmain.torch.attach(bus) in the Python program"},
      {"torch_waits", "COMMAND"}};
  Bus bus;
  for (const auto& [name, end] : ends) {
    const auto opened = registry.open_source(bus, name);
    ASSERT_FALSE(opened) << name;
    EXPECT_EQ(opened.error().code, Error::Code::refused);
    EXPECT_EQ(opened.error().message,
              name + " is heard in programs that are started so: ringmain run --source " + name +
                  " --sink … -- " + end);
  }
}

TEST_F(BuiltinTest, OnlyWhatAProgramDoesNotNoticeIsLetInUnasked) {
  for (const ProviderInfo& one : registry.list({})) {
    EXPECT_EQ(one.run.unasked, one.name == "torch") << one.name;
  }
}

TEST_F(BuiltinTest, AHeartbeatBeatsAsItsArgumentSays) {
  Bus bus;
  Mailbox<heartbeat::Beat> heard = bus.channel<heartbeat::Beat>().mailbox();
  const auto opened = registry.open_source(bus, "heartbeat:1");
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_TRUE(heard.wait_for(std::chrono::seconds(20)));
  for (const char* wrong : {"heartbeat:0", "heartbeat:-1", "heartbeat:1s", "heartbeat:never"}) {
    const auto refused = registry.check(ProviderKind::source, wrong);
    ASSERT_FALSE(refused) << wrong;
    EXPECT_EQ(refused.error().message.find("heartbeat wants its period in ms"), 0u) << wrong;
  }
}

}  // namespace
}  // namespace ringmain::registry
