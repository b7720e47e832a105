// Does the registry keep its word: one key per name, tags per name, loaded once, retried,
// removable?
#include "adapters/registry.hpp"

#include <algorithm>
#include <atomic>
#include <latch>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "adapters/registry_events.hpp"
#include "adapters/sources/heartbeat.hpp"

#include "tests/engine/eventually.hpp"

namespace ringmain::registry {
namespace {

struct Word {
  std::uint64_t n;
};
constexpr auto describe(EventOf<Word>) {
  return event("test.word", field<&Word::n>("n"));
}

class CountingSink : public Sink {
 public:
  explicit CountingSink(std::string_view = "") {}
  void hear(const EventView&) override { ++heard; }
  void idle() override { ++idles; }
  Result<bool> close() override {
    ++closes;
    return true;
  }
  std::atomic<int> heard{0}, idles{0}, closes{0};
};
class NullSource final : public Source {
 public:
  NullSource(Bus&, std::string_view) {}
};

Provider named(std::string name, std::vector<std::string> tags = {}) {
  Provider said;
  said.name = std::move(name);
  said.tags = std::move(tags);
  return said;
}
Provider loads(std::string name, Loader load) {
  Provider said = named(std::move(name));
  said.load = std::move(load);
  return said;
}
Result<Factory> counting_factory() {
  return Factory(SinkFactory([](std::string_view) -> Result<std::unique_ptr<Sink>> {
    return std::unique_ptr<Sink>(std::make_unique<CountingSink>());
  }));
}
std::vector<std::string> names_of(const std::vector<ProviderInfo>& all) {
  std::vector<std::string> names;
  for (const auto& info : all) names.push_back(info.name);
  return names;
}

TEST(RegistryTest, ATakenNameIsATypedErrorOrIsReplacedOnPurpose) {
  Registry registry;
  ASSERT_TRUE(registry.add(sink_provider<CountingSink>(named("mine"))));
  auto again = registry.add(sink_provider<CountingSink>(named("mine", {"debug"})));
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, Error::Code::conflict);
  EXPECT_NE(again.error().message.find("there is a sink 'mine' already"), std::string::npos);
  EXPECT_TRUE(registry.find(ProviderKind::sink, "mine").value().tags.empty());  // nothing changed
  ASSERT_TRUE(registry.add(sink_provider<CountingSink>(named("mine", {"debug"})),
                           Registry::Taken::replace));
  EXPECT_EQ(registry.find(ProviderKind::sink, "mine").value().tags,
            std::vector<std::string>{"debug"});
}

TEST(RegistryTest, TheKeyIsTheNameAndTheKindAndNeverTheFactory) {
  Registry registry;
  const auto same = sink_provider<CountingSink>(named("one"));
  ASSERT_TRUE(registry.add(same));
  Provider other = same;
  other.name = "two";
  EXPECT_TRUE(registry.add(other));  // one function under two names
  EXPECT_FALSE(registry.add(same));
  EXPECT_TRUE(registry.add(source_provider<NullSource>(named("one"))));  // another kind
}

TEST(RegistryTest, TagsBelongToTheNameAndNotToWhatItNames) {
  Registry registry;
  Provider shown = sink_provider<CountingSink>(named("shown"));
  Provider hidden = shown;
  hidden.name = "hidden";
  hidden.tags = {"debug"};
  ASSERT_TRUE(registry.add(hidden));
  ASSERT_TRUE(registry.add(shown));
  EXPECT_EQ(names_of(registry.list()), std::vector<std::string>{"shown"});
  EXPECT_EQ(names_of(registry.list({})), (std::vector<std::string>{"hidden", "shown"}));
}

TEST(RegistryTest, TheListIsSortedAndLeavesOutTagsLoadedOrNot) {
  Registry registry;
  for (const char* name : {"zebra", "ant", "mole"}) {
    ASSERT_TRUE(registry.add(sink_provider<CountingSink>(named(name))));
  }
  ASSERT_TRUE(registry.add(sink_provider<CountingSink>(named("bat", {"debug"}))));
  ASSERT_TRUE(registry.add(sink_provider<CountingSink>(named("cat", {"experimental"}))));
  ASSERT_TRUE(registry.add(sink_provider<CountingSink>(named("dog", {"own"}))));
  const std::vector<std::string> plain{"ant", "dog", "mole", "zebra"};
  EXPECT_EQ(names_of(registry.list()), plain);
  ASSERT_TRUE(registry.load(ProviderKind::sink, "bat"));
  EXPECT_EQ(names_of(registry.list()), plain);
  EXPECT_EQ(names_of(registry.list({"own"})),
            (std::vector<std::string>{"ant", "bat", "cat", "mole", "zebra"}));
}

TEST(RegistryTest, ListingAndLookingUpLoadNothing) {
  Registry registry;
  int loads_seen = 0;
  ASSERT_TRUE(registry.add(loads("lazy", [&] {
    ++loads_seen;
    return counting_factory();
  })));
  EXPECT_EQ(registry.list().size(), 1u);
  EXPECT_EQ(registry.find(ProviderKind::sink, "lazy").value().state,
            ProviderInfo::State::not_loaded);
  EXPECT_EQ(loads_seen, 0);
  ASSERT_TRUE(registry.open_sink("lazy"));
  ASSERT_TRUE(registry.open_sink("lazy"));
  EXPECT_EQ(loads_seen, 1);
  EXPECT_EQ(registry.find(ProviderKind::sink, "lazy").value().state, ProviderInfo::State::loaded);
}

TEST(RegistryTest, ConcurrentFirstUsesLoadOnce) {
  Registry registry;
  std::atomic<int> loads_seen{0};
  ASSERT_TRUE(registry.add(loads("lazy", [&] {
    ++loads_seen;
    std::this_thread::yield();
    return counting_factory();
  })));
  constexpr int kThreads = 8;
  std::latch ready(kThreads);
  std::atomic<int> opened{0};
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&] {
        ready.arrive_and_wait();
        if (registry.open_sink("lazy")) ++opened;
      });
    }
  }
  EXPECT_EQ(loads_seen, 1);
  EXPECT_EQ(opened, kThreads);
}

