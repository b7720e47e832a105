// What can be read of a process's flight recorder after SIGKILL, at whatever instant it comes?
//
// A child records in several threads as fast as it can; each says in memory that it shares with the
// test how many records it has begun and how many were over. The test kills it and compares the
// file with just that. 20 times; more by hand: flight_kill_test --kills 1000
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <new>
#include <random>
#include <string>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "engine/flight/ring_reader.hpp"

#include "tests/engine/flight/flight_rig.hpp"
#include "tests/process/child.hpp"

namespace ringmain::tests {

unsigned kills = 20;

namespace {

enum : std::size_t { kWriters = 4, kOpenAtOnce = 3 };

/// What a writer says of itself, in memory that outlives it.
struct alignas(64) Said {
  std::atomic<std::uint64_t> begun{0}, done{0};
  std::atomic<std::uint64_t> opening{0}, opened{0}, ending{0}, ended{0};
};
struct SharedSaid {
  Said of[kWriters];
  std::atomic<bool> in_memory{false};
};

class Shared {
 public:
  Shared()
      : at_(::mmap(nullptr, sizeof(SharedSaid), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                   -1, 0)) {
    ::new (at_) SharedSaid;
  }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;
  ~Shared() { ::munmap(at_, sizeof(SharedSaid)); }
  SharedSaid* operator->() const { return static_cast<SharedSaid*>(at_); }

 private:
  void* at_;
};

constexpr std::uint64_t id_of(std::size_t writer, std::uint64_t number) {
  return number * kWriters + writer;
}

void write_for_ever(flight::RingFile& file, std::size_t writer, std::uint64_t seed, Said& said) {
  flight::RingWriter* const ring = file.claim(1);
  for (std::uint64_t n = 1;; ++n) {
    const Expected one(seed + writer, n);
    said.begun = n;
    ring->record(one.head, one.payload.data(), one.bytes);
    said.done = n;
    said.opening = n;
    file.operations().open({id_of(writer, n), 1, 2, 3, 4, 5, 6});
    said.opened = n;
    if (n <= kOpenAtOnce) continue;
    said.ending = n - kOpenAtOnce;
    file.operations().end(id_of(writer, n - kOpenAtOnce));
    said.ended = n - kOpenAtOnce;
  }
}

[[noreturn]] void be_killed(const std::string& folder, std::uint64_t seed, SharedSaid& said) {
  ::alarm(kChildSecondsMax);
  const auto file = flight::RingFile::open(small_rings(folder));
  if (file->path().empty()) {
    said.in_memory = true;
    for (;;) ::pause();
  }
  std::vector<std::thread> others;
  for (std::size_t w = 1; w < kWriters; ++w)
    others.emplace_back([&, w] { write_for_ever(*file, w, seed, said.of[w]); });
  write_for_ever(*file, 0, seed, said.of[0]);
  std::abort();
}

std::string file_of(const Folder& folder, pid_t pid) {
  for (const std::string& name : folder.files())
    if (name.find("flight-" + std::to_string(pid) + "-") == 0) return folder.path() + "/" + name;
  return "";
}

/// A ring belongs to the writer that made its records: there is one for which they are right.
std::size_t writer_of(const flight::TrackRead& read, std::uint64_t seed) {
  for (std::size_t w = 0; w < kWriters; ++w) {
    const flight::RecordRead& last = read.records.back();
    if (Expected(seed + w, last.number).is(read, last)) return w;
  }
  return kWriters;
}

void expect_open(const flight::FlightRead& read, SharedSaid& said) {
  std::vector<std::uint64_t> ids;
  for (const flight::OpenOperation& one : read.operations) ids.push_back(one.id);
  std::uint64_t begun_or_ending = 0;
  for (std::size_t w = 0; w < kWriters; ++w) {
    const Said& of = said.of[w];
    if (of.opening != of.opened || of.ending != of.ended) ++begun_or_ending;
    for (std::uint64_t n = of.ending + 1; n <= of.opened; ++n) {
      EXPECT_EQ(std::count(ids.begin(), ids.end(), id_of(w, n)), 1)
          << "an operation that is open is missing";
    }
    for (const std::uint64_t id : ids) {
      const std::uint64_t n = id / kWriters;
      if (id % kWriters != w) continue;
      EXPECT_TRUE(n > of.ended && n <= of.opening) << "an operation is open that is not";
    }
  }
  EXPECT_LE(read.operations_unreadable, begun_or_ending);
  EXPECT_EQ(read.counts.operations_left_out, 0u);
}

struct Found {
  std::uint64_t readable = 0, overwritten = 0, torn = 0;
};

void expect_just_what_was_said(const flight::FlightRead& read, std::uint64_t seed, SharedSaid& said,
                               Found& found) {
  ASSERT_EQ(read.refusal + read.damage, "");
  EXPECT_EQ(read.living, flight::Living::no);
  ASSERT_EQ(read.rings.size(), kWriters);
  std::vector<int> seen(kWriters + 1);
  for (const flight::RingRead& ring : read.rings) {
    ASSERT_FALSE(ring.ring.records.empty());
    const std::size_t w = writer_of(ring.ring, seed);
    ASSERT_LT(w, kWriters) << "the last record is nobody's";
    ++seen[w];
    EXPECT_EQ(
        compare(seed + w, ring.ring, read.header.ring_cells, said.of[w].done, said.of[w].begun),
        "");
    EXPECT_EQ(ring.annex.written + ring.missed, 0u);
    found.readable += ring.ring.records.size();
    found.overwritten += ring.ring.overwritten;
    found.torn += ring.ring.under_way ? 1 : 0;
  }
  EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), static_cast<long>(kWriters));
  expect_open(read, said);
}

