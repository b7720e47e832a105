// Does a door answer whoever is let in, however rude the others are, and without the program's
// noticing?
#include "engine/door/door.hpp"

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <sys/syscall.h>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tests/engine/door/door_rig.hpp"
#include "tests/process/sanitized.hpp"

namespace ringmain::engine::door::tests {
namespace {

namespace fs = std::filesystem;
using ringmain::tests::is_watched_by_tsan;

constexpr const char kTooLong[] =
    "ringmain: a request is one word on a line of 255 bytes at most\n\n";

TEST(DoorTest, AnswersTheWordThatStandsOnALine) {
  const Folder folder;
  const auto door = open_echo(folder);
  ASSERT_NE(door, nullptr);
  EXPECT_EQ(ask(door->path(), "stats\n"), "stats");
  EXPECT_EQ(ask(door->path(), "  stats \r\nmore\n"), "stats");
  EXPECT_EQ(ask(door->path(), "\n"), "");
}

TEST(DoorTest, OneThatEndsItsWordsNeedsNoLine) {
  const Folder folder;
  const auto door = open_echo(folder);
  const Peer peer(door->path());
  peer.say("sta");
  peer.say("cks");
  peer.end_of_words();
  EXPECT_EQ(peer.hear(), "stacks");
}

TEST(DoorTest, ALineThatIsTooLongIsRefusedAndTheOthersAreServed) {
  const Folder folder;
  const auto door = open_echo(folder);
  const std::string longest(kRequestBytesMax, 'a');
  EXPECT_EQ(ask(door->path(), longest + "\n"), longest);
  EXPECT_NE(ask(door->path(), std::string(1 << 20, 'a') + "\n").find("255 bytes"),
            std::string::npos);
  EXPECT_EQ(ask(door->path(), "on\n"), "on");
}

TEST(DoorTest, WhoeverSaysMoreThanItsWordHearsTheAnswerAndAnEndInOrder) {
  const Folder folder;
  const auto door = open_echo(folder);
  for (const std::size_t more : {1u, 300u, 5000u, 1u << 20}) {
    for (const std::string& line : {std::string(kRequestBytesMax + more, 'a') + "\n",
                                    "on\n" + std::string(more, 'a'), "on\non\n" + std::string()}) {
      const Peer peer(door->path());
      peer.say(line);
      int error = -1;
      const std::string heard = peer.hear(&error);
      EXPECT_EQ(error, 0) << more;
      EXPECT_EQ(heard, line.starts_with("on") ? "on" : kTooLong) << more;
    }
  }
}

TEST(DoorTest, WhoeverNeverStopsTalkingIsDroppedWhenItsTimeIsUp) {
  const Folder folder;
  std::string complaint;
  const auto door = open_echo(folder.path(), complaint, INT64_MAX / 4, 1'000'000);
  ASSERT_NE(door, nullptr) << complaint;
  const Peer peer(door->path());
  peer.say("on\n");
  const std::string much(1 << 20, 'a');
  while (peer.says(much)) {
  }
  EXPECT_EQ(ask(door->path(), "on\n"), "on");
}

TEST(DoorTest, PeersThatSayNothingOrLeaveHoldNobodyUp) {
  const Folder folder;
  const auto door = open_echo(folder);
  std::vector<Peer> silent;
  for (std::size_t i = 0; i + 1 < kPeersMax; ++i) silent.emplace_back(door->path());
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(ask(door->path(), "on\n"), "on");
    Peer(door->path()).leave();
    Peer early(door->path());
    early.say("1000000\n");  // and does not stay to hear it
    early.leave();
  }
}

TEST(DoorTest, WhoeverTakesAllPlacesIsDroppedWhenItsTimeIsUp) {
  const Folder folder;
  std::string complaint;
  const auto door = open_echo(folder.path(), complaint, 1'000'000);
  ASSERT_NE(door, nullptr) << complaint;
  std::vector<Peer> silent;
  for (std::size_t i = 0; i < 3 * kPeersMax; ++i) silent.emplace_back(door->path());
  for (const Peer& peer : silent) EXPECT_EQ(peer.hear(), "");  // ends, as it was dropped
}

TEST(DoorTest, ALongAnswerIsWholeAndManyAreServedAtOnce) {
  const Folder folder;
  const auto door = open_echo(folder);
  std::atomic<int> whole{0};
  std::vector<std::thread> asking;
  for (int i = 0; i < 24; ++i) {
    asking.emplace_back([&] {
      const std::string answer = ask(door->path(), "3000000\n");
      if (answer == std::string(3'000'000, 'x')) ++whole;
    });
  }
  for (std::thread& one : asking) one.join();
  EXPECT_EQ(whole, 24);
}

TEST(DoorTest, OnlyItsOwnUserAndRootAreLetIn) {
  EXPECT_TRUE(is_let_in(1000, 1000));
  EXPECT_TRUE(is_let_in(0, 1000));
  EXPECT_FALSE(is_let_in(1001, 1000));
  EXPECT_FALSE(is_let_in(1000, 0));
}

TEST(DoorTest, TheProgramSeesNoneOfItsDescriptors) {
  if (is_watched_by_tsan()) GTEST_SKIP() << "ThreadSanitizer knows one table of descriptors only";
  const auto own = [] {
    std::string all;
    for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
      std::error_code none;
      all += entry.path().filename().string() + " " +
             fs::read_symlink(entry.path(), none).filename().string() + "\n";
    }
    return all;
  };
  const Folder folder;
  const std::string before = own();
  const auto door = open_echo(folder);
  EXPECT_EQ(own(), before);
  EXPECT_EQ(ask(door->path(), "on\n"), "on");
  EXPECT_EQ(own(), before);
}

