// Is a socket where it is looked for, this user's alone, and gone when its process is?
#include "engine/door/door_place.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "tests/engine/door/door_rig.hpp"

namespace ringmain::engine::door::tests {
namespace {

namespace fs = std::filesystem;

struct Made : MadeSocket {
  explicit Made(const std::string& folder, bool with_parents = false)
      : MadeSocket(make_socket(folder, with_parents)) {}
  Made(const Made&) = delete;
  Made& operator=(const Made&) = delete;
  ~Made() { release(); }
  void release() {
    if (fd >= 0) ::close(std::exchange(fd, -1));
    if (folder >= 0) ::close(std::exchange(folder, -1));
  }
};

mode_t mode_of(const std::string& path) {
  struct stat about {};
  return ::lstat(path.c_str(), &about) == 0 ? about.st_mode : 0;
}

TEST(DoorPlaceTest, NamesAreMadeOfNumbersAndReadAgain) {
  DoorName name;
  ASSERT_TRUE(parse_door_name("door-4711-88213-2.sock", name));
  EXPECT_EQ(name.pid, 4711u);
  EXPECT_EQ(name.start, 88213u);
  EXPECT_EQ(name.number, 2u);
  for (const char* const other :
       {"door-4711-88213-2.new", "door-4711-88213.sock", "door-x-1-0.sock", "flight-1-2-0.ring",
        "door-1-2-0.sock.bak", "door-1--2-0.sock", ""})
    EXPECT_FALSE(parse_door_name(other, name)) << other;
}

TEST(DoorPlaceTest, ASocketIsThisUsersAloneWhateverTheMaskIs) {
  const Folder folder;
  const mode_t before = ::umask(0);
  const Made made(folder.path());
  ::umask(before);
  ASSERT_EQ(made.complaint, "");
  EXPECT_TRUE(S_ISSOCK(mode_of(made.path)));
  EXPECT_EQ(mode_of(made.path) & 07777u, 0600u);
  EXPECT_EQ(folder.entries(), 1u);
}

TEST(DoorPlaceTest, AFolderThatIsNamedIsMadeAndClosedToOthers) {
  const Folder folder;
  const Made made(folder / "one/two", true);
  ASSERT_EQ(made.complaint, "");
  EXPECT_EQ(mode_of(folder / "one/two") & 07777u, 0700u);
}

TEST(DoorPlaceTest, AFolderThatOthersMayWriteToIsRefused) {
  const Folder folder;
  fs::permissions(folder.path(), fs::perms::all);
  const Made made(folder.path());
  EXPECT_LT(made.fd, 0);
  EXPECT_NE(made.complaint.find("others may write to it"), std::string::npos) << made.complaint;
  EXPECT_NE(made.complaint.find("RINGMAIN_DOOR"), std::string::npos) << made.complaint;
  EXPECT_EQ(folder.entries(), 0u);
}

TEST(DoorPlaceTest, ALinkIsNotFollowedAndARelativePathRefused) {
  const Folder folder;
  fs::create_directory(folder / "real");
  fs::create_symlink(folder / "real", folder / "link");
  EXPECT_NE(Made(folder / "link").complaint.find("none is followed"), std::string::npos);
  EXPECT_NE(Made("some/where").complaint.find("no absolute path"), std::string::npos);
}

TEST(DoorPlaceTest, APathLongerThanASocketsAddressIsNoHindrance) {
  const Folder folder;
  const std::string deep = folder / (std::string(100, 'a') + "/" + std::string(100, 'b'));
  ASSERT_GT(deep.size(), sizeof sockaddr_un{}.sun_path);
  const Made made(deep, true);
  ASSERT_EQ(made.complaint, "");
  EXPECT_TRUE(Peer(made.path).is_connected());
}

TEST(DoorPlaceTest, WhatAKilledProcessLeftGoesWithTheNextDoor) {
  const Folder folder;
  leave_socket(folder, "door-1-1-0.sock");  // process 1 lives, and was never this one
  leave_socket(folder, "door-999999999-7-3.sock");
  leave_socket(folder, "door-999999999-7-3.new");  // killed while it made it
  std::ofstream(folder / "door-2-2-0.sock") << "no socket";
  leave_socket(folder, "another.sock");
  const Made made(folder.path());
  ASSERT_EQ(made.complaint, "");
  EXPECT_FALSE(fs::exists(folder / "door-1-1-0.sock"));
  EXPECT_FALSE(fs::exists(folder / "door-999999999-7-3.sock"));
  EXPECT_FALSE(fs::exists(folder / "door-999999999-7-3.new"));
  EXPECT_TRUE(fs::exists(folder / "door-2-2-0.sock"));  // not ours
  EXPECT_TRUE(fs::exists(folder / "another.sock"));
}

TEST(DoorPlaceTest, ADoorThatIsOpenStaysAndASecondOneHasAnotherName) {
  const Folder folder;
  const Made first(folder.path());
  const Made second(folder.path());
  ASSERT_EQ(second.complaint, "");
  EXPECT_NE(first.path, second.path);
  EXPECT_TRUE(Peer(first.path).is_connected());
  EXPECT_TRUE(Peer(second.path).is_connected());
}

TEST(DoorPlaceTest, AnEarlierImageOfThisProcessLeavesItsName) {
  const Folder folder;
  Made before(folder.path());
  const std::string path = before.path;
  before.release();  // as an exec does
  EXPECT_TRUE(fs::exists(path));
  const Made made(folder.path());
  EXPECT_EQ(made.path, path);
  EXPECT_TRUE(Peer(made.path).is_connected());
}

TEST(DoorPlaceTest, AFileThatHasItsNameByNowIsLeftAlone) {
  const Folder folder;
  const Made made(folder.path());
  fs::rename(made.path, folder / "kept");  // so that no other has its number
  leave_socket(folder, made.name);
  remove_socket(made.folder, made.name.c_str(), made.device, made.inode);
  EXPECT_TRUE(fs::exists(made.path));
}

}  // namespace
}  // namespace ringmain::engine::door::tests
