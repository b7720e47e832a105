// Are plugins found unloaded, loaded at their first use and unloaded; and does a faulty one harm
// nobody?
#include <algorithm>
#include <dlfcn.h>
#include <map>
#include <string>
#include <sys/wait.h>

#include <gtest/gtest.h>

#include "adapters/registry.hpp"

#include "tests/adapters/plugins/plugin_files.hpp"
#include "tests/engine/eventually.hpp"

namespace ringmain::registry {
namespace {

using tests::faulty;
using tests::Folder;
using tests::fs::path;

bool mapped(const path& library) {
  void* const handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_NOLOAD);
  if (handle != nullptr) ::dlclose(handle);
  return handle != nullptr;
}
ProviderInfo::State state_of(Registry& registry, ProviderKind kind, const char* name) {
  return registry.find(kind, name).value().state;
}

TEST(PluginTest, ItIsListedWithItsTagsFromItsManifestAlone) {
  const Folder folder;
  const path library = folder.take(TALLY);
  Registry registry;
  registry.search(folder.path().string());
  const auto all = registry.list();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].name, "tally");
  EXPECT_EQ(all[0].kind, ProviderKind::sink);
  EXPECT_EQ(all[0].from, library.string());
  EXPECT_EQ(all[1].name, "ticks");
  EXPECT_TRUE(all[1].run.in_process);
  EXPECT_TRUE(registry.list({"example"}).empty());
  EXPECT_FALSE(mapped(library));
  EXPECT_TRUE(registry.faults().empty());
}

TEST(PluginTest, ItsFirstUseLoadsItAndItsObjectsWork) {
  const Folder folder;
  const path library = folder.take(TALLY);
  const path counts = folder.path() / "counts";
  Registry registry;
  registry.search(library.string());  // a library stands for the manifest beside it
  Bus bus;
  {
    auto tally = registry.open_sink("tally:" + counts.string());
    ASSERT_TRUE(tally) << tally.error().message;
    EXPECT_TRUE(mapped(library));
    ASSERT_TRUE(tally.value().attach(bus));
    auto ticks = registry.open_source(bus, "ticks:500");
    ASSERT_TRUE(ticks) << ticks.error().message;
    EXPECT_TRUE(tests::eventually([&] { return tally.value().heard() == 500; }));
    ASSERT_TRUE(tally.value().close());
  }
  EXPECT_EQ(tests::text_of(counts), "example.tick 500\n");
  EXPECT_EQ(registry.open_source(bus, "ticks:many").error().message,
            "ticks wants a number, such as ticks:100");
}

TEST(PluginTest, UnloadingIsRefusedWhileItsObjectsLiveAndUnmapsItThen) {
  const Folder folder;
  const path library = folder.take(faulty("none"));
  Registry registry;
  registry.search(folder.path().string());
  Bus bus;
  auto held = registry.open_source(bus, "held");
  ASSERT_TRUE(held) << held.error().message;
  auto quiet = registry.open_sink("quiet");
  ASSERT_TRUE(quiet);
  auto bridge = registry.open_bridge(bus, "both_ways:x");
  ASSERT_TRUE(bridge);
  const auto refused = registry.unload(library.string());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Error::Code::conflict);
  EXPECT_NE(refused.error().message.find("in use by 3 objects"), std::string::npos);
  held.value().reset();
  bridge.value().reset();
  EXPECT_FALSE(registry.unload(library.string()));
  { SinkHandle gone = std::move(quiet).value(); }
  ASSERT_TRUE(registry.unload(library.string()));
  EXPECT_FALSE(mapped(library));
  EXPECT_EQ(state_of(registry, ProviderKind::source, "held"), ProviderInfo::State::not_loaded);
  ASSERT_TRUE(registry.open_source(bus, "held"));  // and in again
  EXPECT_EQ(registry.unload("nowhere.so").error().code, Error::Code::not_found);
}

TEST(PluginTest, AnOpenObjectOutlivesItsRegistry) {
  const Folder folder;
  const path library = folder.take(faulty("none"));
  Bus bus;
  Opened<Source> held;
  {
    Registry registry;
    registry.search(folder.path().string());
    held = registry.open_source(bus, "held").value();
  }
  EXPECT_TRUE(mapped(library));
  held.reset();
  EXPECT_FALSE(mapped(library));
}

