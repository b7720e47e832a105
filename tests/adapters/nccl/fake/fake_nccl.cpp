#include "tests/adapters/nccl/fake/fake_nccl.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <sys/syscall.h>
#include <unistd.h>
#include <vector>
// With NCCL's header a function of another type than NCCL's does not compile.
#if __has_include(<nccl.h>) && __has_include(<cuda_runtime.h>)
#include <nccl.h>
#endif

#include "adapters/sources/nccl/nccl_functions.hpp"
#include "adapters/sources/nccl/nccl_types.hpp"

struct ncclComm {
  bool taken = false;
  int rank = 0, size = 1, device = 0;
  bool blocking = true;
  std::atomic<int> state{0};  // what ncclCommGetAsyncError says
};

namespace ringmain::fake_nccl {
namespace {

using nccl::ncclComm_t;
using nccl::ncclResult_t;

struct World {
  World() { seen.reserve(1 << 16); }  // until then a call allocates nothing
  std::mutex mutex;
  std::array<ncclComm, 64> comms;
  std::vector<Seen> seen;
  std::map<std::string, int, std::less<>> failing;
  std::size_t launched = 0;
  bool leaves_depth = false;
};
World& world() {
  static auto* const one = new World;
  return *one;
}
std::atomic<void (*)(const char*, const void*)> inside{nullptr};
std::atomic<bool> quiet{false};

struct Group {
  int depth = 0;
  int failed = 0;
  std::size_t operations = 0;
  bool is_in_progress = false;
};
thread_local Group group;

/// What the test wants this call to answer; 0: what it would.
int seen(const char* name, const void* comm, const void* stream, std::size_t count,
         std::uint64_t tag, bool configured) {
  World& all = world();
  const std::lock_guard lock(all.mutex);
  Seen one{};
  std::strncpy(one.name, name, sizeof one.name - 1);
  one.comm = comm;
  one.stream = stream;
  one.count = count;
  one.tag = tag;
  one.thread = static_cast<std::int32_t>(::syscall(SYS_gettid));
  one.depth = group.depth;
  one.configured = configured;
  all.seen.push_back(one);
  const auto failing = all.failing.find(name);
  if (failing == all.failing.end()) return 0;
  const int result = failing->second;
  all.failing.erase(failing);
  return result;
}
int seen(const char* name, const void* comm = nullptr) {
  return seen(name, comm, nullptr, 0, 0, false);
}
ncclResult_t answer(int code) {
  return static_cast<ncclResult_t>(code);
}
/// The answer of a call that failed: an operation's failure is the group's, too.
ncclResult_t fails(int code) {
  if (group.depth != 0) group.failed = code;
  return answer(code);
}
void launch(std::size_t operations) {
  if (quiet) return;
  const std::lock_guard lock(world().mutex);
  world().launched += operations;
}
int progress(ncclComm& comm) {
  if (comm.blocking) return 0;
  comm.state = 7;
  return 7;
}

ncclComm* take(int rank, int size, int device, bool blocking) {
  const std::lock_guard lock(world().mutex);
  for (ncclComm& one : world().comms) {
    if (one.taken) continue;
    one.taken = true;
    one.rank = rank;
    one.size = size;
    one.device = device;
    one.blocking = blocking;
    one.state = 0;
    return &one;
  }
  return nullptr;
}
bool blocks(const nccl::ncclConfig_t* config) {
  return config == nullptr || config->blocking != 0;
}
ncclResult_t init(const char* name, ncclComm_t* comm, int size, int rank, bool blocking) {
  if (const int code = seen(name)) {
    if (world().leaves_depth) ++group.depth;
    return fails(code);
  }
  if (comm == nullptr || rank < 0 || rank >= size) return fails(4);
  *comm = take(rank, size, rank % 8, blocking);
  const int code = progress(**comm);
  group.is_in_progress = group.is_in_progress || code == 7;
  return answer(group.depth != 0 && code == 0 ? 0 : code);
}
ncclResult_t part(const char* name, ncclComm_t of, ncclComm_t* made, int rank, int size,
                  const nccl::ncclConfig_t* config) {
  if (const int code = seen(name, of)) return fails(code);
  if (of == nullptr || made == nullptr) return fails(4);
  *made = take(rank, size, of->device, config == nullptr ? of->blocking : blocks(config));
  return answer(progress(**made));
}
ncclResult_t end(const char* name, ncclComm_t comm, bool frees) {
  if (const int code = seen(name, comm)) return answer(code);
  if (comm == nullptr) return answer(0);
  if (frees) {
    const std::lock_guard lock(world().mutex);
    comm->taken = false;
    return answer(0);
  }
  return answer(progress(*comm));
}

}  // namespace
}  // namespace ringmain::fake_nccl

