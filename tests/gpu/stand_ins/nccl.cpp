// What stands in for NCCL where there is no GPU, so that group `nccl` can be tried as a whole: a
// libnccl.so.2 over the libraries that stand in for CUDA's, which tells the profiler plugin that
// NCCL_PROFILER_PLUGIN names what is known of NCCL (tests/gpu/nccl_rows.py), by the model that
// tests/harness/nccl compares with NCCL's own front end. It moves nothing, and ranks do not meet.
//
// Rules: no call of one rank's collective, of no elements or of a one-sided operation is told; a
// broadcast ends with its call (it is told as an AllGather: the model has no other name); an
// all-to-all is sends and receives; NCCL_P2P_DISABLE=1 with NCCL_SHM_DISABLE=1 has proxies; a
// captured plan is told at each launch if it has proxies or kernels are asked for, else once; of an
// operation on the communicator `abort`, and from the FAKE_NCCL_HANGS_ATth kernel of the process
// on, the kernel never ends. Kernels run on CUDA's stream.
//
// FAKE_NCCL_VERSION (23203) decides what is told; FAKE_NCCL_WINDOWS=1: symmetric memory is there;
// FAKE_NCCL_WRONG=RULE breaks one, which a test must notice.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include <cuda_runtime_api.h>

#include "adapters/sources/nccl/nccl_functions.hpp"
#include "adapters/sources/nccl/nccl_types.hpp"

#include "tests/harness/nccl/model.hpp"
#include "tests/harness/nccl/play.hpp"
#include "tests/harness/nccl/stage.hpp"

namespace told = ringmain::nccl_conformance;

struct ncclComm {
  told::Communicator told;
  std::string name;
  std::unique_ptr<told::Proxy> proxy;
  told::Device device;
  std::unique_ptr<told::KernelWatch> kernels;
  told::Actor* progress = nullptr;
  std::mutex ending;
  bool aborted = false, symmetric = false, by_copies = false;
};