TEST(PluginTest, RefreshFindsWhatCameAndForgetsWhatWent) {
  const Folder folder;
  Registry registry;
  registry.search(folder.path().string());
  EXPECT_TRUE(registry.list().empty());
  const path library = folder.take(TALLY);
  EXPECT_TRUE(registry.find(ProviderKind::sink, "tally"));  // a miss looks again
  tests::fs::remove(tests::manifest_of(library));
  registry.refresh();
  EXPECT_TRUE(registry.list().empty());
  folder.take(TALLY);
  registry.refresh();
  ASSERT_TRUE(registry.load(ProviderKind::source, "ticks"));
  tests::fs::remove(tests::manifest_of(library));
  registry.refresh();
  EXPECT_EQ(registry.list().size(), 2u);  // loaded: it stays
}

TEST(PluginTest, ANameThatIsTakenStaysWhoseItWasAndTheOtherIsNamed) {
  const Folder folder;
  const path library = folder.take(TALLY);
  tests::write(tests::manifest_of(library),
               "library = tally.so\nabi = 1\n[sink json_lines]\n[sink tally]\n");
  Registry registry;
  add_builtin_providers(registry);
  registry.search(folder.path().string());
  EXPECT_EQ(registry.find(ProviderKind::sink, "json_lines").value().from, "");
  EXPECT_TRUE(registry.find(ProviderKind::sink, "tally"));
  ASSERT_EQ(registry.faults().size(), 1u);
  EXPECT_NE(registry.faults()[0].find("there is a sink 'json_lines' already"), std::string::npos);
  registry.refresh();
  EXPECT_EQ(registry.faults().size(), 1u);
  ASSERT_TRUE(registry.remove(ProviderKind::sink, "json_lines"));
  registry.refresh();  // now it is free
  EXPECT_EQ(registry.find(ProviderKind::sink, "json_lines").value().from, library.string());
}

TEST(PluginTest, WhatItsConstructorThrowsOrItsOpenRefusesIsOneSentence) {
  const Folder folder;
  folder.take(faulty("none"));
  Registry registry;
  registry.search(folder.path().string());
  EXPECT_EQ(registry.open_sink("throws").error().message,
            "throws could not be opened: no disk in this room");
  EXPECT_NE(registry.open_sink("throws_a_number").error().message.find("no std::exception"),
            std::string::npos);
  const auto refused = registry.open_sink("refuses");
  EXPECT_EQ(refused.error().code, Error::Code::no_memory);
  EXPECT_EQ(refused.error().message, "there is no room for it");
  EXPECT_EQ(registry.open_sink("gives_nothing").error().message, "its plugin does not say why");
  const auto absent = registry.open_sink("absent");
  EXPECT_NE(absent.error().message.find("has no sink 'absent', though its manifest says so"),
            std::string::npos);
  EXPECT_TRUE(registry.open_sink("quiet"));
  EXPECT_EQ(registry.find(ProviderKind::sink, "throws").value().opened, 0u);
}

/// Each fault, alone in a folder with a plugin that is well.
class FaultyPluginTest : public testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(FaultyPluginTest, ItGetsOneSentenceAndHarmsNobody) {
  const auto& [fault, says] = GetParam();
  const Folder folder;
  const path library = folder.take(faulty(fault));
  const Folder other;
  other.take(TALLY);
  Registry registry;
  registry.search(folder.path().string() + ":" + other.path().string());
  for (int again = 0; again < 2; ++again) {
    const auto opened = registry.open_sink("quiet");
    ASSERT_FALSE(opened);
    const std::string& message = opened.error().message;
    EXPECT_NE(message.find(library.string()), std::string::npos) << message;
    EXPECT_NE(message.find(says), std::string::npos) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }
  EXPECT_EQ(state_of(registry, ProviderKind::sink, "quiet"), ProviderInfo::State::failed);
  EXPECT_FALSE(mapped(library));
  EXPECT_TRUE(registry.load(ProviderKind::sink, "tally"));
}
INSTANTIATE_TEST_SUITE_P(
    All, FaultyPluginTest,
    testing::Values(std::pair("old_abi", "speaks plugin ABI 77 and this ringmain 1"),
                    std::pair("other_layout", "built against another ringmain"),
                    std::pair("no_symbol", "has no ringmain_plugin_v1"),
                    std::pair("null_table", "gives nothing"),
                    std::pair("throws_at_start", "its initialisers throw"),
                    std::pair("exits_at_start", "its initialisers end the program")),
    [](const auto& one) { return std::string(one.param.first); });

