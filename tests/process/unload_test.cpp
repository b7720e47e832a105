// May a library that subscribed be unloaded? Once its subscriptions are reset nothing of it is left
// in the bus: no code, no capture, no description. And may two copies of ringmain live together?
#include <atomic>
#include <dlfcn.h>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "bus/bus.hpp"

#include "tests/bus/events.hpp"
#include "tests/bus/recording_reader.hpp"
#include "tests/engine/flight/flight_rig.hpp"
#include "tests/process/child.hpp"
#include "tests/process/sanitized.hpp"

namespace ringmain::tests {
namespace {

/// A loaded plugin.cpp; unloaded at its end.
class Plugin {
 public:
  explicit Plugin(const char* path) : handle_(::dlopen(path, RTLD_NOW | RTLD_LOCAL)), path_(path) {
    EXPECT_NE(handle_, nullptr) << ::dlerror();
  }
  ~Plugin() {
    EXPECT_EQ(::dlclose(handle_), 0);
    EXPECT_EQ(::dlopen(path_.c_str(), RTLD_NOW | RTLD_NOLOAD), nullptr) << "it is still loaded";
  }
  Plugin(const Plugin&) = delete;
  Plugin& operator=(const Plugin&) = delete;
  template <class F>
  F* function(const char* name) const {
    return reinterpret_cast<F*>(::dlsym(handle_, name));
  }

 private:
  void* handle_;
  std::string path_;
};

TEST(UnloadTest, NothingOfAPluginIsLeftBehindItsReset) {
  Bus bus(with_workers(2));
  std::atomic<bool> over{false};
  std::atomic<std::uint64_t> heard{0};
  const Subscription all = bus.subscribe(">", [&heard](const EventView& e) {
    heard += e.schema().fields.size() + e.schema().name.size();  // of plugins that are gone as well
  });
  std::thread traffic([&] {
    while (!over) (void)bus.channel<Tick>().publish({1});
  });
  const unsigned cycles = rounds("RINGMAIN_UNLOADS", 300);
  for (unsigned i = 0; i < cycles && !HasFailure(); ++i) {
    const Plugin plugin(RINGMAIN_TESTS_PLUGIN);
    EXPECT_TRUE(i % 3 != 0 || bus.flush(kLong));  // what the last one left would be heard too
    plugin.function<void(void*)>("attach")(&bus);
    plugin.function<void(std::uint64_t)>("publish")(20);
    EXPECT_TRUE(i % 3 != 0 || plugin.function<int(std::uint64_t)>("heard")(20) == 1);
    const char* how = i % 2 == 0 ? "detach" : "detach_in_a_callback";
    EXPECT_EQ(plugin.function<int()>(how)(), 1) << how << " in cycle " << i;
  }
  over = true;
  traffic.join();
  EXPECT_TRUE(bus.flush(kLong));
  EXPECT_TRUE(bus.verify_accounting().has_value());
}

TEST(UnloadTest, WhatAnUnloadedPluginPublishedIsRecordedWithItsType) {
  const Folder folder;
  Bus bus(with_workers(1));
  auto options = in_folder(folder.path());
  options.ring_bytes = 64u << 10;
  auto recording = bus.record("plugin.*", options).value();
  ASSERT_EQ(recording.complaint(), "");
  const auto recorded = [path = recording.path()] {
    const auto read = engine::flight::read_flight(path);
    EXPECT_EQ(read.damage + read.refusal, "");
    std::uint64_t records = 0;
    bool has_type = false;
    for (const auto& ring : read.rings) records += ring.ring.written + ring.annex.written;
    for (const auto& text : read.text) {
      has_type = has_type || (text.kind == engine::flight::TextKind::schema &&
                              text.text.find("plugin.ping") != std::string::npos);
    }
    EXPECT_TRUE(has_type);
    return records;
  };
  std::uint64_t before = 0;
  for (int cycle = 0; cycle < 20 && !HasFailure(); ++cycle) {
    {
      const Plugin plugin(RINGMAIN_TESTS_PLUGIN);
      plugin.function<void(void*)>("attach")(&bus);
      plugin.function<void(std::uint64_t)>("publish")(20);
      EXPECT_EQ(plugin.function<int()>("detach")(), 1);
    }
    const std::uint64_t now = recorded();  // nothing of the plugin is mapped
    EXPECT_GE(now, before + 20);
    before = now;
  }
  recording.reset();
  EXPECT_EQ(recorded(), before);
  EXPECT_TRUE(bus.verify_accounting());
}

TEST(UnloadTest, TheLibraryItselfStays) {
  if (is_sanitized()) GTEST_SKIP() << "AddressSanitizer takes a second copy for a broken rule";
  // Its workers run in it, and threads that published end in it.
  void* lib = ::dlopen(RINGMAIN_TESTS_SECOND_COPY, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(lib, nullptr) << ::dlerror();
  EXPECT_EQ(::dlclose(lib), 0);
  EXPECT_NE(::dlopen(RINGMAIN_TESTS_SECOND_COPY, RTLD_NOW | RTLD_NOLOAD), nullptr);
}

}  // namespace
}  // namespace ringmain::tests