TEST(RegistryTest, AFailedLoadIsTriedAgainAndItsWaitersGetItsReason) {
  Registry registry;
  std::atomic<int> tries{0};
  std::atomic<int> waiting{0};
  ASSERT_TRUE(registry.add(loads("moody", [&]() -> Result<Factory> {
    if (++tries == 1) {
      while (waiting < 2) std::this_thread::yield();
      throw std::runtime_error("not today");
    }
    return counting_factory();
  })));
  std::atomic<int> refused{0};
  {
    std::jthread first([&] {
      auto opened = registry.open_sink("moody");
      if (!opened && opened.error().message.find("not today") != std::string::npos) ++refused;
      ++waiting;
    });
    EXPECT_TRUE(tests::eventually([&] { return tries == 1; }));
    std::vector<std::jthread> others;
    for (int i = 0; i < 2; ++i) {
      others.emplace_back([&] {
        ++waiting;
        if (registry.open_sink("moody")) return;  // came after the failure: it was tried again
        ++refused;
      });
    }
  }
  EXPECT_GE(refused, 1);
  ASSERT_TRUE(registry.open_sink("moody"));
  EXPECT_EQ(tries, 2);
  EXPECT_EQ(registry.find(ProviderKind::sink, "moody").value().fault, "");
}

TEST(RegistryTest, ALoaderThatAsksForItselfIsRefusedAndDoesNotHang) {
  Registry registry;
  std::string inner;
  ASSERT_TRUE(registry.add(loads("snake", [&]() -> Result<Factory> {
    inner = registry.open_sink("snake").error().message;
    return counting_factory();
  })));
  EXPECT_TRUE(registry.open_sink("snake"));
  EXPECT_NE(inner.find("asks for itself"), std::string::npos);
}

TEST(RegistryTest, AnEntryHasALoaderOrIsNotThere) {
  Registry registry;
  auto half = registry.add(named("half"));
  ASSERT_FALSE(half);
  EXPECT_EQ(half.error().code, Error::Code::refused);
  EXPECT_EQ(registry.find(ProviderKind::sink, "half").error().code, Error::Code::not_found);
  for (const char* bad : {"Big", "a:b", "a b", "-x", ".x", "a\n"}) {
    EXPECT_FALSE(registry.add(sink_provider<CountingSink>(loads(bad, counting_factory)))) << bad;
  }
  EXPECT_FALSE(registry.add(loads(std::string(65, 'a'), counting_factory)));
}

