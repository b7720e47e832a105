#include "engine/flight/ring_reader.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "tests/engine/flight/flight_rig.hpp"

namespace ringmain::tests {
namespace {

using flight::FlightRead;
using Bytes = std::vector<std::byte>;

/// The bytes of a file with rings, text and open operations.
Bytes good_file() {
  const Folder folder;
  const auto file = flight::RingFile::open(small_rings(folder.path()));
  const std::uint32_t pattern = file->add_pattern("collective.>");
  file->add_schema(7, "a schema");
  const std::uint16_t source =
      file->add_source(file->add_channel("collective.issued", 7), 1, 2, "t");
  for (std::uint64_t writer = 0; writer < 3; ++writer) {
    flight::RingWriter* const ring = file->claim(pattern);
    for (std::uint64_t n = 1; n <= 40 * writer + 2; ++n) {
      const Expected one(writer, n);
      ring->record(one.head, one.payload.data(), one.bytes);
    }
  }
  for (std::uint64_t id = 1; id <= 5; ++id) file->operations().open({id, 1, source, 1, 2, 3, 4});
  return {file->memory(), file->memory() + file->bytes()};
}

/// Sums that an enemy makes right again, too.
void seal(Bytes& bytes) {
  flight::FixedHeader header;
  std::memcpy(&header, bytes.data(), sizeof header);
  header.sum = flight::sum_of(0, &header, offsetof(flight::FixedHeader, sum));
  std::memcpy(bytes.data(), &header, sizeof header);
}

/// What must hold of whatever was read.
void expect_possible(const FlightRead& read) {
  for (const flight::RingRead& ring : read.rings) {
    for (const flight::TrackRead* track : {&ring.ring, &ring.annex}) {
      std::uint64_t last = 0;
      for (const flight::RecordRead& record : track->records) {
        ASSERT_GT(record.number, last);
        last = record.number;
        ASSERT_LE(record.payload_at + record.payload_bytes, track->payloads.size());
      }
    }
  }
}

TEST(RingReaderTest, EveryPrefixOfAGoodFileIsReadAsFarAsItGoes) {
  const Bytes good = good_file();
  const FlightRead all = flight::parse_flight({}, good, {});
  ASSERT_EQ(all.refusal + all.damage, "");
  ASSERT_EQ(all.rings.size(), 3u);
  // The parts at each byte of the header and around each border, else at steps.
  std::size_t whole = 0;
  for (std::size_t size = 0; size < good.size(); size += size < 5000 ? 1 : 4099) {
    const FlightRead read = flight::parse_flight(
        {}, {good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size)}, {});
    if (size < sizeof(flight::Header)) {
      ASSERT_NE(read.refusal, "") << size;
      continue;
    }
    ASSERT_EQ(read.refusal, "") << size;
    ASSERT_NE(read.damage, "") << size;
    ASSERT_LE(read.rings.size(), all.rings.size());
    for (std::size_t i = 0; i < read.rings.size(); ++i)
      ASSERT_EQ(read.rings[i].ring.records.size(), all.rings[i].ring.records.size());
    expect_possible(read);
    whole = std::max(whole, read.rings.size());
  }
  EXPECT_EQ(whole, 3u);
}

TEST(RingReaderTest, NoByteThatWasChangedInAHeaderIsBelieved) {
  const Bytes good = good_file();
  for (std::size_t i = 0; i < sizeof(flight::FixedHeader); ++i) {
    Bytes bytes = good;
    bytes[i] ^= std::byte{0x40};
    EXPECT_NE(flight::parse_flight({}, bytes, {}).refusal, "") << i;
  }
}

TEST(RingReaderTest, ANumberThatLeadsOutOfTheFileIsRefusedThoughItsSumIsRight) {
  const Bytes good = good_file();
  const std::uint64_t hostile[] = {~std::uint64_t{0}, std::uint64_t{1} << 63, good.size() + 1, 7};
  for (std::size_t at = 0; at + 8 <= sizeof(flight::FixedHeader); at += 4) {
    for (const std::uint64_t value : hostile) {
      Bytes bytes = good;
      std::memcpy(bytes.data() + at, &value, sizeof value);
      seal(bytes);
      expect_possible(flight::parse_flight({}, bytes, {}));
    }
  }
}

TEST(RingReaderTest, WordsOfARingThatContradictEachOtherAreSaid) {
  const Bytes good = good_file();
  const FlightRead whole = flight::parse_flight({}, good, {});
  const std::uint64_t hostile[] = {~std::uint64_t{0}, std::uint64_t{1} << 40, 3, 0};
  std::size_t damaged = 0;
  for (std::size_t word = 0; word < sizeof(flight::RingLine) / 8; ++word) {
    for (const std::uint64_t value : hostile) {
      Bytes bytes = good;
      std::memcpy(bytes.data() + sizeof(flight::Header) + word * 8, &value, sizeof value);
      const FlightRead read = flight::parse_flight({}, bytes, {});
      ASSERT_EQ(read.refusal, "");
      expect_possible(read);
      damaged += read.damage.empty() ? 0 : 1;
      // The other rings are as they were.
      ASSERT_GE(read.rings.size(), 2u);
      ASSERT_EQ(read.rings.back().ring.records.size(), whole.rings.back().ring.records.size());
    }
  }
  EXPECT_GE(damaged, 20u);
}

TEST(RingReaderTest, RingsThatLieOverEachOtherCostNoMoreThanTheFile) {
  Bytes bytes = good_file();
  flight::RingLine line;
  std::memcpy(&line, bytes.data() + sizeof(flight::Header), sizeof line);
  flight::FixedHeader header;
  std::memcpy(&header, bytes.data(), sizeof header);
  const std::size_t lines = header.rings.bytes / sizeof line;
  line.ring.at = header.cells.at;
  line.ring.cells = std::uint64_t{1} << 13;
  ASSERT_LE(line.ring.cells * flight::kCellBytes, header.cells.bytes);
  for (std::size_t i = 0; i < lines; ++i)
    std::memcpy(bytes.data() + sizeof(flight::Header) + i * sizeof line, &line, sizeof line);
  const FlightRead read = flight::parse_flight({}, bytes, {});
  EXPECT_LE(read.rings.size(), 1u);
  EXPECT_NE(read.damage, "");
}

TEST(RingReaderTest, DamagedTextEndsThereAndIsSaid) {
  Bytes bytes = good_file();
  const FlightRead whole = flight::parse_flight({}, bytes, {});
  ASSERT_EQ(whole.text.size(), 4u);
  const std::size_t at = whole.header.text.at + flight::text_step(whole.text[0].text.size());
  bytes[at + sizeof(flight::TextHead)] ^= std::byte{1};
  const FlightRead read = flight::parse_flight({}, bytes, {});
  EXPECT_EQ(read.text.size(), 1u);
  EXPECT_GT(read.text_unreadable, 0u);
  EXPECT_NE(read.damage, "");
}

TEST(RingReaderTest, WhatIsNoFileOfTheRecorderGetsOneSentence) {
  const Folder folder;
  const std::string path = folder.path() + "/x";
  const auto refusal = [&] { return flight::read_flight(path).refusal; };
  EXPECT_NE(refusal().find("No such file"), std::string::npos);
  std::ofstream(path) << "";
  EXPECT_NE(refusal().find("shorter than a header"), std::string::npos);
  std::ofstream(path) << std::string(10'000, 'x');
  EXPECT_NE(refusal().find("no file of the flight recorder"), std::string::npos);
  ASSERT_EQ(::unlink(path.c_str()), 0);
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_NE(refusal().find("no regular file"), std::string::npos);
  const std::string sentence = refusal();
  EXPECT_EQ(std::count(sentence.begin(), sentence.end(), '\n'), 0);
}

/// Written by flight_corpus.py from the page alone.
Bytes from_the_page(const std::string& name) {
  std::ifstream file(std::string(RINGMAIN_SOURCE_DIR) + "/tests/engine/flight/corpus/" + name,
                     std::ios::binary);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  const auto* const from = reinterpret_cast<const std::byte*>(text.data());
  return {from, from + text.size()};
}

TEST(RingReaderTest, AFileThatIsMadeAsThePageSaysIsReadSo) {
  const FlightRead read = flight::parse_flight({}, from_the_page("wrapped"), {});
  ASSERT_EQ(read.refusal + read.damage, "");
  EXPECT_EQ(read.header.pid, 4242u);
  EXPECT_EQ(read.header.rank, 3u);
  EXPECT_EQ(read.header.world_size, 8u);
  EXPECT_STREQ(read.header.program.data(), "train");
  ASSERT_EQ(read.clocks.size(), 1u);
  EXPECT_EQ(read.clocks[0].realtime_ns, 1'700'000'000'000'000'000);
  EXPECT_EQ(read.find(flight::TextKind::channel, 1)->text, "collective.issued");
  EXPECT_EQ(read.find(flight::TextKind::channel, 1)->schema, 7u);
  EXPECT_EQ(read.find(flight::TextKind::source, 1)->text, "trainer");
  ASSERT_EQ(read.operations.size(), 2u);
  EXPECT_EQ(read.operations[1].sequence, 2u);
  EXPECT_EQ(read.operations[1].kind, 2u);
  ASSERT_EQ(read.rings.size(), 2u);
  const flight::TrackRead& ring = read.rings[0].ring;
  EXPECT_EQ(ring.written, 200u);
  EXPECT_EQ(ring.unreadable + (ring.under_way ? 1 : 0), 0u);
  ASSERT_FALSE(ring.records.empty());
  for (const flight::RecordRead& record : ring.records) {
    const std::uint64_t i = record.number - 1;
    EXPECT_EQ(record.head.time_ns, static_cast<std::int64_t>(100 + i));
    EXPECT_EQ(record.head.sequence, i + 1);
    EXPECT_EQ(record.head.code, static_cast<PublishCode>(i % 9));
    ASSERT_EQ(record.payload_bytes, i * 37 % 300);
    for (std::size_t j = 0; j < record.payload_bytes; ++j)
      ASSERT_EQ(ring.payloads[record.payload_at + j], static_cast<std::byte>((i + j) % 251));
  }
  EXPECT_EQ(read.rings[0].annex.written, 50u);
  EXPECT_EQ(read.rings[1].ring.records.size(), 3u);
}

TEST(RingReaderTest, TheOtherFilesOfTheCorpusAreReadToo) {
  EXPECT_TRUE(flight::parse_flight({}, from_the_page("empty"), {}).rings[0].ring.records.empty());
  EXPECT_EQ(flight::parse_flight({}, from_the_page("some"), {}).rings[0].ring.records.size(), 5u);
  EXPECT_TRUE(flight::parse_flight({}, from_the_page("torn"), {}).rings[0].ring.under_way);
  EXPECT_NE(flight::parse_flight({}, from_the_page("cut"), {}).damage, "");
  EXPECT_NE(flight::parse_flight({}, from_the_page("header"), {}).damage, "");
}

TEST(RingReaderTest, AFileThatWasCutIsReadAndSaid) {
  const Folder folder;
  const std::string path = folder.path() + "/cut.ring";
  const Bytes good = good_file();
  std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(good.data()), 500'000);
  const FlightRead read = flight::read_flight(path);
  EXPECT_EQ(read.refusal, "");
  EXPECT_NE(read.damage.find("500000 of 1048576 bytes"), std::string::npos) << read.damage;
  EXPECT_EQ(read.rings.size(), 3u);
}

/// The same file as if it had been made with 4 GiB, most of it never written.
TEST(RingReaderTest, AFileOfFourGibibytesCostsWhatWasRecorded) {
  const Folder folder;
  const std::string path = folder.path() + "/large.ring";
  Bytes large = good_file();
  flight::FixedHeader header;
  std::memcpy(&header, large.data(), sizeof header);
  header.file_bytes = std::uint64_t{1} << 32;
  header.cells.bytes = header.file_bytes - header.cells.at;
  std::memcpy(large.data(), &header, sizeof header);
  seal(large);
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(large.data()),
             static_cast<std::streamsize>(large.size()));
  ASSERT_EQ(::truncate(path.c_str(), 1L << 32), 0);
  rusage before{}, after{};
  ::getrusage(RUSAGE_SELF, &before);
  const FlightRead read = flight::read_flight(path);
  ::getrusage(RUSAGE_SELF, &after);
  EXPECT_EQ(read.refusal + read.damage, "");
  EXPECT_EQ(read.rings.size(), 3u);
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 512L << 10);  // KiB

  const FlightRead refused = flight::read_flight(path, 4096);
  EXPECT_NE(refused.refusal.find("name it by itself"), std::string::npos) << refused.refusal;
  EXPECT_TRUE(refused.rings.empty() && refused.text.empty());
}

TEST(RingReaderTest, WhatFollowsTheEndOfAFileCostsNoMemory) {
  const Folder folder;
  const std::string path = folder.path() + "/long.ring";
  const Bytes good = good_file();
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(good.data()), static_cast<std::streamsize>(good.size()));
  ASSERT_EQ(::truncate(path.c_str(), 1L << 30), 0);  // a hole, which takes no room on the disk
  rusage before{}, after{};
  ::getrusage(RUSAGE_SELF, &before);
  const FlightRead read = flight::read_flight(path);
  ::getrusage(RUSAGE_SELF, &after);
  EXPECT_EQ(read.refusal + read.damage, "");
  EXPECT_EQ(read.rings.size(), 3u);
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 512L << 10);  // KiB
}

}  // namespace
}  // namespace ringmain::tests