TEST(FlightKillTest, NothingIsReadThatWasNotWrittenAndNothingIsMissingThatWasNotOverwritten) {
  std::random_device device;
  const std::uint64_t first_seed = device();
  std::mt19937_64 random(first_seed);
  SCOPED_TRACE("seed " + std::to_string(first_seed));
  Found found;
  for (unsigned i = 0; i < kills && !HasFailure(); ++i) {
    const Folder folder;
    const Shared said;
    const std::uint64_t seed = random();
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) be_killed(folder.path(), seed, *said.operator->());
    // Some die in their first lap, some after many; then at whatever instruction they are.
    const std::uint64_t enough = 1 + random() % (i % 2 == 0 ? 40 : 20'000);
    const auto all_have = [&] {
      for (const Said& of : said->of)
        if (of.done < enough) return false;
      return true;
    };
    while (!all_have() && !said->in_memory) std::this_thread::yield();
    for (std::uint64_t left = random() % 20'000; left > 0; --left) engine::pause();
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    ASSERT_EQ(ended(child), "killed by 9 (Killed)");
    if (said->in_memory) GTEST_SKIP() << "no file can be made in " << folder.path();
    expect_just_what_was_said(flight::read_flight(file_of(folder, child)), seed, *said.operator->(),
                              found);
  }
  std::printf("%u kills: %llu records read, %llu overwritten, %llu torn\n", kills,
              static_cast<unsigned long long>(found.readable),
              static_cast<unsigned long long>(found.overwritten),
              static_cast<unsigned long long>(found.torn));
}

TEST(FlightForkTest, AChildLeavesTheParentsFileAloneAlsoInTheMiddleOfARecord) {
  const Folder folder;
  const auto file = flight::RingFile::open(small_rings(folder.path()));
  ASSERT_EQ(file->complaint(), "");
  flight::RingWriter* const ring = file->claim(1);
  const auto record = [&](std::uint64_t n) {
    const Expected one(1, n);
    ring->record(one.head, one.payload.data(), one.bytes);
  };
  for (std::uint64_t n = 1; n <= 100; ++n) record(n);
  EXPECT_EQ(in_child([&](Findings& findings) {
              for (std::uint64_t n = 500; n < 700; ++n) record(n);  // to the child's own memory
              findings.expect(file->claim(1) == nullptr, "it gives a ring");
              findings.expect(file->add_channel("x", 1) == 0, "it takes text");
              file->note_clocks();
              file->operations().open({1, 2, 3, 4, 5, 6, 7});
            }),
            kFine);
  for (std::uint64_t n = 101; n <= 120; ++n) record(n);
  const flight::FlightRead read = flight::read_flight(file->path());
  ASSERT_EQ(read.rings.size(), 1u);
  EXPECT_EQ(compare(1, read.rings[0].ring, read.header.ring_cells, 120, 120), "");
  EXPECT_TRUE(read.operations.empty());
  EXPECT_EQ(read.clocks.size(), 1u);
}

TEST(FlightForkTest, AChildThatMayHaveNoMoreDataLeavesTheParentsFileAloneToo) {
  const Folder folder;
  const auto file = flight::RingFile::open(small_rings(folder.path()));
  ASSERT_EQ(file->complaint(), "");
  flight::RingWriter* const ring = file->claim(1);
  const auto record = [&](std::uint64_t n) {
    const Expected one(1, n);
    ring->record(one.head, one.payload.data(), one.bytes);
  };
  record(1);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_DATA, &before), 0);
  rlimit none = before;
  none.rlim_cur = 4096;  // of 0 Linux takes no notice
  ASSERT_EQ(::setrlimit(RLIMIT_DATA, &none), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    for (std::uint64_t n = 500; n < 700; ++n) record(n);
    ::_exit(0);
  }
  ASSERT_EQ(::setrlimit(RLIMIT_DATA, &before), 0);
  ASSERT_GE(child, 0);
  EXPECT_EQ(ended(child), "exited with 0");
  const flight::FlightRead read = flight::read_flight(file->path());
  ASSERT_EQ(read.rings.size(), 1u);
  EXPECT_EQ(compare(1, read.rings[0].ring, read.header.ring_cells, 1, 1), "");
}

TEST(FlightForkTest, AFileThatAChildMakesIsItsOwn) {
  const Folder folder;
  const auto file = flight::RingFile::open(small_rings(folder.path()));
  EXPECT_EQ(in_child([&](Findings& findings) {
              const auto mine = flight::RingFile::open(small_rings(folder.path()));
              findings.expect(mine->complaint().empty(), "it cannot be made");
              findings.expect(mine->claim(1) != nullptr, "it has no ring");
            }),
            kFine);
  EXPECT_EQ(folder.files().size(), 2u);
}

}  // namespace
}  // namespace ringmain::tests

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (argc == 3 && std::string_view(argv[1]) == "--kills") {
    ringmain::tests::kills = static_cast<unsigned>(std::atoi(argv[2]));
  } else if (argc != 1) {
    std::fprintf(stderr, "usage: flight_kill_test [--kills N]\n");
    return 2;
  }
  return RUN_ALL_TESTS();
}