TEST(RegistryTest, AFactoryOfAnotherKindOrOfNothingIsNamed) {
  Registry registry;
  ASSERT_TRUE(registry.add(loads("wrong", []() -> Result<Factory> {
    return Factory(SourceFactory(
        [](Bus&, std::string_view) -> Result<std::unique_ptr<Source>> { return Error{}; }));
  })));
  ASSERT_TRUE(
      registry.add(loads("empty", []() -> Result<Factory> { return Factory(SinkFactory{}); })));
  ASSERT_TRUE(registry.add(loads("null", []() -> Result<Factory> {
    return Factory(SinkFactory(
        [](std::string_view) -> Result<std::unique_ptr<Sink>> { return std::unique_ptr<Sink>(); }));
  })));
  EXPECT_NE(registry.open_sink("wrong").error().message.find("of another kind"), std::string::npos);
  EXPECT_NE(registry.open_sink("empty").error().message.find("no factory"), std::string::npos);
  EXPECT_NE(registry.open_sink("null").error().message.find("gave nothing"), std::string::npos);
}

TEST(RegistryTest, ASourceThatHearsFromTheLaunchOnNeedsNoLoaderAndIsNeverOpened) {
  Registry registry;
  Provider said = named("early");
  said.run.at_launch = true;
  EXPECT_EQ(registry.add(said).error().code, Error::Code::refused);  // a sink is opened
  said.kind = ProviderKind::source;
  said.load = source_provider<NullSource>().load;
  ASSERT_TRUE(registry.add(std::move(said)));
  EXPECT_TRUE(registry.load(ProviderKind::source, "early"));
  EXPECT_TRUE(registry.check(ProviderKind::source, "early"));
  Bus bus;
  const auto opened = registry.open_source(bus, "early");
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().message,
            "early is heard in programs that are started so: ringmain run --source early "
            "--sink … -- COMMAND");
  EXPECT_EQ(registry.list().front().opened, 0u);
}

TEST(RegistryTest, AnUnknownNameIsATypedErrorThatNamesTheKnown) {
  Registry registry;
  EXPECT_EQ(registry.find(ProviderKind::sink, "x").error().message,
            "there is no sink 'x'; none is registered");
  add_builtin_providers(registry);
  EXPECT_EQ(registry.find(ProviderKind::sink, "json_line").error().message,
            "there is no sink 'json_line'; did you mean 'json_lines'?");
  EXPECT_EQ(registry.find(ProviderKind::sink, "qqqq").error().message,
            "there is no sink 'qqqq'; there are alarms, json_lines, summary");
  EXPECT_EQ(registry.find(ProviderKind::sink, "heartbeat").error().message,
            "there is no sink 'heartbeat'; 'heartbeat' is a source");
  EXPECT_EQ(registry.check(ProviderKind::sink, "json_lines").error().message,
            "sink json_lines wants a file: json_lines:FILE");
  EXPECT_EQ(registry.check(ProviderKind::sink, "summary:x").error().message,
            "sink summary takes no argument: write summary");
  EXPECT_TRUE(registry.check(ProviderKind::source, "heartbeat:100"));
  EXPECT_TRUE(registry.check(ProviderKind::source, "heartbeat"));
}

TEST(RegistryTest, AnObjectGoesThroughAsItIs) {
  Registry registry;
  auto mine = std::make_shared<CountingSink>();
  Bus bus;
  {
    auto handle = registry.open_sink(std::shared_ptr<Sink>(mine));
    ASSERT_TRUE(handle);
    handle.value().listen(bus.channel<Word>());
    bus.channel<Word>().post({1});
    ASSERT_TRUE(bus.flush(std::chrono::seconds(30)));
    EXPECT_EQ(mine->heard, 1);
  }
  EXPECT_EQ(mine->closes, 1);
  EXPECT_EQ(registry.open_sink(std::shared_ptr<Sink>()).error().code, Error::Code::refused);
  auto source = std::make_shared<NullSource>(bus, "");
  EXPECT_TRUE(registry.open_source(bus, std::shared_ptr<Source>(source)));
}

