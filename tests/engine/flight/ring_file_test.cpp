#include "engine/flight/ring_file.hpp"

#include <algorithm>
#include <cstdlib>
#include <fcntl.h>
#include <fstream>
#include <stdexcept>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <gtest/gtest.h>

#include "engine/flight/process_life.hpp"
#include "engine/flight/ring_place.hpp"
#include "engine/flight/ring_reader.hpp"

#include "tests/engine/flight/flight_rig.hpp"

namespace ringmain::tests {
namespace {

using flight::FlightRead;
using flight::Living;
using flight::RingFile;
using flight::RingWriter;
using flight::TextKind;

void record(RingWriter& ring, std::uint64_t writer, std::uint64_t from, std::uint64_t to) {
  for (std::uint64_t n = from; n <= to; ++n) {
    const Expected one(writer, n);
    ring.record(one.head, one.payload.data(), one.bytes);
  }
}

TEST(RingFileTest, ItStandsAlone) {
  const Folder folder;
  flight::RingFileOptions options = small_rings(folder.path());
  options.identity = {3, 1, 8, 2, 4, "node7", "job-12", "torchrun"};
  auto file = RingFile::open(options);
  ASSERT_EQ(file->complaint(), "");
  EXPECT_TRUE(file->add_name(17, "ncclAllReduce"));
  EXPECT_TRUE(file->add_schema(0xabc, "collective.issued: op u32"));
  const std::uint32_t channel = file->add_channel("collective.issued", 0xabc);
  const std::uint32_t pattern = file->add_pattern("collective.>");
  const std::uint16_t source = file->add_source(channel, 5, 4711, "trainer");
  RingWriter* const ring = file->claim(pattern);
  ASSERT_NE(ring, nullptr);
  ring->record({10, 1, 0xabc, source, PublishCode::vetoed}, "payload", 7);
  EXPECT_TRUE(file->operations().open({21, 9, source, 2, 3, 4, 5}));
  EXPECT_TRUE(file->operations().open({22, 9, source, 2, 3, 4, 5}));
  EXPECT_TRUE(file->operations().end(21));
  file->note_clocks();

  const FlightRead living = flight::read_flight(file->path());
  EXPECT_EQ(living.living, Living::yes);
  EXPECT_EQ(living.counts.closed, 0u);
  const std::string path = file->path();
  file.reset();

  const FlightRead read = flight::read_flight(path);
  ASSERT_EQ(read.refusal, "");
  EXPECT_EQ(read.damage, "");
  EXPECT_EQ(read.counts.closed, 1u);
  EXPECT_EQ(read.header.rank, 3u);
  EXPECT_EQ(read.header.local_rank, 1u);
  EXPECT_EQ(read.header.world_size, 8u);
  EXPECT_EQ(read.header.local_world_size, 2u);
  EXPECT_EQ(read.header.attempt, 4u);
  EXPECT_STREQ(read.header.host.data(), "node7");
  EXPECT_STREQ(read.header.job.data(), "job-12");
  EXPECT_STREQ(read.header.launcher.data(), "torchrun");
  EXPECT_EQ(read.header.pid, static_cast<std::uint32_t>(::getpid()));
  EXPECT_EQ(read.header.process_start, flight::this_process().start);
  EXPECT_EQ(read.header.boot_id, flight::this_process().boot_id);
  ASSERT_EQ(read.clocks.size(), 2u);
  EXPECT_LE(read.clocks[0].monotonic_ns, read.clocks[1].monotonic_ns);
  ASSERT_NE(read.find(TextKind::name, 17), nullptr);
  EXPECT_EQ(read.find(TextKind::name, 17)->text, "ncclAllReduce");
  EXPECT_EQ(read.find(TextKind::schema, 0xabc)->text, "collective.issued: op u32");
  EXPECT_EQ(read.find(TextKind::pattern, pattern)->text, "collective.>");
  ASSERT_EQ(read.rings.size(), 1u);
  EXPECT_EQ(read.rings[0].pattern, pattern);
  ASSERT_EQ(read.rings[0].ring.records.size(), 1u);
  const flight::RecordRead& one = read.rings[0].ring.records[0];
  EXPECT_EQ(one.head.code, PublishCode::vetoed);
  const flight::TextRead* const from = read.find(TextKind::source, one.head.source);
  ASSERT_NE(from, nullptr);
  EXPECT_EQ(from->text, "trainer");
  EXPECT_EQ(from->source.publisher, 5u);
  EXPECT_EQ(from->source.thread, 4711u);
  const flight::TextRead* const on = read.find(TextKind::channel, from->source.channel);
  ASSERT_NE(on, nullptr);
  EXPECT_EQ(on->text, "collective.issued");
  EXPECT_EQ(on->schema, 0xabcu);
  ASSERT_EQ(read.operations.size(), 1u);
  EXPECT_EQ(read.operations[0].id, 22u);
}

TEST(RingFileTest, ItHasEightMebibytesClosedToOthersInAFolderThatIsToo) {
  const Folder folder;
  flight::RingFileOptions options;
  options.folder = folder.path() + "/made";
  const auto file = RingFile::open(options);
  ASSERT_EQ(file->complaint(), "");
  struct stat about {};
  ASSERT_EQ(::stat(file->path().c_str(), &about), 0);
  EXPECT_EQ(about.st_size, 8 << 20);
  EXPECT_GE(about.st_blocks * 512, about.st_size);  // no store will find the disk full
  EXPECT_EQ(about.st_mode & 0777, 0600u);
  ASSERT_EQ(::stat(options.folder.c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0700u);
  EXPECT_GE(file->rings(), 100u);
}

/// Fresh rings by a pattern that nobody else here uses, until those are left that are kept for
/// patterns without a ring to go on in.
void leave_a_quarter_fresh(RingFile& file) {
  const FlightRead read = flight::read_flight(file.path());
  for (std::size_t i = read.rings.size(); i < file.rings() - file.rings() / 4; ++i)
    ASSERT_NE(file.claim(1000), nullptr);
}

TEST(RingFileTest, WhatAThreadLeftAtItsEndStaysWhileRingsAreFresh) {
  const Folder folder;
  const auto file = RingFile::open(small_rings(folder.path()));
  for (std::uint64_t thread = 1; thread <= 20; ++thread) {
    RingWriter* const ring = file->claim(1);
    record(*ring, thread, 1, 3);
    file->release(*ring);
  }
  const FlightRead read = flight::read_flight(file->path());
  ASSERT_EQ(read.rings.size(), 20u);
  for (std::uint64_t thread = 1; thread <= 20; ++thread) {
    EXPECT_EQ(read.rings[thread - 1].state, flight::RingState::ended);
    EXPECT_EQ(compare(thread, read.rings[thread - 1].ring, read.header.ring_cells, 3, 3), "");
  }
}

TEST(RingFileTest, AThreadGoesOnInTheRingThatAnotherOfThePatternHasLeft) {
  const Folder folder;
  const auto file = RingFile::open(small_rings(folder.path()));
  RingWriter* const first = file->claim(1);
  record(*first, 1, 1, 10);
  RingWriter* const other = file->claim(2);
  EXPECT_NE(other, first);
  file->release(*first);
  leave_a_quarter_fresh(*file);
  EXPECT_NE(file->claim(2), first);  // a chatty pattern pushes no other one out
  EXPECT_EQ(file->claim(1), first);
  record(*first, 1, 11, 300);
  const FlightRead read = flight::read_flight(file->path());
  EXPECT_EQ(compare(1, read.rings[0].ring, read.header.ring_cells, 300, 300), "");
}

TEST(RingFileTest, TheRingWhoseThreadEndedLongestAgoGoesOnFirst) {
  const Folder folder;
  const auto file = RingFile::open(small_rings(folder.path()));
  std::vector<RingWriter*> rings;
  for (int i = 0; i < 4; ++i) rings.push_back(file->claim(1));
  leave_a_quarter_fresh(*file);
  for (const std::size_t i : {2u, 0u, 3u, 1u}) file->release(*rings[i]);
  EXPECT_EQ(file->claim(1), rings[2]);
  EXPECT_EQ(file->claim(1), rings[0]);
  file->release(*rings[2]);  // the last one now
  EXPECT_EQ(file->claim(1), rings[3]);
  EXPECT_EQ(file->claim(1), rings[1]);
  EXPECT_EQ(file->claim(1), rings[2]);
}

TEST(RingFileTest, ThreadsThatEndLeaveAQuarterOfTheRingsToOtherPatterns) {
  const Folder folder;
  const auto file = RingFile::open(small_rings(folder.path()));
  for (std::size_t i = 0; i < 2 * file->rings(); ++i) {
    RingWriter* const ring = file->claim(1);
    ASSERT_NE(ring, nullptr);
    file->release(*ring);
  }
  for (std::size_t i = 0; i < file->rings() / 4; ++i) EXPECT_NE(file->claim(2), nullptr) << i;
  EXPECT_EQ(file->claim(2), nullptr);
  EXPECT_NE(file->claim(1), nullptr);
}

TEST(RingFileTest, WhereAllRingsAreTakenItIsCounted) {
  const Folder folder;
  const auto file = RingFile::open(small_rings(folder.path()));
  for (std::size_t i = 0; i < file->rings(); ++i) ASSERT_NE(file->claim(1), nullptr);
  EXPECT_EQ(file->claim(1), nullptr);
  EXPECT_EQ(file->claim(2), nullptr);
  file->count_unrecorded();
  const FlightRead read = flight::read_flight(file->path());
  EXPECT_EQ(read.counts.rings_refused, 2u);
  EXPECT_EQ(read.counts.unrecorded, 1u);
  EXPECT_EQ(read.rings.size(), file->rings());
}

TEST(RingFileTest, TextThatFindsNoRoomIsCountedAndWhatWasThereStays) {
  const Folder folder;
  const auto file = RingFile::open(small_rings(folder.path()));
  EXPECT_EQ(file->add_channel("first", 1), 1u);
  std::uint32_t kept = 1;
  while (file->add_channel(std::string(1000, 'x'), 2) != 0) ++kept;
  EXPECT_FALSE(file->add_name(1, std::string(5000, 'y')));
  const FlightRead read = flight::read_flight(file->path());
  EXPECT_EQ(read.damage, "");
  EXPECT_EQ(read.text.size(), kept);
  EXPECT_EQ(read.counts.text_left_out, 2u);
  EXPECT_EQ(read.text.front().text, "first");
}

TEST(RingFileTest, HoweverManySourcesThereAreNamesFindRoom) {
  const Folder folder;
  const auto file = RingFile::open(small_rings(folder.path()));
  std::uint64_t sources = 0;
  while (file->add_source(1, 2, 3, "a thread") != 0) ++sources;
  EXPECT_GT(sources, 500u);  // of 64 KiB
  EXPECT_TRUE(file->add_name(1, std::string(10'000, 'n')));
  EXPECT_EQ(file->add_source(1, 2, 3, "a thread"), 0u);
  const FlightRead read = flight::read_flight(file->path());
  EXPECT_EQ(read.damage, "");
  EXPECT_EQ(read.text.size(), sources + 1);
  EXPECT_EQ(read.counts.text_left_out, 2u);
}

TEST(RingFileTest, ARecordCanName65535SourcesAndNoMore) {
  flight::RingFileOptions options = small_rings("/dev/null");  // in memory
  options.file_bytes = 16u << 20;
  options.text_bytes = 8u << 20;
  const auto file = RingFile::open(options);
  for (std::uint32_t made = 1; made <= 0xffff; ++made)
    ASSERT_EQ(file->add_source(1, made, made, "t"), made);
  EXPECT_EQ(file->add_source(1, 2, 3, "t"), 0u);
  EXPECT_TRUE(file->add_name(1, "there is room"));
  const std::vector<std::byte> bytes(file->memory(), file->memory() + file->bytes());
  const FlightRead read = flight::parse_flight({}, bytes, {});
  EXPECT_EQ(read.text.size(), 0x10000u);
  EXPECT_EQ(read.counts.text_left_out, 1u);
}

TEST(RingFileTest, OfClocksTheFirstPairAndTheLastOnesStay) {
  const Folder folder;
  const auto file = RingFile::open(small_rings(folder.path()));
  for (int i = 0; i < 500; ++i) file->note_clocks();
  const FlightRead read = flight::read_flight(file->path());
  ASSERT_EQ(read.clocks.size(), flight::kClockPairs);
  EXPECT_EQ(read.clocks.front().number, 1u);
  EXPECT_EQ(read.clocks[1].number, 501 - (flight::kClockPairs - 1) + 1);
  EXPECT_EQ(read.clocks.back().number, 501u);
}

/// A folder in which no file can be made: the recorder is in memory, works, and says it once.
void expect_in_memory(const RingFile& opened, const std::string& why) {
  EXPECT_EQ(opened.path(), "");
  EXPECT_NE(opened.complaint().find(why), std::string::npos) << opened.complaint();
  EXPECT_EQ(std::count(opened.complaint().begin(), opened.complaint().end(), '\n'), 0);
  EXPECT_EQ(opened.complaint().back(), '.');
  auto& file = const_cast<RingFile&>(opened);
  RingWriter* const ring = file.claim(1);
  ASSERT_NE(ring, nullptr);
  record(*ring, 1, 1, 500);
  const std::vector<std::byte> bytes(file.memory(), file.memory() + file.bytes());
  const FlightRead read = flight::parse_flight({}, bytes, {});
  ASSERT_EQ(read.refusal, "");
  ASSERT_EQ(read.rings.size(), 1u);
  EXPECT_EQ(compare(1, read.rings[0].ring, read.header.ring_cells, 500, 500), "");
}

TEST(RingFileTest, InAFolderThatCannotBeUsedItIsInMemoryAndSaysWhyAndHowToMendIt) {
  const Folder folder;
  const auto expect = [](const std::string& in, const std::string& why) {
    const auto file = RingFile::open(small_rings(in));
    expect_in_memory(*file, why);
    EXPECT_NE(file->complaint().find("RINGMAIN_FLIGHT_DIR"), std::string::npos)
        << file->complaint();
  };
  expect("relative/folder", "no absolute path");
  expect("/proc/no/such", "cannot be made");
  std::ofstream(folder.path() + "/file") << "x";
  expect(folder.path() + "/file", "cannot be opened: Not a directory");
  expect(folder.path() + "/file/below", "cannot be made: Not a directory");
  ASSERT_EQ(::symlink(folder.path().c_str(), (folder.path() + "/link").c_str()), 0);
  expect(folder.path() + "/link", "cannot be opened: it is a link");
  expect("/proc/self/task", "no file can be made");
  const std::string open_to_all = folder.path() + "/open";
  ASSERT_EQ(::mkdir(open_to_all.c_str(), 0700), 0);
  ASSERT_EQ(::chmod(open_to_all.c_str(), 0777), 0);
  expect(open_to_all, "others may write to it; close it to others (chmod 700)");
}

TEST(RingFileTest, FoldersAboveTheOneThatIsNamedAreMadeAndClosedToOthersToo) {
  const Folder folder;
  for (const char* const below : {"/one/two/three", "/four/five/"}) {
    const auto file = RingFile::open(small_rings(folder.path() + below));
    EXPECT_EQ(file->complaint(), "");
  }
  for (const char* const made : {"/one", "/one/two", "/one/two/three", "/four", "/four/five"}) {
    struct stat about {};
    ASSERT_EQ(::stat((folder.path() + made).c_str(), &about), 0) << made;
    EXPECT_EQ(about.st_mode & 0777, 0700u) << made;
  }
}

TEST(RingFileTest, NothingIsMadeAboveTheRuntimeFolder) {
  const Folder folder;
  const char* const was = std::getenv("XDG_RUNTIME_DIR");
  const std::string runtime = was == nullptr ? "" : was;
  ASSERT_EQ(::setenv("XDG_RUNTIME_DIR", (folder.path() + "/no/such").c_str(), 1), 0);
  flight::RingFileOptions options = small_rings("");
  options.kept = flight::kKeepAll;  // it may be a user's folder that has them
  const auto file = RingFile::open(options);
  EXPECT_TRUE(folder.files().empty());
  if (was == nullptr) {
    ASSERT_EQ(::unsetenv("XDG_RUNTIME_DIR"), 0);
  } else {
    ASSERT_EQ(::setenv("XDG_RUNTIME_DIR", runtime.c_str(), 1), 0);
  }
  if (!file->path().empty()) (void)::unlink(file->path().c_str());
}

TEST(RingFileTest, AFileLargerThanTheProcessMayWriteIsNotTried) {
  const Folder folder;
  rlimit old{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old), 0);
  const rlimit small{4096, old.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  expect_in_memory(*RingFile::open(small_rings(folder.path())), "ulimit -f");
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &old), 0);
  EXPECT_TRUE(folder.files().empty());
}

TEST(RingFileTest, TheEnvironmentNamesItsFolder) {
  ASSERT_EQ(::setenv("RINGMAIN_FLIGHT_DIR", "/a", 1), 0);
  EXPECT_EQ(flight::flight_folders(""), std::vector<std::string>{"/a"});
  EXPECT_EQ(flight::flight_folders("/b"), std::vector<std::string>{"/b"});
  ASSERT_EQ(::unsetenv("RINGMAIN_FLIGHT_DIR"), 0);
  const char* const was = std::getenv("XDG_RUNTIME_DIR");
  const std::string runtime = was == nullptr ? "" : was;
  ASSERT_EQ(::setenv("XDG_RUNTIME_DIR", "/c", 1), 0);
  const std::string user = std::to_string(::geteuid());
  EXPECT_EQ(flight::flight_folders(""),
            (std::vector<std::string>{"/c/ringmain-flight", "/dev/shm/ringmain-flight-" + user}));
  ASSERT_EQ(::unsetenv("XDG_RUNTIME_DIR"), 0);
  EXPECT_EQ(flight::flight_folders("").front(), "/run/user/" + user + "/ringmain-flight");
  if (was != nullptr) {
    ASSERT_EQ(::setenv("XDG_RUNTIME_DIR", runtime.c_str(), 1), 0);
  }
}

TEST(RingFileTest, SizesThatDoNotGoTogetherAreRefused) {
  flight::RingFileOptions options = small_rings("/nowhere");
  options.ring_bytes = 5000;
  EXPECT_THROW(static_cast<void>(RingFile::open(options)), std::invalid_argument);
  options = small_rings("/nowhere");
  options.file_bytes = 1000;
  EXPECT_THROW(static_cast<void>(RingFile::open(options)), std::invalid_argument);
  options = small_rings("/nowhere");
  options.ring_bytes = 1u << 20;
  EXPECT_THROW(static_cast<void>(RingFile::open(options)), std::invalid_argument);
}

TEST(RingFileTest, AProcessLivesByItsBootItsIdAndItsStart) {
  flight::ProcessLife self = flight::this_process();
  EXPECT_EQ(flight::lives(self), Living::yes);
  ++self.start;
  EXPECT_EQ(flight::lives(self), Living::no);  // its id is used again
  --self.start;
  ++self.pid_namespace;
  EXPECT_EQ(flight::lives(self), Living::unknown);
  self.boot_id[3] ^= 1;
  EXPECT_EQ(flight::lives(self), Living::no);
  self.boot_id = {};
  EXPECT_EQ(flight::lives(self), Living::unknown);
}

TEST(RingFileTest, NamesAreMadeOfNumbersAlone) {
  flight::FlightName name;
  EXPECT_TRUE(flight::parse_flight_name("flight-12-345-6.ring", name));
  EXPECT_EQ(name.pid, 12u);
  EXPECT_EQ(name.start, 345u);
  EXPECT_EQ(name.number, 6u);
  for (const char* const other :
       {"", "flight-", "flight-1-2.ring", "flight-1-2-3", "flight-1-2-3.ring.tmp",
        "flight-a-2-3.ring", "flight-1-2--3.ring", "flight-99999999999-2-3.ring",
        "Flight-1-2-3.ring", "flight-1-2-3xring"})
    EXPECT_FALSE(flight::parse_flight_name(other, name)) << other;
}

}  // namespace
}  // namespace ringmain::tests
