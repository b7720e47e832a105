// Where do files of the flight recorder lie, and which of the dead make room for the living?
#include "engine/flight/ring_place.hpp"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <fstream>
#include <string>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <vector>

#include <gtest/gtest.h>

#include "engine/flight/process_life.hpp"
#include "engine/flight/ring_file.hpp"

#include "tests/engine/flight/flight_rig.hpp"

namespace ringmain::tests {
namespace {

using flight::MadeFile;
using flight::RingFile;

/// Files whose process is certainly dead: of another boot, or with a start that no process has.
std::string dead_file(const Folder& folder, std::uint32_t number, std::size_t bytes = 3) {
  const std::string name =
      "flight-" + std::to_string(::getpid()) + "-1-" + std::to_string(number) + ".ring";
  std::ofstream(folder.path() + "/" + name) << std::string(bytes, 'x');
  const timespec times[2] = {{1000 + number, 0}, {1000 + number, 0}};
  EXPECT_EQ(::utimensat(AT_FDCWD, (folder.path() + "/" + name).c_str(), times, 0), 0);
  return name;
}

TEST(RingPlaceTest, OfDeadProcessesTheLastSixteenFilesStay) {
  const Folder folder;
  std::vector<std::string> names;
  for (std::uint32_t i = 0; i < 20; ++i) names.push_back(dead_file(folder, i));
  std::ofstream(folder.path() + "/notes.txt") << "not ours";
  std::ofstream(folder.path() + "/flight-1-2.ring") << "not ours";
  const auto living = RingFile::open(small_rings(folder.path()));
  const auto second = RingFile::open(small_rings(folder.path()));
  ASSERT_EQ(living->complaint() + second->complaint(), "");
  const std::vector<std::string> left = folder.files();
  EXPECT_EQ(left.size(), 16u + 2 + 2);
  for (std::uint32_t i = 0; i < 20; ++i) {
    EXPECT_EQ(std::find(left.begin(), left.end(), names[i]) != left.end(), i >= 4) << i;
  }
  EXPECT_NE(living->path(), second->path());
}

/// As a disk on which there is room once that many entries are left in the folder, the new one
/// among them.
struct SmallDisk {
  static inline std::string folder;
  static inline std::size_t room = 0;
  static inline int error = ENOSPC;
  static int allocate(int file, off_t from, off_t bytes) {
    const auto entries = std::filesystem::directory_iterator(folder);
    const auto there = static_cast<std::size_t>(std::distance(begin(entries), end(entries)));
    return there <= room ? ::posix_fallocate(file, from, bytes) : error;
  }
};

MadeFile made_on_a_small_disk(const Folder& folder, std::size_t room, bool makes_room = true) {
  SmallDisk::folder = folder.path();
  SmallDisk::room = room;
  MadeFile made = flight::make_flight_file({.folder = folder.path(),
                                            .process_start = flight::this_process().start,
                                            .bytes = 4096,
                                            .makes_room = makes_room,
                                            .allocate = &SmallDisk::allocate});
  if (made.fd >= 0) ::close(made.fd);
  return made;
}

TEST(RingPlaceTest, WhereThereIsNoRoomTheOldestOfTheDeadGoUntilThereIs) {
  const Folder folder;
  std::vector<std::string> names;
  for (const std::uint32_t i : {3u, 0u, 2u, 1u}) names.push_back(dead_file(folder, i));
  std::ofstream(folder.path() + "/notes.txt") << "not ours";
  EXPECT_EQ(made_on_a_small_disk(folder, 4).complaint, "");
  const std::vector<std::string> left = folder.files();
  EXPECT_EQ(left.size(), 4u);
  const auto stays = [&left](const std::string& name) {
    return std::find(left.begin(), left.end(), name) != left.end();
  };
  EXPECT_TRUE(stays("notes.txt"));
  EXPECT_TRUE(stays(names[0]));
  EXPECT_FALSE(stays(names[1]));  // 0
  EXPECT_TRUE(stays(names[2]));
  EXPECT_FALSE(stays(names[3]));  // 1
}

TEST(RingPlaceTest, NoFileOfALivingProcessMakesRoom) {
  const Folder folder;
  const auto living = RingFile::open(small_rings(folder.path()));
  ASSERT_EQ(living->complaint(), "");
  dead_file(folder, 1);
  const MadeFile made = made_on_a_small_disk(folder, 1);
  EXPECT_EQ(made.fd, -1);
  EXPECT_NE(made.complaint.find("has no room for 4096 bytes"), std::string::npos) << made.complaint;
  EXPECT_NE(made.complaint.find("RINGMAIN_FLIGHT_DIR"), std::string::npos) << made.complaint;
  ASSERT_EQ(folder.files().size(), 1u);
  EXPECT_EQ(folder.path() + "/" + folder.files()[0], living->path());
}

TEST(RingPlaceTest, WhereThatWouldNotHelpOrIsNotWantedTheDeadStay) {
  const Folder folder;
  dead_file(folder, 1);
  EXPECT_NE(made_on_a_small_disk(folder, 1, false).complaint, "");
  SmallDisk::error = EIO;
  EXPECT_NE(made_on_a_small_disk(folder, 1).complaint, "");
  SmallDisk::error = ENOSPC;
  EXPECT_EQ(folder.files().size(), 1u);
}

TEST(RingPlaceTest, TheDeadHaveHalfOfTheFileSystemAtMost) {
  const std::vector<std::uint64_t> files(20, 8);
  EXPECT_EQ(flight::staying(files, 16, 1000), 16u);
  EXPECT_EQ(flight::staying(files, 16, 64), 4u);
  EXPECT_EQ(flight::staying(files, 16, 63), 3u);
  EXPECT_EQ(flight::staying(files, 2, 64), 2u);
  EXPECT_EQ(flight::staying({8, 100, 8}, 16, 64), 1u);  // no older one in place of a younger one
  EXPECT_EQ(flight::staying({}, 16, 64), 0u);
}

/// A file system of that size in memory, over a folder.
class Mounted {
 public:
  explicit Mounted(const Folder& folder, unsigned long flags = 0) : path_(folder.path()) {
    mounted_ = ::mount("tmpfs", path_.c_str(), "tmpfs", flags, "size=10m,mode=0700") == 0;
  }
  Mounted(const Mounted&) = delete;
  Mounted& operator=(const Mounted&) = delete;
  ~Mounted() {
    if (mounted_) (void)::umount2(path_.c_str(), MNT_DETACH);
  }
  explicit operator bool() const { return mounted_; }

