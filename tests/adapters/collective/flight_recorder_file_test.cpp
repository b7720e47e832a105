// Whose is the file that a recorder writes?
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <string>
#include <sys/stat.h>

#include <gtest/gtest.h>

#include "adapters/sources/collective/flight_recorder_hook.hpp"

namespace ringmain::tests {
namespace {

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

}  // namespace
}  // namespace ringmain::tests
