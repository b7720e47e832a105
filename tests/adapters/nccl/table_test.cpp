// Is the table NCCL's header, and does the real library answer through the wrapper as it does
// itself? The header and library of 2.32.3 lie below build/nccl where ./dev test has fetched them;
// RINGMAIN_NCCL names another such folder, of which only what is younger may lack.
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "bus/test_bus.hpp"

#include "events/collective.hpp"

#include "adapters/sources/nccl/nccl.hpp"

namespace ringmain::tests {
namespace {

namespace files = std::filesystem;

files::path folder() {
  const char* const named = std::getenv("RINGMAIN_NCCL");
  return named != nullptr ? files::path(named) : files::path(RINGMAIN_NCCL_FOLDER);
}

/// Without what does not belong to the type: names of parameters are kept, spaces and std are not.
std::string plain(std::string text) {
  text = std::regex_replace(text, std::regex("std::|\\s+|\\bvoid(?=\\)$)"), "");
  return text;
}

/// Name to "result(parameters)", of the table.
std::map<std::string, std::string> table() {
  std::map<std::string, std::string> all;
#define TEST_ADD(result, name, parameters) all["nccl" #name] = plain(#result #parameters);
#define TEST_ROW(name, since, parameters, ...) TEST_ADD(ncclResult_t, name, parameters)
#define TEST_ROW_2(name, since, parameters, ...)                  \
  TEST_ROW(name, since, parameters)                               \
  all["nccl" #name "Config"] = plain("ncclResult_t" #parameters); \
  all["nccl" #name "Config"].back() = ',';                        \
  all["nccl" #name "Config"] += plain("const ncclCollConfig_t* config)");
#define TEST_ROW_OF(result, name, since, parameters, ...) TEST_ADD(result, name, parameters)
  RINGMAIN_NCCL_TWINNED(TEST_ROW_2)
  RINGMAIN_NCCL_ONE_WAY(TEST_ROW)
  RINGMAIN_NCCL_GROUP(TEST_ROW)
  RINGMAIN_NCCL_LIFE(TEST_ROW)
  RINGMAIN_NCCL_MEMORY(TEST_ROW_OF)
  RINGMAIN_NCCL_QUERY(TEST_ROW_OF)
  return all;
}

std::map<std::string, std::string> header(const std::string& text) {
  const std::string code = std::regex_replace(
      std::regex_replace(text, std::regex(R"(/\*[^*]*\*+(?:[^/*][^*]*\*+)*/)"), ""),
      std::regex("//[^\n]*"), "");
  std::map<std::string, std::string> all;
  const std::regex function(R"(\n\s*((?:const\s+)?\w+\s*\*?)\s*\b(nccl\w+)\s*\(([^;{}()]*)\)\s*;)");
  for (std::sregex_iterator one(code.begin(), code.end(), function), end; one != end; ++one)
    all[(*one)[2]] = plain(std::string((*one)[1]) + "(" + std::string((*one)[3]) + ")");
  all.erase("ncclResetDebugInit");  // gone since 2.29, and of NCCL's own use before
  return all;
}

/// The part that was there in a version.
std::size_t rows_of(int version) {
  std::size_t rows = 0;
  for (const auto& row : nccl::kFunctionRows) rows += row.since <= version ? 1 : 0;
  return rows;
}

TEST(NcclTableTest, ItHasTheFunctionsOfEachVersion) {
  EXPECT_EQ(rows_of(22809), 40u);
  EXPECT_EQ(rows_of(23007), 63u);
  EXPECT_EQ(rows_of(23102), 71u);
  EXPECT_EQ(rows_of(23203), 72u);
  EXPECT_EQ(nccl::kFunctions, 72u);
}

TEST(NcclTableTest, ItIsTheHeaders) {
  std::ifstream file(folder() / "include" / "nccl.h");
  if (!file) GTEST_SKIP() << "there is no " << folder() << "/include/nccl.h; ./dev test fetches it";
  std::stringstream read;
  read << file.rdbuf();
  const auto theirs = header(read.str());
  std::smatch version;
  const std::string text = read.str();
  ASSERT_TRUE(std::regex_search(text, version, std::regex("define NCCL_VERSION_CODE (\\d+)")));
  const int code = std::stoi(version[1]);
  const auto ours = table();
  for (const auto& [name, type] : theirs) {
    const auto found = ours.find(name);
    if (found == ours.end()) {
      ADD_FAILURE() << "the table lacks " << name;
    } else {
      EXPECT_EQ(found->second, type) << name;
    }
  }
  for (const auto& row : nccl::kFunctionRows) {
    EXPECT_EQ(theirs.count(row.symbol) != 0, row.since <= code) << row.symbol;
  }
  EXPECT_EQ(theirs.size(), rows_of(code));
}

class RealNcclTest : public testing::Test {
 protected:
  void SetUp() override {
    const files::path file = folder() / "lib" / "libnccl.so.2";
    if (!files::exists(file)) GTEST_SKIP() << "there is no " << file << "; ./dev test fetches it";
    auto loaded = nccl::load_functions(file.c_str());
    ASSERT_TRUE(loaded) << loaded.error().message;
    functions_ = loaded.value();
    nccl::use_functions(functions_);
    if (::dlopen("libcuda.so.1", RTLD_LAZY) != nullptr)
      GTEST_SKIP() << "there is a driver: NCCL's answers are of a machine without one";
  }
  nccl::Functions functions_;
};

TEST_F(RealNcclTest, EachFunctionOfTheTableIsThere) {
  int version = 0;
  ASSERT_EQ(nccl::GetVersion(&version), nccl::ncclSuccess);
  for (unsigned i = 0; i < nccl::kFunctions; ++i) {
    EXPECT_EQ(functions_.at[i] != nullptr, nccl::kFunctionRows[i].since <= version)
        << nccl::kFunctionRows[i].symbol << " in " << version;
  }
}

TEST_F(RealNcclTest, EachCallAnswersNcclsOwnCodeHeardOrNot) {
  using namespace nccl;  // NOLINT: only here, to keep the table readable
  int version = 0;
  EXPECT_EQ(GetVersion(&version), ncclSuccess);
  EXPECT_GE(version, 22809);
  TestBus bus;
  const auto heard = bus.heard<collective::Issued>();
  for (const bool is_heard : {false, true}) {
    SCOPED_TRACE(is_heard);
    Calls calls;
    if (is_heard) calls = std::move(Calls::attach(bus)).value();
    float a = 0;
    ncclComm_t none = nullptr, made = nullptr;
    ncclConfig_t config;
    ncclUniqueId id{};
    ncclResult_t error{};
    EXPECT_EQ(CommInitRankConfig(&made, 1, id, 0, &config), ncclUnhandledCudaError);
    EXPECT_EQ(made, nullptr);
    EXPECT_NE(std::string(GetLastError(nullptr)), "");
    EXPECT_EQ(CommInitAll(&made, 1, nullptr), ncclUnhandledCudaError);
    void* memory = nullptr;
    EXPECT_EQ(MemAlloc(&memory, 16), ncclUnhandledCudaError);
    const auto type = ncclFloat32;
    for (const ncclResult_t result :
         {AllReduce(&a, &a, 1, type, ncclSum, none, nullptr),
          Broadcast(&a, &a, 1, type, 0, none, nullptr), Bcast(&a, 1, type, 0, none, nullptr),
          Reduce(&a, &a, 1, type, ncclSum, 0, none, nullptr),
          AllGather(&a, &a, 1, type, none, nullptr),
          ReduceScatter(&a, &a, 1, type, ncclSum, none, nullptr),
          AlltoAll(&a, &a, 1, type, none, nullptr), Gather(&a, &a, 1, type, 0, none, nullptr),
          Scatter(&a, &a, 1, type, 0, none, nullptr), Send(&a, 1, type, 0, none, nullptr),
          Recv(&a, 1, type, 0, none, nullptr), CommGetAsyncError(none, &error)})
      EXPECT_EQ(result, ncclInvalidArgument);
    for (const ncclResult_t result :
         {CommAbort(none), CommDestroy(none), CommFinalize(none), CommRevoke(none, 0)})
      EXPECT_EQ(result, ncclSuccess);
    ncclSimInfo_t simulated{};
    EXPECT_EQ(GroupStart(), ncclSuccess);
    EXPECT_EQ(GroupStart(), ncclSuccess);
    EXPECT_EQ(GroupEnd(), ncclSuccess);
    EXPECT_EQ(GroupSimulateEnd(&simulated), ncclSuccess);
    for (int stray = 0; stray < 4; ++stray) {  // NCCL's depth may be left one too large
      if (GroupEnd() == ncclInvalidUsage) break;
      EXPECT_NE(stray, 3);
    }
    EXPECT_EQ(GroupStart(), ncclSuccess);
    EXPECT_EQ(AllReduce(&a, &a, 1, type, ncclSum, none, nullptr), ncclInvalidArgument);
    EXPECT_EQ(GroupEnd(), ncclInvalidArgument);
    EXPECT_EQ(GroupEnd(), ncclInvalidUsage);
    EXPECT_STREQ(GetErrorString(ncclInvalidUsage),
                 reinterpret_cast<const char* (*)(int)>(
                     functions_.at[static_cast<unsigned>(Function::GetErrorString)])(5));
  }
  bus.deliver();
  ASSERT_EQ(heard.size(), 2u);  // the two calls that could make no communicator
  EXPECT_EQ(heard[0].op.view(), "init");
  EXPECT_EQ(heard[1].op.view(), "init");
}

}  // namespace
}  // namespace ringmain::tests
