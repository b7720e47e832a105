// Does a sink's file get whole lines, and nobody else's file a byte?
#include "adapters/formats/output_file.hpp"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include <gtest/gtest.h>

namespace ringmain::formats {
namespace {

namespace fs = std::filesystem;

class OutputFileTest : public testing::Test {
 protected:
  OutputFileTest() {
    std::string made = (fs::temp_directory_path() / "ringmain-XXXXXX").string();
    if (::mkdtemp(made.data()) != nullptr) folder_ = made;
  }
  ~OutputFileTest() override { fs::remove_all(folder_); }
  [[nodiscard]] std::string path(const std::string& name) const { return folder_ / name; }
  static std::string text(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  [[nodiscard]] OutputFile open(const std::string& name) const {
    auto opened = OutputFile::open(path(name));
    EXPECT_TRUE(opened) << (opened ? "" : opened.error().message);
    return opened ? std::move(opened).value() : OutputFile{};
  }
  fs::path folder_;
  std::atomic<bool> give_up_{false};
};

TEST_F(OutputFileTest, ADescriptorThatIsAnothersByNowIsNotWrittenAndNotClosed) {
  const int lowest = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ::close(lowest);  // the number that comes next
  OutputFile ours = open("ours");
  EXPECT_EQ(ours.write("one\n", give_up_), 4u);
  const int theirs = ::open(path("theirs").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_EQ(::dup2(theirs, lowest), lowest);
  EXPECT_EQ(ours.write("two\n", give_up_), 0u);
  EXPECT_EQ(errno, ESTALE);
  EXPECT_EQ(ours.write("three\n", give_up_), 0u) << "nor ever again";
  EXPECT_TRUE(ours.close());
  EXPECT_EQ(::write(lowest, "theirs\n", 7), 7);
  EXPECT_EQ(text(path("ours")), "one\n");
  EXPECT_EQ(text(path("theirs")), "theirs\n");
  ::close(lowest);
  ::close(theirs);
}

TEST_F(OutputFileTest, AClosedDescriptorIsSeen) {
  const int lowest = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ::close(lowest);
  OutputFile ours = open("ours");
  ::close(lowest);
  EXPECT_EQ(ours.write("one\n", give_up_), 0u);
  EXPECT_EQ(errno, ESTALE);
}

/// What stays of a write of three lines into a file that may grow to `limit` bytes only; -1 where
/// it did not say so. In a process of its own: limit and signal are a process's.
int kept_of_three_lines(OutputFile ours, rlim_t limit) {
  const pid_t child = ::fork();
  if (child == 0) {
    const std::atomic<bool> give_up{false};
    (void)std::signal(SIGXFSZ, SIG_IGN);
    const rlimit size{limit, limit};
    (void)::setrlimit(RLIMIT_FSIZE, &size);
    const std::size_t kept = ours.write("four\nfive\nsix6\n", give_up);
    ::_exit(errno == EFBIG ? static_cast<int>(kept) : 99);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) && WEXITSTATUS(status) != 99 ? WEXITSTATUS(status) : -1;
}

TEST_F(OutputFileTest, ALineThatDoesNotFitIsCutOff) {
  EXPECT_EQ(kept_of_three_lines(open("ours"), 12), 10);
  EXPECT_EQ(text(path("ours")), "four\nfive\n");
  EXPECT_EQ(kept_of_three_lines(open("short"), 3), 0);
  EXPECT_EQ(text(path("short")), "");
  EXPECT_EQ(kept_of_three_lines(open("whole"), 10), 10);
  EXPECT_EQ(text(path("whole")), "four\nfive\n");
}

TEST_F(OutputFileTest, WhereOthersWriteItBecomesBlanksOfTheLineBefore) {
  OutputFile others = open("ours");
  EXPECT_EQ(kept_of_three_lines(open("ours"), 12), 10);
  EXPECT_EQ(others.write("others\n", give_up_), 7u);
  EXPECT_EQ(text(path("ours")), "four\nfive  \nothers\n");
  OutputFile again = open("short");
  EXPECT_EQ(kept_of_three_lines(open("short"), 3), 0);
  EXPECT_EQ(again.write("others\n", give_up_), 7u);
  EXPECT_EQ(text(path("short")), "  \nothers\n") << "or a line of blanks";
}

/// Of two processes one comes and goes all the time, while the other one's lines do not fit.
TEST_F(OutputFileTest, NoLineOfAnotherProcessIsCutOrTorn) {
  constexpr int kTimes = 2000;
  ::setenv(kRunStartedVariable, "1", 1);  // one run: nobody empties the file
  int opened[2];
  ASSERT_EQ(::pipe(opened), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    OutputFile theirs = open("ours");
    (void)std::signal(SIGXFSZ, SIG_IGN);
    if (::write(opened[1], "x", 1) != 1) ::_exit(1);
    const std::string lines = "theirs\n" + std::string(20000, 'x') + "\n";
    for (int n = 0; n < kTimes; ++n) {
      const rlimit size{fs::file_size(path("ours")) + 9000, RLIM_INFINITY};
      (void)::setrlimit(RLIMIT_FSIZE, &size);
      (void)theirs.write(lines, give_up_);
    }
    ::_exit(0);
  }
  char byte = 0;
  ASSERT_EQ(::read(opened[0], &byte, 1), 1);
  int written = 0;
  for (int status = 1; ::waitpid(child, &status, WNOHANG) == 0;) {
    OutputFile ours = open("ours");
    for (const int end = written + 1 + written % 7; written < end; ++written) {
      const std::string line = "ours " + std::to_string(written) + "\n";
      ASSERT_EQ(ours.write(line, give_up_), line.size());
    }
  }
  std::ifstream file(path("ours"));
  int found = 0;
  for (std::string line; std::getline(file, line);) {
    line.erase(line.find_last_not_of(' ') + 1);
    if (line == "ours " + std::to_string(found)) {
      ++found;
    } else {
      ASSERT_TRUE(line.empty() || line == "theirs") << line.substr(0, 80) << " for " << found;
    }
  }
  EXPECT_EQ(found, written);
  ::unsetenv(kRunStartedVariable);
  ::close(opened[0]);
  ::close(opened[1]);
}

TEST_F(OutputFileTest, APipeWithoutAReaderIsWaitedForUntilItIsGivenUp) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  OutputFile ours = open("pipe");
  give_up_ = true;
  EXPECT_EQ(ours.write("one\n", give_up_), 0u);
  EXPECT_EQ(errno, ETIMEDOUT);
  give_up_ = false;
  std::string heard;
  std::thread reader([&] { heard = text(path("pipe")); });
  EXPECT_EQ(ours.write("two\n", give_up_), 4u);
  EXPECT_TRUE(ours.close());
  reader.join();
  EXPECT_EQ(heard, "two\n");
}

TEST_F(OutputFileTest, AFullPipeIsWaitedForUntilItIsGivenUp) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  const int reader = ::open(path("pipe").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  OutputFile ours = open("pipe");
  const std::string much(1 << 20, '\n');
  give_up_ = true;
  EXPECT_LT(ours.write(much, give_up_), much.size());
  EXPECT_EQ(errno, ETIMEDOUT);
  ::close(reader);
}

}  // namespace
}  // namespace ringmain::formats