namespace ringmain::nccl {

using namespace ringmain::fake_nccl;  // NOLINT: the functions below are its face

extern "C" __attribute__((visibility("default"))) ncclResult_t ncclCommGetAsyncError(
    ncclComm_t comm, ncclResult_t* error);

namespace {
ncclResult_t operate(const char* name, ncclComm_t comm, cudaStream_t stream, std::size_t count,
                     const ncclCollConfig_t* config, bool configured) {
  if (quiet) return answer(0);
  const std::uint64_t tag = config == nullptr ? 0 : config->userProfilerTag;
  if (const int code = seen(name, comm, stream, count, tag, configured)) return fails(code);
  if (comm == nullptr) return fails(4);
  ncclResult_t error{};
  (void)ncclCommGetAsyncError(comm, &error);
  if (auto* const call = inside.load()) call(name, comm);
  if (group.depth != 0) {
    ++group.operations;
    group.is_in_progress = group.is_in_progress || progress(*comm) == 7;
    return answer(comm->blocking ? 0 : 7);
  }
  launch(1);
  return answer(progress(*comm));
}
}  // namespace

#define FAKE_COUNT(sent, received, count, ...) count
#define FAKE_COUNT_OF(moved) FAKE_COUNT moved
extern "C" {
#pragma GCC visibility push(default)
#pragma GCC diagnostic ignored "-Wunused-parameter"  // the table's, of which one is read
#define FAKE_2(name, since, parameters, names, moved)                                 \
  ncclResult_t nccl##name parameters {                                                \
    return operate("nccl" #name, comm, stream, FAKE_COUNT_OF(moved), nullptr, false); \
  }                                                                                   \
  ncclResult_t nccl##name##Config(RINGMAIN_NCCL_PLAIN parameters,                     \
                                  const ncclCollConfig_t* config) {                   \
    return operate("nccl" #name, comm, stream, FAKE_COUNT_OF(moved), config, true);   \
  }
RINGMAIN_NCCL_TWINNED(FAKE_2)

ncclResult_t ncclBcast(void* buff, std::size_t count, ncclDataType_t datatype, int root,
                       ncclComm_t comm, cudaStream_t stream) {
  if (quiet) return answer(0);
  if (const int code = seen("ncclBcast", comm, stream, count, 0, false)) return fails(code);
  return ncclBroadcast(buff, buff, count, datatype, root, comm, stream);
}
#define FAKE_1(name, parameters, count)                                \
  ncclResult_t nccl##name parameters {                                 \
    return operate("nccl" #name, comm, stream, count, nullptr, false); \
  }
FAKE_1(Send,
       (const void*, std::size_t count, ncclDataType_t, int, ncclComm_t comm, cudaStream_t stream),
       count)
FAKE_1(Recv, (void*, std::size_t count, ncclDataType_t, int, ncclComm_t comm, cudaStream_t stream),
       count)
FAKE_1(PutSignal,
       (const void*, std::size_t count, ncclDataType_t, int, ncclWindow_t, std::size_t, int, int,
        unsigned, ncclComm_t comm, cudaStream_t stream),
       count)
FAKE_1(Signal, (int, int, int, unsigned, ncclComm_t comm, cudaStream_t stream), 0)
FAKE_1(WaitSignal, (int, ncclWaitSignalDesc_t*, ncclComm_t comm, cudaStream_t stream), 0)
ncclResult_t ncclGroupStart() {
  ++group.depth;
  return answer(0);
}
static ncclResult_t leave(bool launches) {
  if (group.depth == 0) return answer(5);
  if (--group.depth != 0) return answer(0);
  const Group all = group;
  group = {};
  if (all.failed != 0) return answer(all.failed);
  if (launches) launch(all.operations);
  return answer(all.is_in_progress ? 7 : 0);
}
ncclResult_t ncclGroupEnd() {
  const int code = quiet ? 0 : seen("ncclGroupEnd");
  const ncclResult_t result = leave(code == 0);
  return code != 0 ? answer(code) : result;
}
ncclResult_t ncclGroupSimulateEnd(ncclSimInfo_t*) {
  (void)seen("ncclGroupSimulateEnd");
  return leave(false);
}

ncclResult_t ncclCommInitRank(ncclComm_t* comm, int nranks, ncclUniqueId, int rank) {
  return init("ncclCommInitRank", comm, nranks, rank, true);
}
ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int nranks, ncclUniqueId, int rank,
                                    ncclConfig_t* config) {
  return init("ncclCommInitRankConfig", comm, nranks, rank, blocks(config));
}
ncclResult_t ncclCommInitRankScalable(ncclComm_t* comm, int nranks, int rank, int, ncclUniqueId*,
                                      ncclConfig_t* config) {
  return init("ncclCommInitRankScalable", comm, nranks, rank, blocks(config));
}
ncclResult_t ncclCommInitAll(ncclComm_t* comm, int ndev, const int*) {
  if (const int code = seen("ncclCommInitAll")) return answer(code);
  for (int i = 0; i < ndev; ++i) comm[i] = take(i, ndev, i, true);
  return answer(0);
}
ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int, ncclComm_t* newcomm,
                           ncclConfig_t* config) {
  if (color != -1) return part("ncclCommSplit", comm, newcomm, 0, 1, config);
  if (const int code = seen("ncclCommSplit", comm)) return fails(code);
  if (comm == nullptr || newcomm == nullptr) return fails(4);
  *newcomm = nullptr;
  return answer(0);
}
ncclResult_t ncclCommShrink(ncclComm_t comm, int*, int count, ncclComm_t* newcomm,
                            ncclConfig_t* config, int) {
  return part("ncclCommShrink", comm, newcomm, 0, comm == nullptr ? 1 : comm->size - count, config);
}
ncclResult_t ncclCommGrow(ncclComm_t comm, int nRanks, const ncclUniqueId*, int rank,
                          ncclComm_t* newcomm, ncclConfig_t* config) {
  if (comm == nullptr) return init("ncclCommGrow", newcomm, nRanks, rank, blocks(config));
  return part("ncclCommGrow", comm, newcomm, comm->rank, nRanks, config);
}
ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  return end("ncclCommFinalize", comm, false);
}
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  return end("ncclCommDestroy", comm, true);
}
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  return end("ncclCommAbort", comm, true);
}
ncclResult_t ncclCommRevoke(ncclComm_t comm, int) {
  return end("ncclCommRevoke", comm, false);
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
  if (comm == nullptr || error == nullptr) return answer(4);
  *error = answer(comm->state);
  return answer(0);
}
ncclResult_t ncclCommCount(const ncclComm_t comm, int* count) {
  if (comm == nullptr) return answer(4);
  *count = comm->size;
  return answer(0);
}
ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int* device) {
  if (comm == nullptr) return answer(4);
  *device = comm->device;
  return answer(0);
}
ncclResult_t ncclCommUserRank(const ncclComm_t comm, int* rank) {
  if (comm == nullptr) return answer(4);
  *rank = comm->rank;
  return answer(0);
}
ncclResult_t ncclGetVersion(int* version) {
  if (version == nullptr) return answer(4);
  *version = 23203;
  return answer(0);
}
ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  if (id == nullptr) return answer(4);
  std::memset(id, 7, sizeof *id);
  return answer(0);
}
const char* ncclGetErrorString(ncclResult_t result) {
  static constexpr const char* kWords[] = {"no error",
                                           "unhandled cuda error",
                                           "unhandled system error",
                                           "internal error",
                                           "invalid argument",
                                           "invalid usage",
                                           "remote process exited or there was a network error",
                                           "NCCL operation in progress",
                                           "timeout"};
  const auto at = static_cast<unsigned>(result);
  return at < std::size(kWords) ? kWords[at] : "unknown result code";
}
const char* ncclGetLastError(ncclComm_t) {
  return "";
}
ncclResult_t ncclMemAlloc(void** memory, std::size_t size) {
  *memory = ::operator new(size);
  return answer(0);
}
ncclResult_t ncclMemFree(void* memory) {
  ::operator delete(memory);
  return answer(0);
}

