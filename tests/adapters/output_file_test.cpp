// Does a sink's file get whole lines, and nobody else's file a byte?
#include "ringmain/adapters/output_file.hpp"

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

namespace ringmain::registry {
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

/// In a process of its own: limit and signal are a process's.
TEST_F(OutputFileTest, ALineThatDoesNotFitIsCutOff) {
  const pid_t child = ::fork();
  if (child == 0) {
    (void)std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{10, 10};
    OutputFile ours = open("ours");
    (void)::setrlimit(RLIMIT_FSIZE, &limit);
    const std::size_t kept = ours.write("four\nfive\nsix6\n", give_up_);
    const int why = errno;
    const bool whole = kept == 10 && ours.write("x\n", give_up_) == 0;
    ::_exit(whole && why == EFBIG ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(text(path("ours")), "four\nfive\n");
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
}  // namespace ringmain::registry
