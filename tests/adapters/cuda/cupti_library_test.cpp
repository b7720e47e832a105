// Is the right CUPTI found, and is there a sentence where none can be? Each try is a process of its
// own, over libraries that stand in for NVIDIA's.
#include "adapters/sources/cuda/cupti_library.hpp"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <link.h>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace ringmain::tests {
namespace fs = std::filesystem;

testing::AssertionResult says(const std::string& all, const std::string& part) {
  if (all.find(part) != all.npos) return testing::AssertionSuccess() << all;
  return testing::AssertionFailure() << '"' << part << "\" is not in: " << all;
}

int note_loader(dl_phdr_info* program, std::size_t, void* to) {
  for (int i = 0; i < program->dlpi_phnum; ++i) {
    const auto& part = program->dlpi_phdr[i];
    if (part.p_type == PT_INTERP) {
      *static_cast<const char**>(to) =
          reinterpret_cast<const char*>(program->dlpi_addr + part.p_vaddr);
    }
  }
  return 1;
}
/// The loader of this program, and so of those beside it.
std::string loader() {
  const char* path = "";
  ::dl_iterate_phdr(&note_loader, &path);
  return path;
}

class CuptiLibraryTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "ringmain-cupti-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override {
    std::error_code error;
    fs::remove_all(folder_, error);
  }

  /// Copies a library that stands in for NVIDIA's; its path.
  std::string put(const std::string& library, const std::string& to = ".") {
    const fs::path place = (folder_ / to).lexically_normal();
    fs::create_directories(place);
    const fs::path file = place / fs::path(library).filename();
    fs::copy_file(fs::path(RINGMAIN_TESTS_FAKES) / library, file);
    return file.string();
  }

  /// What find_cupti says, and its status if that is not 0.
  std::string find(const std::string& words = "", const std::string& variables = "") {
    // Without the loader's cache, which knows the folders of toolkits that are installed here.
    const std::string command = variables + " '" + loader() + "' --inhibit-cache --library-path '" +
                                folder_.string() + "' '" + RINGMAIN_TESTS_FIND_CUPTI + "' " +
                                words + " 2>&1";
    FILE* pipe = ::popen(command.c_str(), "r");
    std::string said;
    std::array<char, 4096> some;
    while (std::fgets(some.data(), some.size(), pipe) != nullptr) said += some.data();
    const int status = ::pclose(pipe);
    if (status != 0) said += "status " + std::to_string(status);
    return said;
  }
  bool machine_has_a_driver() { return find().find("no NVIDIA driver") == std::string::npos; }
  bool machine_has_cupti() { return find().find("there is no CUPTI") == std::string::npos; }

  fs::path folder_;
};

const std::string kDriver = "libcuda.so.1", kCupti = "libcupti.so.13", kRuntime = "libcudart.so.13";

TEST_F(CuptiLibraryTest, WithoutADriverNothingOfCuptiIsCalled) {
  if (machine_has_a_driver()) GTEST_SKIP() << "skipped: this machine has a driver";
  const std::string cupti = put(kCupti);
  const std::string dies = "FAKE_CUPTI_VERSION=130202";  // aborts when it is called
  EXPECT_TRUE(says(find("", dies), "error: CUDA is not heard, as there is no NVIDIA driver"));
  EXPECT_TRUE(says(find("--load '" + cupti + "'", dies), "no NVIDIA driver"));
  EXPECT_TRUE(says(find("'" + cupti + "'", dies), "no NVIDIA driver"));
  EXPECT_FALSE(says(find("'" + cupti + "'", dies), "status"));
}

TEST_F(CuptiLibraryTest, TheToolkitsStubIsNoDriver) {
  put(kDriver);
  put(kCupti);
  EXPECT_TRUE(says(find("", "FAKE_CUDA_STUB=1"), "is the toolkit's stub"));
}

TEST_F(CuptiLibraryTest, WithoutCuptiTheSentenceSaysWhatToInstall) {
  put(kDriver);
  if (machine_has_cupti()) GTEST_SKIP() << "skipped: the loader finds a CUPTI of this machine";
  EXPECT_TRUE(says(find(), "there is no CUPTI (libcupti.so.13 or .12)"));
}