/// Alone, because finding that out takes its time.
TEST(PluginTest, OneWhoseInitialisersDoNotEndIsNamedAndNeverLoadedHere) {
  const Folder folder;
  const path library = folder.take(faulty("hangs_at_start"));
  Registry registry;
  registry.search(folder.path().string());
  const auto opened = registry.open_sink("quiet");
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().message.find("its initialisers do not end within ten seconds"),
            std::string::npos)
      << opened.error().message;
  EXPECT_FALSE(mapped(library));
}

TEST(PluginTest, AManifestOfAnotherVersionIsListedAndRefusedUnloaded) {
  const Folder folder;
  const path library = folder.take(TALLY);
  tests::write(tests::manifest_of(library), "library = tally.so\nabi = 2\n[sink tally]\n");
  Registry registry;
  registry.search(folder.path().string());
  EXPECT_EQ(registry.list().size(), 1u);
  const auto opened = registry.open_sink("tally");
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().message.find("ABI 2 and this ringmain 1"), std::string::npos);
}

TEST(PluginTest, AFileThatIsNoPluginIsNamed) {
  const std::pair<std::string, const char*> wrong[] = {
      {"", "it is no shared library"},
      {"#!/bin/sh\n", "it is no shared library"},
      {tests::text_of(TALLY).substr(0, 200), "it is cut short"},
      {tests::text_of(TALLY).substr(0, 9000), "it is cut short"},
      {tests::text_of("/proc/self/exe").substr(0, 3) + "G" + std::string(100, 'x'),
       "it is no shared library"}};
  for (const auto& [content, says] : wrong) {
    const Folder folder;
    const path library = folder.take(TALLY);
    tests::write(library, content);
    tests::write(tests::manifest_of(library),
                 tests::without_sum(tests::text_of(tests::manifest_of(library))));
    Registry registry;
    registry.search(folder.path().string());
    const auto opened = registry.open_sink("tally:x");
    ASSERT_FALSE(opened);
    EXPECT_NE(opened.error().message.find(says), std::string::npos) << opened.error().message;
  }
}

TEST(PluginTest, PlacesAndManifestsThatCannotBeUsedAreNamed) {
  const Folder folder;
  const path alone = folder.path() / "alone.so";
  tests::write(alone, "x");
  tests::write(folder.path() / "bad.ringmain-plugin", "abi = one\n");
  tests::write(folder.path() / "long.ringmain-plugin", std::string(70000, '#'));
  tests::fs::create_directory(folder.path() / "folder.ringmain-plugin");
  Registry registry;
  registry.search("/nowhere::" + alone.string() + ":" + folder.path().string());
  std::string all;
  for (const std::string& fault : registry.faults()) all += fault + "\n";
  EXPECT_EQ(registry.faults().size(), 5u) << all;
  for (const char* says :
       {"no plugins at /nowhere", "alone.so has no manifest alone.ringmain-plugin",
        "line 1: abi should be", "longer than 64 KiB", "it is no file"}) {
    EXPECT_NE(all.find(says), std::string::npos) << all;
  }
  EXPECT_TRUE(registry.list().empty());
}

TEST(PluginTest, ATrialIsInvisibleToAProgramThatReapsItsChildren) {
  const Folder folder;
  folder.take(TALLY);
  static int told = 0;
  struct sigaction before {};
  struct sigaction counting {};
  counting.sa_handler = [](int) { ++told; };
  ::sigaction(SIGCHLD, &counting, &before);
  Registry registry;
  registry.search(folder.path().string());
  ASSERT_TRUE(registry.load(ProviderKind::sink, "tally"));
  EXPECT_EQ(told, 0);
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
  ::sigaction(SIGCHLD, &before, nullptr);
}

}  // namespace
}  // namespace ringmain::registry