TEST(DoorTest, ItsThreadHasAllSignalsBlockedAndAName) {
  if (is_watched_by_tsan()) GTEST_SKIP() << "ThreadSanitizer leaves signals of its own open";
  const Folder folder;
  const auto door = open_echo(folder);
  std::string blocked;
  for (const auto& task : fs::directory_iterator("/proc/self/task")) {
    std::ifstream status(task.path() / "status");
    const std::string text{std::istreambuf_iterator<char>(status), {}};
    if (text.find("Name:\tringmain:door\n") == text.npos) continue;
    blocked = text.substr(text.find("SigBlk:\t") + 8, 16);
  }
  // All but those that cannot be blocked, or are the C library's own (32, 33).
  EXPECT_EQ(blocked, "fffffffe7ffbfeff");
}

TEST(DoorTest, OnceItHasClosedNobodyIsAnsweredAndNothingIsLeft) {
  const Folder folder;
  const auto door = open_echo(folder);
  const std::string path = door->path();
  const Peer waits(path);
  door->close();
  EXPECT_EQ(folder.entries(), 0u);
  waits.say("on\n");
  EXPECT_EQ(waits.hear(), "");
  door->close();
  EXPECT_FALSE(Peer(path).is_connected());
}

TEST(DoorTest, ADoorThatCannotBeFoundAnyMoreClosesWithoutAWait) {
  const Folder folder;
  const auto door = open_echo(folder);
  fs::remove(door->path());
  door->close();
  EXPECT_EQ(folder.entries(), 0u);
}

TEST(DoorTest, OpensAndClosesWhileOthersAskAndFromManyThreads) {
  const Folder folder;
  std::atomic<bool> over{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      while (!over) {
        for (const auto& entry : fs::directory_iterator(folder.path())) {
          if (entry.path().extension() != ".sock") continue;
          const Peer peer(entry.path().string());
          if (!peer.is_connected()) continue;
          peer.say("on\n");
          const std::string heard = peer.hear();
          EXPECT_TRUE(heard.empty() || heard == "on") << heard;
        }
      }
    });
  }
  std::vector<std::thread> doors;
  for (int i = 0; i < 2; ++i) {
    doors.emplace_back([&folder] {
      for (int round = 0; round < 20; ++round) {
        std::string complaint;
        const auto door = open_echo(folder.path(), complaint);
        ASSERT_NE(door, nullptr) << complaint;
        EXPECT_EQ(ask(door->path(), "on\n"), "on");
      }
    });
  }
  for (std::thread& one : doors) one.join();
  over = true;
  for (std::thread& one : threads) one.join();
  EXPECT_EQ(folder.entries(), 0u);
}

TEST(DoorTest, ARefusedFolderIsASentenceAndNoThread) {
  std::string complaint;
  EXPECT_EQ(open_echo("/proc/self/nowhere", complaint), nullptr);
  EXPECT_NE(complaint.find("cannot be made"), std::string::npos) << complaint;
}

}  // namespace
}  // namespace ringmain::engine::door::tests
