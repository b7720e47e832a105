// Whose is the file that a recorder writes?
#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "adapters/sources/collective/flight_recorder_hook.hpp"
#include "adapters/sources/collective/flight_recorder_partial.hpp"

namespace ringmain::tests {
namespace {

using collective::detail::FlightPath;
using collective::detail::make_partial;

TEST(FlightRecorderFileTest, WhoMayReadItTheUmaskSays) {
  std::string folder = (std::filesystem::temp_directory_path() / "recorder-XXXXXX").string();
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  ::setenv("TORCHCOMM_FR_DUMP_TEMP_FILE", (folder + "/rank_").c_str(), 1);
  const collective::FlightRecorderHook recorder({.max_entries = 10, .isolated = true});
  for (const mode_t mask : {mode_t{0077}, mode_t{0027}, mode_t{0002}}) {
    const mode_t before = ::umask(mask);
    const auto written = recorder.dump_file(0);
    ::umask(before);
    ASSERT_TRUE(written) << written.error().message;
    struct stat about {};
    ASSERT_EQ(::stat(written.value().c_str(), &about), 0);
    EXPECT_EQ(about.st_mode & 0777, 0666 & ~mask);
  }
  ::unsetenv("TORCHCOMM_FR_DUMP_TEMP_FILE");
  const std::filesystem::directory_iterator files(folder);
  EXPECT_EQ(std::distance(begin(files), end(files)), 1);  // nothing is left beside it
  std::filesystem::remove_all(folder);
}

/// Files by this name in a folder of its own.
class PartialFilesTest : public testing::Test {
 protected:
  PartialFilesTest() {
    std::string made = (std::filesystem::temp_directory_path() / "recorder-XXXXXX").string();
    folder_ = ::mkdtemp(made.data());
    ::setenv("TORCHCOMM_FR_DUMP_TEMP_FILE", (folder_ + "/rank_").c_str(), 1);
  }
  ~PartialFilesTest() override {
    ::unsetenv("TORCHCOMM_FR_DUMP_TEMP_FILE");
    std::filesystem::remove_all(folder_);
  }
  /// That a process has begun which then waits for its end.
  std::string begun_by_a_child(pid_t& child) {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    child = ::fork();
    if (child == 0) {
      FlightPath path;
      const bool made = make_partial(folder_, path) >= 0;
      (void)!::write(ends[1], path.view().data(), made ? path.view().size() : 0);
      ::close(ends[1]);
      for (;;) ::pause();
    }
    ::close(ends[1]);
    std::array<char, 4096> path{};
    const ssize_t size = ::read(ends[0], path.data(), path.size());
    ::close(ends[0]);
    EXPECT_GT(size, 0);
    return {path.data(), static_cast<std::size_t>(size)};
  }
  static void kill(pid_t child) {
    ::kill(child, SIGKILL);
    ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  }
  void make(const std::string& name) const { std::ofstream(folder_ + "/" + name) << "x"; }
  [[nodiscard]] std::set<std::string> names() const {
    std::set<std::string> all;
    for (const auto& one : std::filesystem::directory_iterator(folder_))
      all.insert(one.path().filename());
    return all;
  }

  std::string folder_;
  const collective::FlightRecorderHook recorder_{{.max_entries = 10, .isolated = true}};
};

TEST_F(PartialFilesTest, WhatADeadProcessHadBegunTheNextDumpRemoves) {
  pid_t dead = -1, living = -1;
  const std::string of_dead = begun_by_a_child(dead), of_living = begun_by_a_child(living);
  kill(dead);
  ASSERT_TRUE(std::filesystem::exists(of_dead));
  ASSERT_TRUE(recorder_.dump_file(0));
  EXPECT_FALSE(std::filesystem::exists(of_dead));
  EXPECT_TRUE(std::filesystem::exists(of_living));
  kill(living);
  ASSERT_TRUE(recorder_.dump_file(0));
  EXPECT_EQ(names(), std::set<std::string>{"rank_0"});
}

TEST_F(PartialFilesTest, WhatNobodyHereKnowsTheOwnerOfStays) {
  pid_t child = -1;
  const std::string whole = begun_by_a_child(child);
  kill(child);
  const std::string name = whole.substr(whole.rfind('/') + 1);
  std::filesystem::remove(whole);
  std::string boot = name;  // another machine's, or another boot's
  boot[9] = boot[9] == '0' ? '1' : '0';
  std::string space = name;  // another container's
  space.insert(space.find('-', 10) + 1, "1");
  std::set<std::string> stay{boot, space, ".partial-12-34.tmp", name + "x", "x" + name};
  for (const std::string& one : stay) make(one);
  std::filesystem::create_directory(folder_ + "/" + name);
  ASSERT_TRUE(recorder_.dump_file(0));
  stay.insert({name, "rank_0"});
  EXPECT_EQ(names(), stay);
  std::filesystem::remove(folder_ + "/" + name);
  std::filesystem::create_symlink("rank_0", folder_ + "/" + name);
  ASSERT_TRUE(recorder_.dump_file(0));
  EXPECT_EQ(names(), stay);
}

TEST_F(PartialFilesTest, ANameThatIsTooLongIsOneSentence) {
  ::setenv("TORCHCOMM_FR_DUMP_TEMP_FILE", (folder_ + std::string(5000, '/') + "rank_").c_str(), 1);
  const auto refused = recorder_.dump_file(0);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            "the name of a dump's file is too long for a path: give a shorter one");
}

}  // namespace
}  // namespace ringmain::tests