TEST(RegistryTest, TheDefaultNameIsTheTypesOwn) {
  EXPECT_EQ(detail::default_name(typeid(heartbeat::Source)), "heartbeat");
  EXPECT_EQ(detail::default_name(typeid(CountingSink)), "counting");
  struct HTTPServer {};
  EXPECT_EQ(detail::default_name(typeid(HTTPServer)), "http_server");
  Registry registry;
  ASSERT_TRUE(registry.add(sink_provider<CountingSink>()));
  EXPECT_TRUE(registry.find(ProviderKind::sink, "counting"));
}

TEST(RegistryTest, RemovingWaitsForAFactoryThatIsRunning) {
  Registry registry;
  std::atomic<bool> inside{false};
  std::atomic<bool> go_on{false};
  std::atomic<bool> over{false};
  ASSERT_TRUE(registry.add(loads("slow", [&]() -> Result<Factory> {
    return Factory(SinkFactory([&](std::string_view) -> Result<std::unique_ptr<Sink>> {
      inside = true;
      while (!go_on) std::this_thread::yield();
      over = true;
      return std::unique_ptr<Sink>(std::make_unique<CountingSink>());
    }));
  })));
  std::jthread opening([&] { EXPECT_TRUE(registry.open_sink("slow")); });
  EXPECT_TRUE(tests::eventually([&] { return inside.load(); }));
  std::jthread releasing([&] {
    // The name is free before the wait begins.
    EXPECT_TRUE(tests::eventually([&] { return registry.list().empty(); }));
    go_on = true;
  });
  ASSERT_TRUE(registry.remove(ProviderKind::sink, "slow"));
  EXPECT_TRUE(over);
  EXPECT_EQ(registry.remove(ProviderKind::sink, "slow").error().code, Error::Code::not_found);
}

TEST(RegistryTest, WhatWasOpenedLivesOnWhenItsProviderAndRegistryGo) {
  Bus bus;
  auto registry = std::make_unique<Registry>();
  ASSERT_TRUE(registry->add(sink_provider<CountingSink>()));
  auto handle = registry->open_sink("counting");
  ASSERT_TRUE(handle);
  EXPECT_EQ(registry->find(ProviderKind::sink, "counting").value().opened, 1u);
  ASSERT_TRUE(registry->remove(ProviderKind::sink, "counting"));
  registry.reset();
  handle.value().listen(bus.channel<Word>());
  bus.channel<Word>().post({1});
  ASSERT_TRUE(bus.flush(std::chrono::seconds(30)));
  EXPECT_EQ(handle.value().heard(), 1u);
}

TEST(RegistryTest, ItSaysWhatHappenedInOrder) {
  Bus bus;
  std::vector<std::string> said;
  std::mutex mutex;
  auto hearing = bus.subscribe("registry.>", [&](const EventView& view) {
    const std::lock_guard lock(mutex);
    std::string line(view.channel().substr(9));
    if (const auto* e = view.as<Registered>()) line += std::string(e->replaced ? "!" : "");
    if (const auto* e = view.as<LoadFailed>()) line += " " + std::string(e->reason.view());
    said.push_back(line);
  });
  Registry registry;
  ASSERT_TRUE(registry.tell(&bus));
  bool fails = true;
  const auto load = [&]() -> Result<Factory> {
    if (fails) return Error{Error::Code::system, "no luck"};
    return counting_factory();
  };
  ASSERT_TRUE(registry.add(loads("a", load)));
  EXPECT_FALSE(registry.open_sink("a"));
  fails = false;
  EXPECT_TRUE(registry.open_sink("a"));
  ASSERT_TRUE(registry.add(loads("a", load), Registry::Taken::replace));
  ASSERT_TRUE(registry.remove(ProviderKind::sink, "a"));
  ASSERT_TRUE(registry.tell(nullptr));
  ASSERT_TRUE(registry.add(loads("b", load)));  // not said
  ASSERT_TRUE(bus.flush(std::chrono::seconds(30)));
  const std::lock_guard lock(mutex);
  std::sort(said.begin(), said.end());  // channels have no order among each other
  EXPECT_EQ(said, (std::vector<std::string>{"load_failed no luck", "loaded", "registered",
                                            "registered!", "unregistered"}));
}

}  // namespace
}  // namespace ringmain::registry
