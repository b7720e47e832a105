// Names, texts, schemas, ranks and paths: what is said about events and who says it.
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "bus/bus.hpp"

#include "tests/bus/events.hpp"

namespace ringmain::tests {

enum class Phase : std::uint8_t { instant, begin, end };
struct Everything {
  std::uint8_t u8;
  std::int16_t i16;
  std::uint32_t u32;
  std::int64_t i64;
  float f32;
  double f64;
  bool flag;
  Phase phase;
  Name name;
  Text<32> text;
};
constexpr auto describe(EventOf<Everything>) {
  return event("test.everything", field<&Everything::u8>("u8"), field<&Everything::i16>("i16"),
               field<&Everything::u32>("u32", Unit::device),
               field<&Everything::i64>("i64", Unit::ns), field<&Everything::f32>("f32"),
               field<&Everything::f64>("f64"), field<&Everything::flag>("flag"),
               field<&Everything::phase>("phase", "instant,begin,end"),
               field<&Everything::name>("name"), field<&Everything::text>("text"));
}

// The same but for one word each: hashes must differ.
struct TickA {
  std::uint64_t n;
};
struct TickB {
  std::uint64_t n;
};
struct TickC {
  std::int64_t n;
};
struct TickD {
  std::uint64_t n;
};
struct TickE {
  std::uint64_t n;
  std::uint64_t hidden;
};
constexpr auto describe(EventOf<TickA>) {
  return event("t", field<&TickA::n>("n"));
}
constexpr auto describe(EventOf<TickB>) {
  return event("t", field<&TickB::n>("m"));
}
constexpr auto describe(EventOf<TickC>) {
  return event("t", field<&TickC::n>("n"));
}
constexpr auto describe(EventOf<TickD>) {
  return event("t", field<&TickD::n>("n", Unit::ns));
}
constexpr auto describe(EventOf<TickE>) {
  return event("t", field<&TickE::n>("n"));
}

namespace {

TEST(NameTest, EqualStringsAreEqualNames) {
  const Name a("alpha");
  EXPECT_EQ(a, Name(std::string("alp") + "ha"));
  EXPECT_NE(a, Name("beta"));
  EXPECT_EQ(a.view(), "alpha");
  EXPECT_EQ(Name(), Name(""));
  EXPECT_EQ(Name().view(), "");
  EXPECT_EQ(Name(std::string_view("a\0b", 3)).view(), std::string_view("a\0b", 3));
}

TEST(NameTest, AViewStaysWhereItIs) {
  const Name first("stays");
  const char* at = first.view().data();
  for (int i = 0; i < 20'000; ++i) (void)Name("name " + std::to_string(i));
  EXPECT_EQ(first.view().data(), at);
  EXPECT_EQ(Name("name 19999").view(), "name 19999");
}

TEST(NameTest, ALongStringIsCutAtACharacterAndCounted) {
  const std::uint64_t before = names_stats().truncated;
  std::string s(64 * 1024 - 1, 'x');
  s += "\xc3\xa9";  // two bytes, of which one would fit
  const Name n(s);
  EXPECT_EQ(n.view().size(), 64u * 1024 - 1);
  EXPECT_EQ(names_stats().truncated, before + 1);
}

TEST(NameTest, ThreadsThatInternTheSameStringsGetTheSameNames) {
  std::array<std::vector<Name>, 4> all;
  std::vector<std::thread> threads;
  for (auto& names : all) {
    threads.emplace_back([&names] {
      for (int i = 0; i < 2000; ++i) {
        names.emplace_back("shared " + std::to_string(i));
        EXPECT_EQ(names.back().view(), "shared " + std::to_string(i));
      }
    });
  }
  for (auto& t : threads) t.join();
  for (const auto& names : all) EXPECT_EQ(names, all[0]);
}

TEST(NameTest, PastItsBoundTheTableSaysSoAndCounts) {
  const Name old("known before");
  std::string s;
  std::uint64_t i = 0;
  while (names_stats().refused == 0) {
    ASSERT_LT(i, 1u << 21) << "the table has no bound";
    s = "fill ";
    s += std::to_string(i++);
    (void)Name(s);
  }
  EXPECT_EQ(Name(s).view(), "(names full)");
  EXPECT_EQ(names_stats().refused, 2u);
  EXPECT_EQ(Name("known before"), old);
  EXPECT_EQ(Name("fill 0").view(), "fill 0");
}

TEST(TextTest, ItHoldsUpToItsBytesAndMarksTheCut) {
  const Text<16> fits("fourteen bytes");
  EXPECT_EQ(fits.view(), "fourteen bytes");
  EXPECT_FALSE(fits.cut());
  const Text<16> longer("fifteen bytes..");
  EXPECT_EQ(longer.view(), "fifteen bytes.");
  EXPECT_TRUE(longer.cut());
  EXPECT_EQ(Text<8>().view(), "");
}

TEST(TextTest, ItIsNeverCutWithinACharacter) {
  for (const std::string& character :
       {std::string("\xc3\xa9"), std::string("\xe2\x82\xac"), std::string("\xf0\x9f\x9a\x80")}) {
    for (std::size_t before = 0; before <= 14; ++before) {
      std::string s(before, 'x');
      while (s.size() < 30) s += character;
      const Text<16> t(s);
      EXPECT_TRUE(t.cut());
      EXPECT_LE(t.view().size(), 14u);
      EXPECT_GT(t.view().size() + character.size(), 14u);
      EXPECT_EQ((t.view().size() - before) % character.size(), 0u) << before;
    }
  }
}

TEST(TextTest, WhatIsNotUtf8IsCutWhereItMustBe) {
  const Text<16> t(std::string(30, '\x80'));
  EXPECT_EQ(t.view().size(), 14u);
  EXPECT_TRUE(t.cut());
}

TEST(SchemaTest, ItKnowsEveryFieldsPlaceKindAndUnit) {
  const Schema& s = schema<Everything>();
  EXPECT_EQ(s.name, "test.everything");
  EXPECT_EQ(s.bytes, sizeof(Everything));
  EXPECT_NE(s.type.find("Everything"), std::string_view::npos);
  ASSERT_EQ(s.fields.size(), 10u);
  const auto is = [&](std::size_t i, std::string_view name, Kind kind, std::size_t offset,
                      std::size_t bytes, Unit unit) {
    EXPECT_EQ(s.fields[i].name, name);
    EXPECT_EQ(s.fields[i].kind, kind) << name;
    EXPECT_EQ(s.fields[i].offset, offset) << name;
    EXPECT_EQ(s.fields[i].bytes, bytes) << name;
    EXPECT_EQ(s.fields[i].unit, unit) << name;
  };
  is(0, "u8", Kind::u8, offsetof(Everything, u8), 1, Unit::none);
  is(1, "i16", Kind::i16, offsetof(Everything, i16), 2, Unit::none);
  is(2, "u32", Kind::u32, offsetof(Everything, u32), 4, Unit::device);
  is(3, "i64", Kind::i64, offsetof(Everything, i64), 8, Unit::ns);
  is(4, "f32", Kind::f32, offsetof(Everything, f32), 4, Unit::none);
  is(5, "f64", Kind::f64, offsetof(Everything, f64), 8, Unit::none);
  is(6, "flag", Kind::boolean, offsetof(Everything, flag), 1, Unit::none);
  is(7, "phase", Kind::enumeration, offsetof(Everything, phase), 1, Unit::none);
  is(8, "name", Kind::name, offsetof(Everything, name), 4, Unit::none);
  is(9, "text", Kind::text, offsetof(Everything, text), 32, Unit::none);
  EXPECT_EQ(s.fields[7].enumerators, "instant,begin,end");
  EXPECT_EQ(&s, &schema<Everything>());
}

TEST(SchemaTest, AnotherNameKindUnitOrSizeIsAnotherHash) {
  const std::vector<std::uint64_t> hashes{schema_hash<TickA>(), schema_hash<TickB>(),
                                          schema_hash<TickC>(), schema_hash<TickD>(),
                                          schema_hash<TickE>()};
  for (std::size_t i = 0; i < hashes.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) EXPECT_NE(hashes[i], hashes[j]) << i << ", " << j;
  }
}

TEST(SchemaTest, EveryUnitKindAndCodeHasAWord) {
  for (int u = 0; u <= static_cast<int>(Unit::id); ++u)
    EXPECT_NE(to_string(static_cast<Unit>(u)), "?");
  for (int k = 0; k <= static_cast<int>(Kind::text); ++k)
    EXPECT_NE(to_string(static_cast<Kind>(k)), "?");
  for (int c = 0; c <= static_cast<int>(PublishCode::vetoed); ++c)
    EXPECT_NE(to_string(static_cast<PublishCode>(c)), "?");
  for (int d = 0; d <= static_cast<int>(Detached::was_not_attached); ++d)
    EXPECT_NE(to_string(static_cast<Detached>(d)), "?");
}

constexpr std::array kRankVariables = {"RINGMAIN_RANK",
                                       "RINGMAIN_LOCAL_RANK",
                                       "RINGMAIN_WORLD_SIZE",
                                       "RINGMAIN_LOCAL_WORLD_SIZE",
                                       "RINGMAIN_JOB",
                                       "RINGMAIN_ATTEMPT",
                                       "RANK",
                                       "LOCAL_RANK",
                                       "WORLD_SIZE",
                                       "LOCAL_WORLD_SIZE",
                                       "TORCHELASTIC_RUN_ID",
                                       "TORCHELASTIC_RESTART_COUNT",
                                       "OMPI_COMM_WORLD_RANK",
                                       "OMPI_COMM_WORLD_LOCAL_RANK",
                                       "OMPI_COMM_WORLD_SIZE",
                                       "OMPI_COMM_WORLD_LOCAL_SIZE",
                                       "OMPI_MCA_ess_base_jobid",
                                       "FLUX_TASK_RANK",
                                       "FLUX_TASK_LOCAL_ID",
                                       "FLUX_JOB_SIZE",
                                       "FLUX_JOB_ID",
                                       "SLURM_PROCID",
                                       "SLURM_LOCALID",
                                       "SLURM_NTASKS",
                                       "SLURM_NTASKS_PER_NODE",
                                       "SLURM_JOB_ID",
                                       "SLURM_RESTART_COUNT",
                                       "PMIX_RANK",
                                       "PMIX_NAMESPACE",
                                       "PMI_RANK",
                                       "MPI_LOCALRANKID",
                                       "PMI_SIZE",
                                       "MPI_LOCALNRANKS",
                                       "PMI_JOBID"};

class RankTest : public ::testing::Test {
 protected:
  RankTest() { clear(); }
  ~RankTest() override { clear(); }
  static void clear() {
    for (const char* v : kRankVariables) ::unsetenv(v);
  }
  static RankIdentity with(const std::vector<std::pair<const char*, const char*>>& variables) {
    clear();
    for (const auto& [name, value] : variables) ::setenv(name, value, 1);
    return read_rank_identity();
  }
};

TEST_F(RankTest, AloneItIsRankZeroOfOne) {
  const RankIdentity me = read_rank_identity();
  EXPECT_EQ(me.launcher, "none");
  EXPECT_EQ(me.rank, 0u);
  EXPECT_EQ(me.world_size, 1u);
  EXPECT_EQ(me.local_world_size, 1u);
  EXPECT_EQ(me.job, "");
  EXPECT_FALSE(me.host.empty());
  EXPECT_EQ(me.pid, ::getpid());
}

TEST_F(RankTest, EveryLauncherIsUnderstood) {
  const struct {
    const char* launcher;
    std::vector<std::pair<const char*, const char*>> variables;
    bool local, world, job;
  } rows[] = {
      {"ringmain",
       {{"RINGMAIN_RANK", "5"},
        {"RINGMAIN_LOCAL_RANK", "1"},
        {"RINGMAIN_WORLD_SIZE", "8"},
        {"RINGMAIN_LOCAL_WORLD_SIZE", "4"},
        {"RINGMAIN_JOB", "j"},
        {"RINGMAIN_ATTEMPT", "2"}},
       true,
       true,
       true},
      {"torchrun",
       {{"RANK", "5"},
        {"LOCAL_RANK", "1"},
        {"WORLD_SIZE", "8"},
        {"LOCAL_WORLD_SIZE", "4"},
        {"TORCHELASTIC_RUN_ID", "j"},
        {"TORCHELASTIC_RESTART_COUNT", "2"}},
       true,
       true,
       true},
      {"openmpi",
       {{"OMPI_COMM_WORLD_RANK", "5"},
        {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
        {"OMPI_COMM_WORLD_SIZE", "8"},
        {"OMPI_MCA_ess_base_jobid", "j"}},
       true,
       true,
       true},
      {"flux",
       {{"FLUX_TASK_RANK", "5"},
        {"FLUX_TASK_LOCAL_ID", "1"},
        {"FLUX_JOB_SIZE", "8"},
        {"FLUX_JOB_ID", "j"}},
       true,
       true,
       true},
      {"slurm",
       {{"SLURM_PROCID", "5"},
        {"SLURM_LOCALID", "1"},
        {"SLURM_NTASKS", "8"},
        {"SLURM_JOB_ID", "j"}},
       true,
       true,
       true},
      {"pmix", {{"PMIX_RANK", "5"}, {"PMIX_NAMESPACE", "j"}}, false, false, true},
      {"pmi",
       {{"PMI_RANK", "5"}, {"MPI_LOCALRANKID", "1"}, {"PMI_SIZE", "8"}, {"PMI_JOBID", "j"}},
       true,
       true,
       true},
  };
  for (const auto& row : rows) {
    const RankIdentity me = with(row.variables);
    EXPECT_EQ(me.launcher, row.launcher);
    EXPECT_EQ(me.rank, 5u) << row.launcher;
    EXPECT_EQ(me.local_rank, row.local ? 1u : 0u) << row.launcher;
    EXPECT_EQ(me.world_size, row.world ? 8u : 1u) << row.launcher;
    EXPECT_EQ(me.job, row.job ? "j" : "") << row.launcher;
  }
  EXPECT_EQ(with(rows[1].variables).attempt, 2u);
  EXPECT_EQ(with(rows[1].variables).local_world_size, 4u);
}

TEST_F(RankTest, TorchrunUnderSlurmIsTorchrun) {
  const RankIdentity me = with({{"RANK", "9"}, {"SLURM_PROCID", "1"}, {"SLURM_JOB_ID", "77"}});
  EXPECT_EQ(me.rank, 9u);
  EXPECT_EQ(me.launcher, "torchrun");
  EXPECT_EQ(me.job, "77");
}

TEST_F(RankTest, WhatIsNoNumberIsNotTaken) {
  for (const char* bad : {"", "x", "-1", "1x", "99999999999", " 1"}) {
    const RankIdentity me = with({{"RANK", bad}, {"SLURM_PROCID", "4"}});
    EXPECT_EQ(me.rank, 4u) << bad;
    EXPECT_EQ(me.launcher, "slurm") << bad;
  }
}

TEST(PathTest, PlaceholdersAreReplacedAndAllElseStays) {
  RankIdentity me;
  me.rank = 3;
  me.pid = 99;
  me.host = "node-1.example";
  me.job = "train_7";
  EXPECT_EQ(expand_path("/out/%j/%h.%r.%p.json", me), "/out/train_7/node-1.example.3.99.json");
  EXPECT_EQ(expand_path("%%r %x 100%", me), "%r %x 100%");
  EXPECT_EQ(expand_path("", me), "");
  EXPECT_EQ(expand_path("%", me), "%");
  me.job = "";
  EXPECT_EQ(expand_path("%j", me), "job");
}

TEST(PathTest, HostAndJobCannotLeaveTheirDirectory) {
  RankIdentity me;
  for (const std::string& hostile :
       {std::string("../../etc/passwd"), std::string("a/b"), std::string(".."), std::string("."),
        std::string("a\0b", 3), std::string("x\ny"), std::string(5000, 'x'), std::string("%p%r"),
        std::string("\xff\xfe")}) {
    me.host = hostile;
    me.job = hostile;
    for (const char* path : {"%h", "%j"}) {
      const std::string out = expand_path(path, me);
      EXPECT_EQ(out.find('/'), std::string::npos) << hostile;
      EXPECT_EQ(out.find('\0'), std::string::npos);
      EXPECT_EQ(out.find('%'), std::string::npos);
      EXPECT_NE(out, "..");
      EXPECT_NE(out, ".");
      EXPECT_FALSE(out.empty());
      EXPECT_LE(out.size(), 255u) << "no file system takes a longer name";
    }
  }
}

}  // namespace
}  // namespace ringmain::tests