TEST_F(CuptiLibraryTest, TheLoadersWayIsTaken) {
  put(kDriver);
  const std::string cupti = put(kCupti);
  EXPECT_TRUE(says(find(), "path: " + cupti + "\nversion: 130001\nwarning: \n"));
}

TEST_F(CuptiLibraryTest, ThePathThatWasAskedForComesBeforeTheLoadersWay) {
  put(kDriver);
  put(kCupti);
  const std::string other = put(kCupti, "other");
  EXPECT_TRUE(says(find("'" + other + "'"), "path: " + other + "\n"));
}

TEST_F(CuptiLibraryTest, APathThatCannotBeLoadedIsSaid) {
  put(kDriver);
  put(kCupti);
  EXPECT_TRUE(says(find("/nowhere/libcupti.so"),
                   "error: CUDA is not heard, as cupti=/nowhere/libcupti.so cannot be loaded"));
}

TEST_F(CuptiLibraryTest, WhatIsLoadedIsUsedWhateverWasAskedFor) {
  put(kDriver);
  const std::string loaded = put(kCupti, "loaded"), other = put(kCupti, "other");
  const std::string found = find("--load '" + loaded + "' '" + other + "'");
  EXPECT_TRUE(says(found, "path: " + loaded + "\n"));
  EXPECT_TRUE(says(found, "warning: cupti=" + other + " is not used, as the process has " + loaded +
                              " already"));
  EXPECT_TRUE(says(find("--load '" + loaded + "' '" + loaded + "'"), "warning: \n"));
}

TEST_F(CuptiLibraryTest, ItIsFoundBesideTheRuntimeThatIsLoaded) {
  put(kDriver);
  if (machine_has_cupti()) GTEST_SKIP() << "skipped: the loader finds a CUPTI of this machine";
  const std::vector<std::pair<std::string, std::string>> layouts = {
      {"a/nvidia/cu13/lib", "a/nvidia/cu13/lib"},
      {"b/nvidia/cuda_runtime/lib", "b/nvidia/cuda_cupti/lib"},
      {"c/cuda/lib64", "c/cuda/extras/CUPTI/lib64"},
      {"d/cuda/targets/x86_64-linux/lib", "d/cuda/extras/CUPTI/lib64"}};
  for (const auto& [runtimes, cuptis] : layouts) {
    const std::string runtime = put(kRuntime, runtimes), cupti = put(kCupti, cuptis);
    EXPECT_TRUE(says(find("--load '" + runtime + "'"), "path: " + cupti + "\n"));
  }
}

TEST_F(CuptiLibraryTest, AFunctionThatIsMissingIsNamed) {
  put(kDriver);
  put("incomplete/" + kCupti);
  EXPECT_TRUE(says(find(), kCupti + " lacks cuptiGetCallbackName: "));
}

TEST_F(CuptiLibraryTest, ATooOldCuptiIsRefused) {
  put(kDriver);
  put(kCupti);
  EXPECT_TRUE(says(find("", "FAKE_CUPTI_VERSION=17"), "is too old (its version is 17)"));
  EXPECT_TRUE(says(find("", "FAKE_CUPTI_VERSION=18"), "version: 18\n"));
}

TEST_F(CuptiLibraryTest, OneThatKnowsTheOldestFormOnlyTakesASubscriber) {
  put(kDriver);
  put("old/" + kCupti);
  EXPECT_TRUE(says(find("--subscribe", "FAKE_CUPTI_VERSION=28"), "code 0, owner \"\", done"));
}

TEST_F(CuptiLibraryTest, WhoHasThePlaceIsNamed) {
  put(kDriver);
  put(kCupti);
  EXPECT_TRUE(says(find("--subscribe", "FAKE_CUPTI_SUBSCRIBE=39:Nsight"),
                   "code 39, owner \"Nsight\", CUDA is not heard, as CUPTI has one place for a "
                   "subscriber and Nsight has it"));
  EXPECT_TRUE(says(find("--subscribe --subscribe"), "code 39, owner \"ringmain\""));
  EXPECT_TRUE(says(find("--subscribe --subscribe", "FAKE_CUPTI_VERSION=130202"),
                   "code 39, owner \"ringmain\""));
}