void fake_nccl_reset() {
  World& all = world();
  const std::lock_guard lock(all.mutex);
  all.seen.clear();
  all.failing.clear();
  all.launched = 0;
  all.leaves_depth = false;
  inside = nullptr;
  quiet = false;
  group = {};
}
std::size_t fake_nccl_seen(const char* name) {
  World& all = world();
  const std::lock_guard lock(all.mutex);
  return static_cast<std::size_t>(std::count_if(
      all.seen.begin(), all.seen.end(),
      [&](const Seen& one) { return name == nullptr || std::strcmp(one.name, name) == 0; }));
}
bool fake_nccl_last(const char* name, Seen* last) {
  World& all = world();
  const std::lock_guard lock(all.mutex);
  const auto found = std::find_if(all.seen.rbegin(), all.seen.rend(), [&](const Seen& one) {
    return std::strcmp(one.name, name) == 0;
  });
  if (found == all.seen.rend()) return false;
  *last = *found;
  return true;
}
bool fake_nccl_at(std::size_t at, Seen* one) {
  World& all = world();
  const std::lock_guard lock(all.mutex);
  if (at >= all.seen.size()) return false;
  *one = all.seen[at];
  return true;
}
std::size_t fake_nccl_launched() {
  const std::lock_guard lock(world().mutex);
  return world().launched;
}
void fake_nccl_fail(const char* name, int result) {
  const std::lock_guard lock(world().mutex);
  world().failing[name] = result;
}
void fake_nccl_leave_depth(bool leaves) {
  world().leaves_depth = leaves;
}
void fake_nccl_settle(void* comm, int result) {
  static_cast<ncclComm*>(comm)->state = result;
}
void fake_nccl_inside(void (*call)(const char*, const void*)) {
  inside = call;
}
std::size_t fake_nccl_communicators() {
  World& all = world();
  const std::lock_guard lock(all.mutex);
  return static_cast<std::size_t>(std::count_if(all.comms.begin(), all.comms.end(),
                                                [](const ncclComm& one) { return one.taken; }));
}
void fake_nccl_quiet(bool now) {
  quiet = now;
}
#pragma GCC visibility pop
}

}  // namespace ringmain::nccl
