// Into which files does a sink write, and which processes share them?
#include "adapters/formats/output_open.hpp"

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>

namespace ringmain::formats {
namespace {

namespace fs = std::filesystem;

/// -1 where it is refused, or nobody reads it.
int open_one(const std::string& path) {
  const auto opened = open_shared_output(path);
  return opened ? opened.value().fd : -1;
}

class OutputOpenTest : public testing::Test {
 protected:
  OutputOpenTest() {
    std::string made = (fs::temp_directory_path() / "ringmain-XXXXXX").string();
    if (::mkdtemp(made.data()) != nullptr) folder_ = made;
    ::unsetenv(kRunStartedVariable);
    ::unsetenv(kOutputModeVariable);
  }
  ~OutputOpenTest() override {
    ::unsetenv(kRunStartedVariable);
    ::unsetenv(kOutputModeVariable);
    fs::remove_all(folder_);
  }
  [[nodiscard]] std::string path(const std::string& name) const { return folder_ / name; }
  static std::string text(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static void write_line(int fd, const std::string& line) {
    EXPECT_EQ(::write(fd, line.data(), line.size()), static_cast<ssize_t>(line.size()));
  }
  void make(const std::string& name) const { std::ofstream(path(name)) << "precious"; }
  void expect_refused(const std::string& name, const std::string& says) const {
    const auto opened = open_shared_output(path(name));
    ASSERT_FALSE(opened) << name;
    EXPECT_EQ(opened.error().message, "cannot open " + path(name) + " for writing: " + says);
  }
  [[nodiscard]] unsigned mode_of(const std::string& name) const {
    struct stat status {};
    EXPECT_EQ(::stat(path(name).c_str(), &status), 0);
    return status.st_mode & 07777u;
  }

  fs::path folder_;
};

TEST_F(OutputOpenTest, ANewFileIsItsOwnersAlone) {
  const mode_t before = ::umask(0);
  ::close(open_one(path("private")));
  ::setenv(kOutputModeVariable, "0640", 1);
  ::close(open_one(path("shared")));
  for (const char* no_mode : {"x", "0", "4777", "0640x", "-1", ""}) {
    ::setenv(kOutputModeVariable, no_mode, 1);
    fs::remove(path("odd"));
    ::close(open_one(path("odd")));
    EXPECT_EQ(mode_of("odd"), 0600u) << no_mode;
  }
  ::umask(before);
  EXPECT_EQ(mode_of("private"), 0600u);
  EXPECT_EQ(mode_of("shared"), 0640u);
}

TEST_F(OutputOpenTest, NoLinkIsFollowedAndWhatItLeadsToIsLeftAlone) {
  make("target");
  fs::create_symlink(path("target"), path("link"));
  fs::create_symlink(path("nothing"), path("dangling"));
  expect_refused("link", "it is a link, which is not followed; name what it leads to");
  expect_refused("dangling", "it is a link, which is not followed; name what it leads to");
  EXPECT_EQ(text(path("target")), "precious");
  EXPECT_FALSE(fs::exists(path("nothing")));
}

TEST_F(OutputOpenTest, AFileWithAnotherNameIsLeftAlone) {
  make("target");
  fs::create_hard_link(path("target"), path("other"));
  expect_refused("other", "it has another name (a hard link); remove it or name another file");
  EXPECT_EQ(text(path("target")), "precious");
}

TEST_F(OutputOpenTest, AnothersFileOrPipeIsLeftAlone) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  make("theirs");
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0666), 0);
  for (const char* name : {"theirs", "pipe"}) {
    ASSERT_EQ(::chown(path(name).c_str(), 12345, 12345), 0);
  }
  const int reader = ::open(path("pipe").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  expect_refused("theirs", "it belongs to user 12345; name a file of your own");
  expect_refused("pipe", "it belongs to user 12345; name a file of your own");
  ::close(reader);
  EXPECT_EQ(text(path("theirs")), "precious");
}

TEST_F(OutputOpenTest, WhatIsNoFileIsNamed) {
  expect_refused(".", "Is a directory");
  expect_refused("no/such/folder", "No such file or directory; make its folder first");
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  const auto pipe = open_shared_output(path("pipe"));
  ASSERT_TRUE(pipe) << pipe.error().message;
  EXPECT_FALSE(pipe.value().has_reader);
  EXPECT_EQ(pipe.value().fd, -1);
}

TEST_F(OutputOpenTest, APipeWithAReaderAndWhatTheUserNamesOnPurposeAreWritten) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  const int reader = ::open(path("pipe").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  const int pipe = open_one(path("pipe"));
  ASSERT_GE(pipe, 0);
  EXPECT_EQ(::fcntl(pipe, F_GETFL) & O_NONBLOCK, 0);
  EXPECT_NE(::fcntl(pipe, F_GETFD) & FD_CLOEXEC, 0);
  const int by_number = open_one("/dev/fd/" + std::to_string(pipe));
  ASSERT_GE(by_number, 0);
  write_line(by_number, "through its number");
  char read[32] = {};
  EXPECT_EQ(::read(reader, read, sizeof read), 18);
  const int nowhere = open_one("/dev/null");
  ASSERT_GE(nowhere, 0);
  for (const int fd : {pipe, by_number, nowhere, reader}) ::close(fd);
}

TEST_F(OutputOpenTest, AloneAFileIsWrittenAnewUnlessSomebodyWritesThere) {
  make("lines");
  const int first = open_one(path("lines"));
  write_line(first, "one\n");
  const pid_t child = ::fork();
  if (child == 0) {
    const int second = open_one(path("lines"));
    ::_exit(second >= 0 && ::write(second, "two\n", 4) == 4 ? 0 : 1);
  }
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  write_line(first, "three\n");
  EXPECT_EQ(text(path("lines")), "one\ntwo\nthree\n");
  ::close(first);
  ::close(open_one(path("lines")));
  EXPECT_EQ(text(path("lines")), "");
}

TEST_F(OutputOpenTest, WhatALaterRunFindsOfAnEarlierOneThatLivesIsKept) {
  ::setenv(kRunStartedVariable, "1", 1);
  const int earlier = open_one(path("lines"));
  write_line(earlier, "earlier\n");
  ::setenv(kRunStartedVariable, "9000000000000000000", 1);  // all there is was written before
  const int later = open_one(path("lines"));
  write_line(later, "later\n");
  EXPECT_EQ(text(path("lines")), "earlier\nlater\n");
  ::close(earlier);
  ::close(later);
  ::close(open_one(path("lines")));
  EXPECT_EQ(text(path("lines")), "");
}

TEST_F(OutputOpenTest, ALockOfStrangersIsNoWriterAndHoldsUpNobody) {
  make("lines");
  const int stranger = ::open(path("lines").c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(::flock(stranger, LOCK_EX), 0);
  const int first = open_one(path("lines"));
  ASSERT_GE(first, 0);
  EXPECT_EQ(text(path("lines")), "") << "nobody writes there";
  write_line(first, "one\n");
  const int second = open_one(path("lines"));
  EXPECT_EQ(text(path("lines")), "one\n") << "the first one does";
  for (const int fd : {stranger, first, second}) ::close(fd);
}

/// In a process of its own: such a lock is a process's.
TEST_F(OutputOpenTest, ALockOfStrangersOverAllBytesHoldsUpNobodyAndKeepsWhatIsThere) {
  make("lines");
  int locked[2];
  ASSERT_EQ(::pipe(locked), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const int stranger = ::open(path("lines").c_str(), O_RDWR | O_CLOEXEC);
    struct flock all {};
    all.l_type = F_WRLCK;
    if (::fcntl(stranger, F_SETLK, &all) != 0 || ::write(locked[1], "x", 1) != 1) ::_exit(1);
    for (;;) ::pause();
  }
  char read = 0;
  ASSERT_EQ(::read(locked[0], &read, 1), 1);
  // Two hundred that each waited for a second would be longer than a test may take.
  for (int n = 0; n < 200; ++n) ::close(open_one(path("lines")));
  EXPECT_EQ(text(path("lines")), "precious");
  ::kill(child, SIGKILL);
  EXPECT_EQ(::waitpid(child, nullptr, 0), child);
  ::close(open_one(path("lines")));
  EXPECT_EQ(text(path("lines")), "");
  ::close(locked[0]);
  ::close(locked[1]);
}

TEST_F(OutputOpenTest, OfManyThatComeAtOnceNoneEmptiesWhatAnotherHasWritten) {
  for (int round = 0; round < 50; ++round) {
    make("lines");
    std::atomic<int> ready{0};
    std::vector<std::thread> writers;
    for (int n = 0; n < 4; ++n) {
      writers.emplace_back([&] {
        for (++ready; ready < 4;) std::this_thread::yield();
        const int opened = open_one(path("lines"));
        ASSERT_GE(opened, 0);
        write_line(opened, "x\n");
        for (++ready; ready < 8;) std::this_thread::yield();  // all of them have written
        ::close(opened);
      });
    }
    for (std::thread& writer : writers) writer.join();
    ASSERT_EQ(text(path("lines")), "x\nx\nx\nx\n") << "round " << round;
  }
}

}  // namespace
}  // namespace ringmain::formats
