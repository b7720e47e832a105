// Does the program that others listen to run over what stands in for CUDA, and does the log have
// each of its calls?
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>

#include <gtest/gtest.h>

namespace ringmain::tests {
namespace fs = std::filesystem;

struct Ran {
  std::string said;
  int status = 0;
};

Ran run(const std::string& command) {
  Ran ran;
  FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
  std::array<char, 4096> some;
  while (std::fgets(some.data(), some.size(), pipe) != nullptr) ran.said += some.data();
  ran.status = ::pclose(pipe);
  return ran;
}

/// What stands behind `"key":`, up to the next comma.
std::string of(const std::string& line, const std::string& key) {
  const std::size_t begin = line.find("\"" + key + "\":") + key.size() + 3;
  return line.substr(begin, line.find_first_of(",}", begin) - begin);
}

class TrainTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "ringmain-train-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override {
    std::error_code error;
    fs::remove_all(folder_, error);
  }
  fs::path folder_;
};

TEST_F(TrainTest, EachCallHasALineAndANumberOfItsOwn) {
  for (const char* program : {RINGMAIN_TESTS_TRAIN, RINGMAIN_TESTS_TRAIN_PER_THREAD}) {
    const fs::path log = folder_ / fs::path(program).filename();
    const Ran ran = run("FAKE_CUDA_LOG='" + log.string() + "' '" + program + "' 4 10");
    ASSERT_EQ(ran.status, 0) << ran.said;
    EXPECT_EQ(ran.said, "");
    std::set<int> numbers;
    std::map<std::string, int> calls;
    std::ifstream lines(log);
    for (std::string line; std::getline(lines, line);) {
      EXPECT_TRUE(numbers.insert(std::stoi(of(line, "n"))).second) << line;
      EXPECT_EQ(of(line, "forbidden"), "false") << line;
      if (of(line, "depth") == "1") ++calls[of(line, "name")];
    }
    EXPECT_EQ(*numbers.rbegin(), static_cast<int>(numbers.size()));
    const std::string own = program == std::string(RINGMAIN_TESTS_TRAIN) ? "" : "_ptsz";
    EXPECT_EQ(calls["\"cudaStreamWaitEvent" + own + "\""], 80);
    EXPECT_EQ(calls["\"cudaEventCreate\""] + calls["\"cudaEventCreateWithFlags\""], 81);
    EXPECT_EQ(calls["\"cudaEventDestroy\""], 81);
    EXPECT_EQ(calls["\"cudaStreamCreate\""], 4);
    EXPECT_EQ(calls["\"cudaStreamDestroy\""], 13);
  }
}

TEST_F(TrainTest, TheDriverBeginsTheLibraryThatTheEnvironmentNames) {
  const std::string injected = "CUDA_INJECTION64_PATH='" RINGMAIN_TESTS_INJECTED "' ";
  const Ran ran = run(injected + "'" RINGMAIN_TESTS_TRAIN "'");
  EXPECT_EQ(ran.said, "injected: 0, 13000\n");
  EXPECT_EQ(ran.status, 0);
  const Ran without = run("CUDA_INJECTION64_PATH=/nowhere '" RINGMAIN_TESTS_TRAIN "'");
  EXPECT_EQ(without.said, "");
  EXPECT_EQ(without.status, 0);
}

TEST_F(TrainTest, WithoutADeviceItIsToldSo) {
  const Ran ran = run("FAKE_CUDA_DEVICES=0 '" RINGMAIN_TESTS_TRAIN "'");
  EXPECT_EQ(ran.said, "train: cudaFree(nullptr) answered 100\n");
}

}  // namespace ringmain::tests