TEST_F(CuptiLibraryTest, SeveralAreAskedForWhereThereCanBe) {
  put(kDriver);
  put(kCupti);
  const std::string both = find("--subscribe --subscribe", "FAKE_CUPTI_VERSION=130301");
  EXPECT_FALSE(says(both, "code 39"));
  EXPECT_TRUE(says(both, "done\nsubscribe: code 0, owner \"\", done\n"));
}

TEST_F(CuptiLibraryTest, OtherRefusalsSayWhatToDo) {
  put(kDriver);
  put(kCupti);
  EXPECT_TRUE(says(find("--subscribe", "FAKE_CUPTI_SUBSCRIBE=35"),
                   "set NVreg_RestrictProfilingToAdminUsers=0 "
                   "(CUPTI_ERROR_INSUFFICIENT_PRIVILEGES (35))"));
  EXPECT_TRUE(says(find("--subscribe", "FAKE_CUPTI_SUBSCRIBE=999"),
                   "CUPTI takes no subscriber: CUPTI_ERROR_UNKNOWN (999)"));
  EXPECT_TRUE(says(find("--subscribe", "FAKE_CUPTI_SUBSCRIBE=15"),
                   "CUPTI takes no subscriber: CUPTI_ERROR_NOT_INITIALIZED (15)"));
}

/// NVIDIA's own, by version; those that are here.
std::vector<std::pair<std::string, fs::path>> real_cuptis() {
  std::vector<std::pair<std::string, fs::path>> here;
  for (const char* version : {"12.9", "13.0", "13.1", "13.2", "13.3", "13.5"}) {
    for (const char* soname : {"libcupti.so.12", "libcupti.so.13"}) {
      const fs::path real = fs::path(RINGMAIN_TESTS_CUDA) / version / "lib" / soname;
      if (fs::exists(real)) here.emplace_back(version, real);
    }
  }
  return here;
}

TEST_F(CuptiLibraryTest, NvidiasOwnAreNotCalledWithoutADriver) {
  if (machine_has_a_driver()) GTEST_SKIP() << "skipped: this machine has a driver";
  const auto reals = real_cuptis();
  if (reals.empty()) GTEST_SKIP() << "skipped: RINGMAIN_CUDA_HEADERS has no libcupti";
  for (const auto& [version, real] : reals) {
    const std::string preloaded = "--load '" + real.string() + "' ",
                      named = "'" + real.string() + "'";
    for (const std::string& words : {preloaded, named, preloaded + named}) {
      const std::string said = find(words);
      EXPECT_TRUE(says(said, "error: CUDA is not heard, as there is no NVIDIA driver")) << real;
      EXPECT_FALSE(says(said, "status")) << real;
    }
  }
}

// CUPTI asks a driver for more than its public functions. 13.2 dies of such a driver, too; that is
// in its first call, before anybody can know its version.
TEST_F(CuptiLibraryTest, NvidiasOwnOverADriverThatTheyCannotUseAreRefusedInASentence) {
  if (machine_has_a_driver()) GTEST_SKIP() << "skipped: this machine has a driver";
  const auto reals = real_cuptis();
  if (reals.empty()) GTEST_SKIP() << "skipped: RINGMAIN_CUDA_HEADERS has no libcupti";
  put(kDriver);
  for (const auto& [version, real] : reals) {
    if (version == "13.2") continue;
    const std::string said = find("--subscribe '" + real.string() + "'");
    EXPECT_TRUE(says(said, "CUDA is not heard, as ")) << real;
    EXPECT_TRUE(says(said, "); look whether nvidia-smi finds the driver")) << real;
    EXPECT_FALSE(says(said, "status")) << real;
  }
}

#ifdef RINGMAIN_TESTS_IS_STATIC
TEST(CuptiPlacesTest, AProgramLinkedWithoutALoaderIsKnown) {
  EXPECT_EQ(std::system(RINGMAIN_TESTS_IS_STATIC), 0);
}
#endif

TEST(CudaLibraryTest, StaysWhenItIsLetGo) {
  void* const library = ::dlopen(RINGMAIN_TESTS_CUDA_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << ::dlerror();
  ASSERT_EQ(::dlclose(library), 0);
  EXPECT_NE(::dlopen(RINGMAIN_TESTS_CUDA_LIBRARY, RTLD_NOW | RTLD_NOLOAD), nullptr)
      << "CUPTI may still call it";
}

}  // namespace ringmain::tests