 private:
  std::string path_;
  bool mounted_ = false;
};

TEST(RingPlaceTest, OnASmallFileSystemALivingProcessGetsItsFile) {
  const Folder folder;
  const Mounted disk(folder);
  if (!disk) GTEST_SKIP() << "mounting a file system needs rights that this process has not";
  for (std::uint32_t i = 0; i < 9; ++i) dead_file(folder, i, 1 << 20);
  const auto first = RingFile::open(small_rings(folder.path()));
  EXPECT_EQ(first->complaint(), "");
  EXPECT_EQ(folder.files().size(), 5u + 1);  // half of 10 MiB
  std::vector<std::unique_ptr<RingFile>> more;
  for (int i = 0; i < 9; ++i) {
    more.push_back(RingFile::open(small_rings(folder.path())));
    EXPECT_EQ(more.back()->complaint(), "") << i;
  }
  EXPECT_EQ(folder.files().size(), 10u);
  EXPECT_NE(RingFile::open(small_rings(folder.path()))->complaint(), "");  // all are of the living
}

TEST(RingPlaceTest, OnAReadOnlyFileSystemItIsInMemoryAndSaysHowToMendIt) {
  const Folder folder;
  const Mounted disk(folder, MS_RDONLY);
  if (!disk) GTEST_SKIP() << "mounting a file system needs rights that this process has not";
  const auto file = RingFile::open(small_rings(folder.path()));
  EXPECT_EQ(file->path(), "");
  EXPECT_NE(file->complaint().find("Read-only file system; name a folder of your own"),
            std::string::npos)
      << file->complaint();
  EXPECT_NE(file->claim(file->add_pattern("a")), nullptr);  // it works all the same
}

/// As the file system of a server says it.
struct Served {
  static inline long type = 0;
  static int look(int, struct statfs* fs) {
    fs->f_type = static_cast<decltype(fs->f_type)>(type);
    return 0;
  }
};

TEST(RingPlaceTest, AFolderOnANetworkFileSystemIsRefusedWithASentence) {
  const Folder folder;
  const auto complaint_on = [&folder](long type) {
    Served::type = type;
    MadeFile made = flight::make_flight_file({.folder = folder.path(),
                                              .process_start = flight::this_process().start,
                                              .bytes = 4096,
                                              .look_at_disk = &Served::look});
    if (made.fd >= 0) ::close(made.fd);
    return made.complaint;
  };
  for (const long type : {0x6969L, 0xff534d42L, 0xfe534d42L, 0x0bd00bd0L, 0x47504653L, 0x01021997L,
                          0x65735546L, 0x00c36400L}) {
    EXPECT_EQ(complaint_on(type), "the folder " + folder.path() +
                                      " is on a network or FUSE file system; name a local one in "
                                      "RINGMAIN_FLIGHT_DIR");
  }
  EXPECT_TRUE(folder.files().empty());
  for (const long type : {0xef53L, 0x01021994L, 0x58465342L, 0x9123683eL})  // ext4 tmpfs xfs btrfs
    EXPECT_EQ(complaint_on(type), "") << type;
}

}  // namespace
}  // namespace ringmain::tests
