// Whatever a program's file holds, is it only read, and never past its end?
#include "cli/program_file.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <elf.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <link.h>
#include <random>
#include <string>

#include <gtest/gtest.h>

namespace ringmain::cli {
namespace {

namespace fs = std::filesystem;

class ProgramFileTest : public testing::Test {
 protected:
  ProgramFileTest() {
    std::string made = (fs::temp_directory_path() / "ringmain-XXXXXX").string();
    if (::mkdtemp(made.data()) != nullptr) folder_ = made;
  }
  ~ProgramFileTest() override { fs::remove_all(folder_); }

  [[nodiscard]] PreloadHindrance look_at(const std::string& bytes) const {
    const fs::path path = folder_ / "program";
    std::ofstream(path, std::ios::binary) << bytes;
    return preload_hindrance(path.string());
  }
  static std::string program() {
    std::ifstream file("/bin/true", std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  fs::path folder_;
};

TEST_F(ProgramFileTest, WhatIsNoProgramIsNoHindrance) {
  EXPECT_EQ(look_at("").why, "");
  EXPECT_EQ(look_at("\x7f"
                    "ELF")
                .why,
            "");
  EXPECT_EQ(look_at("#!").why, "");
  EXPECT_EQ(look_at("#!" + std::string(5000, 'x')).why, "");
  EXPECT_EQ(preload_hindrance(folder_.string()).why, "");
  EXPECT_EQ(preload_hindrance((folder_ / "absent").string()).why, "");
}

TEST_F(ProgramFileTest, AScriptThatIsRunByItselfEnds) {
  EXPECT_EQ(look_at("#!" + (folder_ / "program").string() + "\n").why, "");
}

TEST_F(ProgramFileTest, AnyCutAndAnyFieldOfAnyTableIsRead) {
  const std::string whole = program();
  ElfW(Ehdr) header;
  ASSERT_GT(whole.size(), sizeof header);
  std::memcpy(&header, whole.data(), sizeof header);
  EXPECT_EQ(look_at(whole).why, "");
  for (std::size_t size = 0; size < 2 * sizeof header; ++size) (void)look_at(whole.substr(0, size));
  // Each 8 bytes of the headers in turn become what a count or a place should not be.
  const auto spoil = [&](std::size_t begin, std::size_t end) {
    for (std::size_t at = begin; at + 8 <= std::min(end, whole.size()); at += 8) {
      for (const std::uint64_t odd : {std::uint64_t{0}, ~std::uint64_t{0}, std::uint64_t{1} << 63,
                                      std::uint64_t{whole.size()}}) {
        std::string made = whole;
        std::memcpy(made.data() + at, &odd, sizeof odd);
        (void)look_at(made);
      }
    }
  };
  spoil(24, sizeof header);
  spoil(header.e_phoff, header.e_phoff + header.e_phnum * sizeof(ElfW(Phdr)));
  spoil(header.e_shoff, header.e_shoff + header.e_shnum * sizeof(ElfW(Shdr)));
}

TEST_F(ProgramFileTest, ChanceFindsNothingThatHarms) {
  const std::string whole = program();
  std::mt19937 chance(12);
  for (int round = 0; round < 300; ++round) {
    std::string made = whole;
    for (int flips = 0; flips < 200; ++flips)
      made[chance() % made.size()] = static_cast<char>(chance());
    for (int flips = 0; flips < 4; ++flips) made[6 + chance() % 58] = static_cast<char>(chance());
    if (round % 4 == 0) made.resize(chance() % made.size());
    (void)look_at(made);
  }
}

}  // namespace
}  // namespace ringmain::cli