namespace ringmain::nccl {
namespace {

bool is(const char* variable, std::string_view value) {
  const char* const text = std::getenv(variable);
  return text != nullptr && text == value;
}
bool wrong(std::string_view rule) {
  return is("FAKE_NCCL_WRONG", rule);
}
int version() {
  static const int one = [] {
    const char* const text = std::getenv("FAKE_NCCL_VERSION");
    return text == nullptr ? 23203 : std::atoi(text);
  }();
  return one;
}
told::Release release() {
  return version() < 22900   ? told::Release::r2_28
         : version() < 23100 ? told::Release::r2_30
         : version() < 23200 ? told::Release::r2_31
                             : told::Release::r2_32;
}

/// NCCL's front end of this process, and the threads that work for it.
struct World {
  static std::string plugin() {
    const char* const named = std::getenv("NCCL_PROFILER_PLUGIN");
    return named == nullptr ? "none" : named;
  }
  told::Board& board = told::Board::make();
  told::Model front{plugin(), 0, release(), board};
  told::Stage stage{front, board, {.release = release()}};
  const bool profiled = plugin() != "none" && !plugin().empty();
};
World& world() {
  static auto* const one = new World;
  return *one;
}

struct Pending {
  ncclComm* comm;
  cudaStream_t stream;
  told::Task task;
};
struct Group {
  int depth = 0;
  std::vector<Pending> pending;
};
thread_local Group group;

/// A plan whose work is a kernel on a stream, run once or at each launch of a graph.
struct Run {
  ncclComm* comm;
  told::Plan plan;
  bool replayed = false;
};

bool over_network() {
  return is("NCCL_P2P_DISABLE", "1") && is("NCCL_SHM_DISABLE", "1");
}
bool asks_for(const told::Plan& plan, int type) {
  for (const told::Task& task : plan.tasks) {
    if ((task.mask & type) != 0) return true;
  }
  return false;
}
void post_proxies(ncclComm& comm, const told::Plan& plan) {
  if (!over_network() || comm.told.ranks == 1) return;
  comm.progress->post([&comm, plan] {
    comm.proxy->append(plan, {.steps = 1});
    comm.proxy->progress(comm.told.context);
  });
}
bool hangs() {
  static std::atomic<int> kernels{0};
  const char* const first = std::getenv("FAKE_NCCL_HANGS_AT");
  return first != nullptr && ++kernels >= std::atoi(first);
}
/// The GPU's work: its kernel's begin and end are seen by the thread that looks.
void run_kernel(ncclComm& comm, const told::Plan& plan) {
  const std::lock_guard held(comm.ending);
  if (comm.aborted) return;
  comm.progress->post([&comm, plan] {
    comm.kernels->append(plan);
    if (comm.name != "abort" && !hangs()) return comm.kernels->run();
    for (int channel = 0; channel < plan.tasks.front().channels; ++channel)
      comm.device.begin(channel, comm.device.last(channel));
    (void)comm.kernels->look();
  });
}
/// The proxies' work of a plan; as its kernels are to know it: with the handles that it has within.
told::Plan enqueue(ncclComm& comm, told::Plan& plan) {
  told::Plan within;
  told::enqueue(world().front, plan, [&] {
    within = plan;
    post_proxies(comm, plan);
  });
  return within;
}
void on_stream(void* data) {
  auto* const run = static_cast<Run*>(data);
  if (!run->replayed) {
    run_kernel(*run->comm, run->plan);
    delete run;
    return;
  }
  // The graph may be launched again.
  run_kernel(*run->comm, wrong("replays") ? run->plan : enqueue(*run->comm, run->plan));
}

void launch(ncclComm& comm, cudaStream_t stream, told::Plan plan) {
  cudaStreamCaptureStatus status{};
  (void)cudaStreamIsCapturing(stream, &status);
  const bool captured = status == cudaStreamCaptureStatusActive;
  plan.persistent = captured;
  if (!wrong("launch")) told::launch(world().front, plan);
  const bool proxied = over_network() && comm.told.ranks > 1 && asks_for(plan, abi::kProxyOp);
  const bool followed = asks_for(plan, abi::kKernelCh);
  if (captured && (proxied || followed)) {
    (void)cudaLaunchHostFunc(stream, &on_stream, new Run{&comm, std::move(plan), true});
    return;
  }
  told::Plan within = enqueue(comm, plan);
  if (wrong("parents")) within = plan;
  if (!captured) (void)cudaLaunchHostFunc(stream, &on_stream, new Run{&comm, std::move(within)});
}

/// The end of the outermost group: a plan for each communicator.
void launch_all() {
  std::vector<Pending> pending;
  pending.swap(group.pending);
  while (!pending.empty()) {
    ncclComm& comm = *pending.front().comm;
    const cudaStream_t stream = pending.front().stream;
    told::Plan plan;
    plan.communicator = &comm.told;
    plan.stream = reinterpret_cast<std::uint64_t>(stream);
    std::erase_if(pending, [&](Pending& one) {
      if (one.comm != &comm) return false;
      one.task.channels = 2;
      plan.tasks.push_back(std::move(one.task));
      return true;
    });
    launch(comm, stream, std::move(plan));
  }
}

ncclResult_t leave() {
  if (group.depth == 0) return ncclInvalidUsage;
  if (--group.depth != 0) {
    return ncclSuccess;
  }
  if (!world().profiled) return ncclSuccess;
  world().front.group_end_begins();
  launch_all();
  world().front.group_end();
  return ncclSuccess;
}

/// Calls, in the group that there is, or one of their own.
ncclResult_t tell(ncclComm& comm, cudaStream_t stream, std::vector<told::Call> calls,
                  bool has_plan = true) {
  if (!world().profiled) return ncclSuccess;
  cudaStreamCaptureStatus status{};
  (void)cudaStreamIsCapturing(stream, &status);
  const bool own = group.depth == 0;
  if (own) world().front.group_start(false), ++group.depth;
  for (told::Call& one : calls) {
    one.communicator = &comm.told;
    one.stream = reinterpret_cast<std::uint64_t>(stream);
    one.captured = status == cudaStreamCaptureStatusActive;
    told::Task task = world().front.append(one);
    if (comm.by_copies && version() >= 22900) {
      told::CopyEngineCall copy{one, task.api, nullptr};
      world().front.copy_begins(copy);
      world().front.copy_sync(copy);
      world().front.copy_ends(copy);
    } else if (has_plan) {
      group.pending.push_back({&comm, stream, std::move(task)});
    }
  }
  return own ? leave() : ncclSuccess;
}
told::Call call(told::Function function, std::size_t count, int peer = 0) {
  told::Call made;
  made.function = function;
  made.count = count;
  made.peer = peer;
  return made;
}
ncclResult_t collective(ncclComm& comm, cudaStream_t stream, told::Function function,
                        std::size_t count, bool has_plan = true) {
  if (count == 0 && !wrong("nothing")) return ncclSuccess;
  if (comm.told.ranks == 1 && !wrong("alone")) return ncclSuccess;
  const bool untold = comm.symmetric && version() < (comm.by_copies ? 22900 : 23100);
  return tell(comm, stream, {call(function, count)}, has_plan && !untold);
}
ncclResult_t end(ncclComm* comm) {
  {
    const std::lock_guard held(comm->ending);
    if (comm->aborted) return ncclSuccess;
    comm->aborted = true;
  }
  if (!world().profiled) return ncclSuccess;
  comm->progress->wait();
  if (!wrong("finalize")) world().front.finalize(comm->told);
  for (const told::Finding& found : world().board.findings())
    std::fprintf(stderr, "the plugin broke %s: %s\n", found.rule.c_str(), found.text.c_str());
  return ncclSuccess;
}

}  // namespace

extern "C" {
#pragma GCC visibility push(default)
#pragma GCC diagnostic ignored "-Wunused-parameter"  // NCCL's, of which few are read
ncclResult_t ncclGetVersion(int* found) {
  *found = version();
  return ncclSuccess;
}
ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  std::memset(id, 7, sizeof *id);
  return ncclSuccess;
}
const char* ncclGetLastError(ncclComm_t) {
  return "";
}
ncclResult_t ncclCommInitRankConfig(ncclComm_t* made, int ranks, ncclUniqueId, int rank,
                                    ncclConfig_t* config) {
  static std::atomic<std::uint64_t> ids{0xabc};
  auto* const comm = new ncclComm;  // never freed: host functions of graphs may come late
  comm->name = config->commName;
  comm->told.name = comm->name;
  comm->told.id = ++ids;
  comm->told.rank = rank;
  comm->told.ranks = ranks;
  comm->told.nodes = over_network() ? ranks : 1;
  comm->by_copies = config->CTAPolicy == 2;
  (void)cudaSetDevice(0);  // there is a context from here on, as with NCCL
  (void)cudaFree(nullptr);
  World& all = world();
  comm->progress = &all.stage.actor("progress");
  comm->proxy = std::make_unique<told::Proxy>(all.front, 1);
  comm->kernels = std::make_unique<told::KernelWatch>(all.front, comm->device, release());
  if (all.profiled) all.front.init(comm->told);
  *made = comm;
  return ncclSuccess;
}
ncclResult_t ncclCommFinalize(ncclComm_t) {
  return ncclSuccess;
}
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  return end(comm);
}
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  return end(comm);
}
ncclResult_t ncclGroupStart() {
  if (group.depth++ == 0 && world().profiled) world().front.group_start(true);
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
  return leave();
}
ncclResult_t ncclAllReduce(const void*, void*, std::size_t count, ncclDataType_t, ncclRedOp_t,
                           ncclComm_t comm, cudaStream_t stream) {
  return collective(*comm, stream, told::Function::all_reduce, count);
}
ncclResult_t ncclAllGather(const void*, void*, std::size_t count, ncclDataType_t, ncclComm_t comm,
                           cudaStream_t stream) {
  return collective(*comm, stream, told::Function::all_gather, count);
}
ncclResult_t ncclBroadcast(const void*, void*, std::size_t count, ncclDataType_t, int,
                           ncclComm_t comm, cudaStream_t stream) {
  return collective(*comm, stream, told::Function::all_gather, count,
                    version() < 22900 || wrong("broadcast"));
}
ncclResult_t ncclAlltoAll(const void*, void*, std::size_t count, ncclDataType_t, ncclComm_t comm,
                          cudaStream_t stream) {
  std::vector<told::Call> calls;
  for (int peer = 0; peer < comm->told.ranks; ++peer) {
    calls.push_back(call(told::Function::send, count, peer));
    calls.push_back(call(told::Function::recv, count, peer));
  }
  if (wrong("all_to_all")) calls.pop_back();
  return tell(*comm, stream, std::move(calls));
}
ncclResult_t ncclSend(const void*, std::size_t count, ncclDataType_t, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return tell(*comm, stream, {call(told::Function::send, count, peer)});
}
ncclResult_t ncclRecv(void*, std::size_t count, ncclDataType_t, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return tell(*comm, stream, {call(told::Function::recv, count, peer)});
}
ncclResult_t ncclMemAlloc(void** memory, std::size_t) {
  *memory = nullptr;
  return ncclSuccess;
}
ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void*, std::size_t, ncclWindow_t*, int) {
  if (!is("FAKE_NCCL_WINDOWS", "1")) return ncclInvalidUsage;
  comm->symmetric = true;
  return ncclSuccess;
}
ncclResult_t ncclPutSignal(const void*, std::size_t, ncclDataType_t, int, ncclWindow_t, std::size_t,
                           int, int, unsigned, ncclComm_t, cudaStream_t) {
  return ncclSuccess;
}
ncclResult_t ncclWaitSignal(int, ncclWaitSignalDesc_t*, ncclComm_t, cudaStream_t) {
  return ncclSuccess;
}
#pragma GCC visibility pop
}

}  // namespace ringmain::nccl
