// Is what a manifest says read as it is meant, and what it should not say named with its line?
#include "adapters/plugins/manifest.hpp"

#include <random>
#include <string>

#include <gtest/gtest.h>

#include "adapters/plugins/sha256.hpp"

namespace ringmain::registry {
namespace {

constexpr std::string_view kGood =
    "# a plugin\n"
    "abi = 1\n"
    "library = {dir}/tally.so\r\n"
    "\n"
    "[sink tally]\n"
    "  summary = counts = all\n"
    "tags = example , debug\n"
    "argument = FILE\n"
    "[source nvtx]\n"
    "set = NVTX_INJECTION64_PATH={dir}/nvtx.so\n"
    "prepend = PYTHONPATH={dir}\n"
    "in_process = yes\n";

TEST(ManifestTest, ItSaysWhatIsNeededToListAndToRun) {
  const auto read = read_manifest(kGood, "/plugins");
  ASSERT_TRUE(read) << read.error().message;
  const Manifest& m = read.value();
  EXPECT_EQ(m.abi, 1u);
  EXPECT_EQ(m.library, "/plugins/tally.so");
  ASSERT_EQ(m.providers.size(), 2u);
  const Provider& tally = m.providers[0];
  EXPECT_EQ(tally.kind, ProviderKind::sink);
  EXPECT_EQ(tally.name, "tally");
  EXPECT_EQ(tally.summary, "counts = all");
  EXPECT_EQ(tally.tags, (std::vector<std::string>{"example", "debug"}));
  EXPECT_EQ(tally.argument, "FILE");
  const Provider& nvtx = m.providers[1];
  EXPECT_TRUE(nvtx.run.in_process);
  ASSERT_EQ(nvtx.run.environment.size(), 2u);
  EXPECT_EQ(nvtx.run.environment[0].value, "/plugins/nvtx.so");
  EXPECT_EQ(nvtx.run.environment[1].how, EnvironmentEdit::How::prepend);
}

TEST(ManifestTest, WhatIsWrongIsNamedWithItsLine) {
  const std::pair<const char*, const char*> wrong[] = {
      {"abi = 1\nlibrary = a.so\n", "lacks a line '[sink NAME]"},
      {"library = a.so\n[sink a]\n", "lacks a line 'abi = 1'"},
      {"abi = 1\n[sink a]\n", "lacks a line 'library = FILE.so'"},
      {"abi = one\n", "line 1: abi should be a number, and not 'one'"},
      {"\nabi = 1 # c\n", "line 2: abi should be a number"},
      {"abi = 1\nlibary = a.so\n", "line 2: there is no key 'libary'"},
      {"libary = a.so\n", "did you mean 'library'?"},
      {"abi = 1\nlibrary = a.so\n[sinks a]\n",
       "'sinks' is no kind of provider; did you mean 'sink'?"},
      {"abi = 1\nlibrary = a.so\n[sink]\n", "should be '[sink NAME]'"},
      {"abi = 1\nlibrary = a.so\n[sink a\n", "should be '[sink NAME]'"},
      {"abi = 1\nlibrary = a.so\n[sink a]\ntag = x\n", "did you mean 'tags'?"},
      {"abi = 1\nlibrary = a.so\n[sink a]\nin_process = maybe\n", "in_process is yes or no"},
      {"abi = 1\nlibrary = a.so\n[sink a]\nset = X\n", "it should say 'VARIABLE=VALUE'"},
      {"abi = 1\nsha256 = 12\n", "64 digits"},
      {"abi = 1\nlibrary =\n", "'library' has no value"},
      {"abi = 1\nlibrary\n", "is neither 'key = value' nor"},
      {"abi = 1\nlibrary = a\x01.so\n", "line 2: it holds a control character"},
      {"\x7f"
       "ELF\x02\x01\x01",
       "control character"},
      {"", "lacks a line"},
  };
  for (const auto& [text, says] : wrong) {
    const auto read = read_manifest(text, "/plugins");
    ASSERT_FALSE(read) << text;
    EXPECT_NE(read.error().message.find(says), std::string::npos) << read.error().message;
    EXPECT_EQ(read.error().message.find('\n'), std::string::npos);
  }
}

TEST(ManifestTest, AnyDamageIsReadOrRefused) {
  std::mt19937 random(4);
  std::size_t refused = 0;
  for (int round = 0; round < 4000; ++round) {
    std::string text(kGood);
    for (int n = 0; n < 3; ++n) {
      switch (random() % 3) {
        case 0:
          text[random() % text.size()] = static_cast<char>(random());
          break;
        case 1:
          text.resize(random() % text.size() + 1);
          break;
        default:
          text.insert(random() % text.size(), text.substr(random() % text.size()));
      }
    }
    if (!read_manifest(text, "/plugins")) ++refused;
  }
  EXPECT_GT(refused, 100u);
}

TEST(Sha256Test, ItIsWhatSha256sumSays) {
  EXPECT_EQ(sha256_of(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_of("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256_of(std::string(1000000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  EXPECT_EQ(sha256_of_file("/nowhere"), "");
}

}  // namespace
}  // namespace ringmain::registry
