// Does root load only what nobody else can change?
#include <string>
#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "adapters/registry.hpp"

#include "tests/adapters/plugins/plugin_files.hpp"

namespace ringmain::registry {
namespace {

using tests::Folder;
using tests::fs::path;

constexpr uid_t kSomebody = 12345;

/// "" if a sink of the plugin opens, else why not, from wherever that is said.
std::string refusal(const path& place, const path& counts) {
  Registry registry;
  registry.search(place.string());
  std::string said;
  for (const std::string& fault : registry.faults()) said += fault + "\n";
  const auto opened = registry.open_sink("tally:" + counts.string());
  return opened ? "" : said + opened.error().message;
}

class TrustTest : public testing::Test {
 protected:
  TrustTest() {
    tests::fs::create_directory(inner_);
    library_ = inner_ / path(TALLY).filename();
    tests::fs::copy_file(TALLY, library_);
    tests::fs::copy_file(tests::manifest_of(TALLY), tests::manifest_of(library_));
  }
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "only root is choosy";
    ASSERT_EQ(refused(), "");
  }
  [[nodiscard]] std::string refused() const { return refusal(inner_, folder_.path() / "counts"); }
  void expect_refused(const path& because, const std::string& who) const {
    const std::string said = refused();
    EXPECT_NE(said.find("root loads nothing that others can change, and " +
                        tests::fs::canonical(because).string() + " " + who),
              said.npos)
        << said;
  }

  const Folder folder_;
  const path inner_ = folder_.path() / "inner";
  path library_;
};

TEST_F(TrustTest, NoFileOfAPluginMayBeAnothersOrWritableByOthers) {
  for (const path& file : {library_, tests::manifest_of(library_)}) {
    ASSERT_EQ(::chown(file.c_str(), kSomebody, 0), 0);
    expect_refused(file, "belongs to user 12345");
    ASSERT_EQ(::chown(file.c_str(), 0, 0), 0);
    ASSERT_EQ(::chmod(file.c_str(), 0666), 0);
    expect_refused(file, "can be written by everybody");
    ASSERT_EQ(::chown(file.c_str(), 0, kSomebody), 0);
    ASSERT_EQ(::chmod(file.c_str(), 0664), 0);
    expect_refused(file, "can be written by group 12345");
    ASSERT_EQ(::chmod(file.c_str(), 0644), 0);
    EXPECT_EQ(refused(), "");
  }
}

TEST_F(TrustTest, NoFolderAboveItMay) {
  for (const path& folder : {inner_, folder_.path()}) {
    ASSERT_EQ(::chown(folder.c_str(), kSomebody, 0), 0);
    expect_refused(folder, "belongs to user 12345");
    ASSERT_EQ(::chown(folder.c_str(), 0, 0), 0);
    ASSERT_EQ(::chmod(folder.c_str(), 0777), 0);
    expect_refused(folder, "can be written by everybody");
    ASSERT_EQ(::chmod(folder.c_str(), 01777), 0);
    EXPECT_EQ(refused(), "") << "nobody takes away there what is root's";
    ASSERT_EQ(::chmod(folder.c_str(), 0755), 0);
  }
}

TEST_F(TrustTest, ALinkIsWhatItLeadsTo) {
  const Folder elsewhere;
  const path target = elsewhere.path() / "somebodys.so";
  tests::fs::rename(library_, target);
  tests::fs::create_symlink(target, library_);
  EXPECT_EQ(refused(), "");
  ASSERT_EQ(::chmod(elsewhere.path().c_str(), 0777), 0);
  expect_refused(elsewhere.path(), "can be written by everybody");
}

TEST_F(TrustTest, NothingIsLookedUpInAManifestThatOthersCanWrite) {
  ASSERT_EQ(::chmod(tests::manifest_of(library_).c_str(), 0666), 0);
  Registry registry;
  registry.search(inner_.string());
  EXPECT_FALSE(registry.find(ProviderKind::sink, "tally"));
  EXPECT_EQ(registry.faults().size(), 1u);
}

TEST_F(TrustTest, OtherUsersLoadWhatTheyNamed) {
  ASSERT_EQ(::chmod(folder_.path().c_str(), 0755), 0);
  ASSERT_EQ(::chmod(inner_.c_str(), 0777), 0);
  expect_refused(inner_, "can be written by everybody");
  ASSERT_EQ(::seteuid(kSomebody), 0);
  Registry registry;
  registry.search(inner_.string());
  const auto faults = registry.faults();
  const bool found = static_cast<bool>(registry.find(ProviderKind::sink, "tally"));
  ASSERT_EQ(::seteuid(0), 0);
  EXPECT_TRUE(found);
  EXPECT_TRUE(faults.empty());
}

}  // namespace
}  // namespace ringmain::registry
