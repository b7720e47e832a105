// What does a process say at its door, and has it one at most?
#include "bus/door.hpp"

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "bus/bus.hpp"
#include "bus/core/door_core.hpp"
#include "bus/core/door_words.hpp"
#include "bus/core/dump_requests.hpp"
#include "bus/test_bus.hpp"

#include "tests/bus/events.hpp"
#include "tests/engine/door/door_rig.hpp"

namespace ringmain::tests {
namespace {

using detail::Dumped;
using detail::DumpRequest;
using engine::door::tests::ask;
using engine::door::tests::Folder;

std::string answer_of(detail::DoorWords& words, std::string_view word) {
  engine::door::Reply reply;
  words.answer(word, reply);
  return std::string(reply.view());
}
std::string answer_of(std::string_view word) {
  detail::DoorWords words;
  return answer_of(words, word);
}
bool has(const std::string& text, const std::string& part) {
  return text.find(part) != text.npos;
}

TEST(OpenDoorTest, AProcessHasOneAndItIsOpenWhileAHandleIs) {
  const Folder folder, another;
  auto first = open_door({folder.path()});
  ASSERT_TRUE(first) << first.error().message;
  auto second = open_door();
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_EQ(second.value().path(), first.value().path());
  const auto third = open_door({another.path()});
  ASSERT_FALSE(third);
  EXPECT_EQ(third.error().code, Error::Code::conflict);
  first.value().reset();
  EXPECT_TRUE(has(ask(second.value().path(), "who\n"), "\"pid\": " + std::to_string(::getpid())));
  second.value().reset();
  EXPECT_EQ(folder.entries(), 0u);
  EXPECT_EQ(second.value().path(), "");
  const auto again = open_door({another.path()});
  EXPECT_TRUE(again);
}

TEST(OpenDoorTest, AFolderIsTheSameHoweverItIsSpelled) {
  const Folder folder, another;
  std::filesystem::create_directory_symlink(folder.path(), another / "link");
  std::filesystem::create_directory(folder / "within");
  const std::string name = std::filesystem::path(folder.path()).filename();
  for (const std::string& first : {folder.path(), folder.path() + "//", folder / "within/../."}) {
    auto door = open_door({first});
    ASSERT_TRUE(door) << door.error().message;
    EXPECT_TRUE(has(ask(door.value().path(), "who\n"), "\"pid\"")) << first;
    for (const std::string& same :
         {folder.path(), folder.path() + "/", folder / ".", folder / "within/..", another / "link",
          another / "link/", folder / ("../" + name)}) {
      const auto again = open_door({same});
      ASSERT_TRUE(again) << same << ": " << again.error().message;
      EXPECT_EQ(again.value().path(), door.value().path());
    }
    for (const std::string& other : {another.path(), another / "none", folder / "within"}) {
      const auto refused = open_door({other});
      ASSERT_FALSE(refused) << other;
      EXPECT_EQ(refused.error().code, Error::Code::conflict);
    }
  }
  const auto behind_a_link = open_door({another / "link/"});
  ASSERT_FALSE(behind_a_link);
  EXPECT_TRUE(has(behind_a_link.error().message, "it is a link")) << behind_a_link.error().message;
}

TEST(OpenDoorTest, WhereThereCanBeNoneASentenceSaysWhy) {
  const auto made = open_door({"relative"});
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, Error::Code::system);
  EXPECT_TRUE(has(made.error().message, "no absolute path")) << made.error().message;
}

TEST(OpenDoorTest, TheVariableIsOneOrAFolder) {
  EXPECT_FALSE(detail::read_door_variable("").opens);
  EXPECT_FALSE(detail::read_door_variable("0").opens);
  EXPECT_TRUE(detail::read_door_variable("1").opens);
  EXPECT_EQ(detail::read_door_variable("1").folder, "");
  EXPECT_EQ(detail::read_door_variable("/some/where").folder, "/some/where");
  for (const char* const other : {"yes", "2", "some/where"}) {
    EXPECT_FALSE(detail::read_door_variable(other).opens) << other;
    EXPECT_NE(detail::read_door_variable(other).complaint, "") << other;
  }
}

TEST(DoorWordsTest, ARankIsSaidWhereALauncherSaysOne) {
  const std::string without = answer_of("who");
  EXPECT_TRUE(has(without, "\"rank\": null")) << without;
  EXPECT_TRUE(has(without, "\"world_size\": null")) << without;
  ASSERT_EQ(::setenv("RANK", "0", 1) | ::setenv("WORLD_SIZE", "2", 1), 0);
  const std::string with = answer_of("who");
  ASSERT_EQ(::unsetenv("RANK") | ::unsetenv("WORLD_SIZE"), 0);
  EXPECT_TRUE(has(with, "\"rank\": 0")) << with;
  EXPECT_TRUE(has(with, "\"world_size\": 2")) << with;
}

TEST(DoorWordsTest, EveryAnswerEndsInAnEmptyLine) {
  for (const char* const word :
       {"stats", "dump", "stacks", "stalled", "who", "help", "", "none of them"}) {
    EXPECT_TRUE(answer_of(word).ends_with("\n\n")) << word;
    EXPECT_EQ(answer_of(word).find("\n\n"), answer_of(word).size() - 2) << word;
  }
  EXPECT_EQ(answer_of("none"),
            "ringmain: a door answers stats, dump, stacks, stalled, who and help\n\n");
}

TEST(DoorWordsTest, StatsTellAllBusesThatLive) {
  BusOptions options;
  options.name = "one of two";
  {
    Bus bus(options);
    TestBus by_hand;
    const auto seen = by_hand.channel<Tick>().subscribe([](const Tick&) {}, {.name = "the seer"});
    for (int i = 0; i < 7; ++i) by_hand.channel<Tick>().post({});
    const std::string stats = answer_of("stats");
    EXPECT_TRUE(has(stats, "\"name\": \"one of two\"")) << stats;
    EXPECT_TRUE(has(stats, "\"name\": \"the seer\"")) << stats;
    EXPECT_TRUE(has(stats, "\"pending\": 7")) << stats;
  }
  EXPECT_FALSE(has(answer_of("stats"), "one of two"));
}

TEST(DoorWordsTest, StatsMayBeAskedWhileBusesComePublishAndEnd) {
  std::atomic<bool> over{false};
  std::thread asking([&over] {
    detail::DoorWords words;
    while (!over) EXPECT_TRUE(answer_of(words, "stats").ends_with("}\n\n"));
  });
  for (int round = 0; round < 30; ++round) {
    Bus bus(with_workers(1));
    const auto seen = bus.channel<Tick>().subscribe([](const Tick&) {});
    for (int i = 0; i < 20; ++i) bus.channel<Tick>().post({});
  }
  over = true;
  asking.join();
}

TEST(DoorWordsTest, WithoutPythonThereAreNoStacks) {
  EXPECT_EQ(answer_of("stacks"), "ringmain: there is no Python in this process\n\n");
  const auto stacks = python_stacks();
  ASSERT_FALSE(stacks);
  EXPECT_EQ(stacks.error().code, Error::Code::refused);
}

TEST(DoorWordsTest, ADumpIsOfAllThatAreThereAndSaysWhatWentWrong) {
  const DumpRequest good([](std::vector<Dumped>& written) { written.push_back({"/made/3", ""}); });
  const DumpRequest bad([](std::vector<Dumped>& written) {
    written.push_back({"/made/4", "a disk is full"});
  });
  std::size_t before = 0;
  const DumpRequest last([&](std::vector<Dumped>& written) { before = written.size(); });
  {
    const DumpRequest gone([](std::vector<Dumped>&) { ADD_FAILURE() << "it has ended"; });
  }
  const std::string dump = answer_of("dump");
  EXPECT_EQ(before, 2u);
  EXPECT_TRUE(has(dump, "\"path\": \"/made/3\"")) << dump;
  EXPECT_TRUE(has(dump, "\"error\": null")) << dump;
  EXPECT_TRUE(has(dump, "\"error\": \"a disk is full\"")) << dump;
}

TEST(DoorWordsTest, ADumpThatHangsIsOneAndHoldsUpNoOtherAnswer) {
  std::mutex mutex;
  std::condition_variable changed;
  bool goes_on = false;
  int calls = 0;
  const DumpRequest slow([&](std::vector<Dumped>& written) {
    std::unique_lock lock(mutex);
    ++calls;
    changed.wait(lock, [&] { return goes_on; });
    written.push_back({"/made/5", ""});
  });
  detail::DoorWords words(nanoseconds(1));
  for (int i = 0; i < 3; ++i)
    EXPECT_TRUE(has(answer_of(words, "dump"), "a dump has been under way for"));
  EXPECT_TRUE(has(answer_of(words, "who"), "\"pid\""));
  std::string dump;
  {
    const std::lock_guard lock(mutex);
    EXPECT_LE(calls, 1);
    goes_on = true;
    changed.notify_all();
  }
  while (!has(dump = answer_of(words, "dump"), "/made/5")) {
  }
  const std::lock_guard lock(mutex);
  EXPECT_EQ(calls, 1);  // what became of it was told, and none was begun anew
}

}  // namespace
}  // namespace ringmain::tests
