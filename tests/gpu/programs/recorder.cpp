// Which callbacks does CUPTI make for a program, in which order, nested how, and with what?
//
// The driver loads this library into a program by CUDA_INJECTION64_PATH. It subscribes to every
// call of the driver and the runtime, and to the notices of resources and synchronizations, and
// when the program ends it writes what it saw into the file named by GPU_RECORDING: one line for
// each callback, in the order of their coming, with numbers in place of addresses. recording.hpp
// says what the columns are. ringmain's source has no part in it, but its table of calls.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <map>
#include <mutex>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

#include "adapters/sources/cuda/cupti_abi.hpp"

#include "tests/gpu/programs/recording.hpp"

namespace gpu {
namespace {

namespace abi = ringmain::cuda::abi;
using ringmain::cuda::Arguments;
using ringmain::cuda::CallRow;

constexpr abi::Domain kSynchronize = 4;

/// One callback, with raw addresses: they get their numbers at the end.
struct Seen {
  std::uint32_t site = 0, domain = 0, cbid = 0, depth = 0, context = 0, correlation = 0;
  int thread = 0, result = 0;
  const char* name = "-";
  const char* of = "";  // the class of its handle
  Arguments arguments;
};

struct Recorder {
  void* library = nullptr;
  abi::Subscriber subscriber = nullptr;
  std::uint32_t version = 0;
  std::mutex mutex;
  std::vector<Seen> seen;
};

/// Never destroyed: CUDA may call back while the program's statics are.
Recorder& recorder() {
  static auto* const recorder = new Recorder;
  return *recorder;
}

template <class Function>
Function* find(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(recorder().library, name));
}

thread_local std::uint32_t depth = 0;

void keep(const Seen& seen) {
  const std::lock_guard lock(recorder().mutex);
  recorder().seen.push_back(seen);
}

void on_callback(void*, abi::Domain domain, std::uint32_t cbid, const void* what) {
  Seen seen;
  seen.domain = static_cast<std::uint32_t>(domain);
  seen.cbid = cbid;
  seen.thread = static_cast<int>(::gettid());
  if (domain != abi::kDriver && domain != abi::kRuntime) {
    seen.site = kNotice;
    seen.depth = depth;
    if (what != nullptr) {
      // In both domains the context stands first and the stream second.
      const auto* const data = static_cast<const abi::ResourceData*>(what);
      if (domain == kSynchronize || cbid == 3 || cbid == 4) {
        seen.arguments.stream = reinterpret_cast<std::uint64_t>(data->stream);
      }
    }
    return keep(seen);
  }
  const auto& call = *static_cast<const abi::CallData*>(what);
  seen.site = static_cast<std::uint32_t>(call.site);
  seen.name = call.function;
  seen.context = call.context_uid;
  seen.correlation = call.correlation_id;
  const bool leaving = call.site == abi::kExit;
  if (leaving && call.result != nullptr) std::memcpy(&seen.result, call.result, sizeof seen.result);
  // Where it came to be heard in the middle of a call, there is an exit without an entry.
  seen.depth = leaving ? depth : depth + 1;
  if (!leaving) ++depth;
  if (leaving && depth > 0) --depth;
  const auto call_domain = static_cast<ringmain::cuda::CallDomain>(domain);
  if (const CallRow* row = ringmain::cuda::call_of(call_domain, cbid, recorder().version)) {
    seen.of = class_of(*row);
    seen.arguments = ringmain::cuda::read_arguments(*row, call.params, leaving && seen.result == 0);
  }
  keep(seen);
}

/// Small numbers for addresses, in the order in which they first appear.
class Numbers {
 public:
  std::string of(const std::string& kind, std::uint64_t address) {
    if (address <= 2) return std::to_string(address);  // none, or a default stream
    auto& known = numbers_[kind];
    return kind + ':' + std::to_string(known.try_emplace(address, known.size() + 1).first->second);
  }

 private:
  std::map<std::string, std::map<std::uint64_t, std::size_t>> numbers_;
};

void write_down(std::FILE* file) {
  Numbers numbers;
  std::fprintf(file, "%s\n# cupti %u\n", kFirstLine, recorder().version);
  for (const Seen& one : recorder().seen) {
    const Arguments& given = one.arguments;
    const std::string thread = numbers.of("thread", static_cast<std::uint64_t>(one.thread));
    const std::string handle = one.of[0] == '\0' ? "-" : numbers.of(one.of, given.handle);
    const std::string stream =
        given.stream == ringmain::cuda::kNoStream ? "-" : numbers.of("stream", given.stream);
    std::fprintf(file, "%s %s %u %u %u %s %d %s %s %llu %u %d %u %u\n", kSites[one.site],
                 thread.c_str() + sizeof "thread", one.depth, one.domain, one.cbid, one.name,
                 one.result, handle.c_str(), stream.c_str(),
                 static_cast<unsigned long long>(given.bytes), given.flags, given.priority,
                 one.correlation, one.context);
  }
}

void finish() {
  if (auto* const leave = find<abi::UnsubscribeFn>("cuptiUnsubscribe")) {
    leave(recorder().subscriber);
  }
  const std::lock_guard lock(recorder().mutex);
  const char* const name = std::getenv("GPU_RECORDING");
  std::FILE* const file = name == nullptr ? nullptr : std::fopen(name, "w");
  if (file == nullptr) return;
  write_down(file);
  if (std::fclose(file) != 0) std::perror("the recording");
}

bool refuse(const char* why, int result) {
  std::fprintf(stderr, "nothing is recorded: %s (%d)\n", why, result);
  return false;
}

bool subscribe() {
  Recorder& r = recorder();
  for (const char* const name : {"libcupti.so.13", "libcupti.so.12"}) {
    if (r.library == nullptr) r.library = ::dlopen(name, RTLD_NOW);
  }
  if (r.library == nullptr) return refuse("libcupti.so is not found", 0);
  auto* const version = find<abi::GetVersionFn>("cuptiGetVersion");
  auto* const join = find<abi::SubscribeFn>("cuptiSubscribe");
  auto* const enable = find<abi::EnableCallbackFn>("cuptiEnableCallback");
  auto* const name_of = find<abi::GetCallbackNameFn>("cuptiGetCallbackName");
  if (version == nullptr || join == nullptr || enable == nullptr || name_of == nullptr) {
    return refuse("functions are missing from libcupti.so", 0);
  }
  version(&r.version);
  r.seen.reserve(1 << 16);
  if (const int result = join(&r.subscriber, on_callback, nullptr); result != 0) {
    return refuse("cuptiSubscribe", result);
  }
  std::atexit(finish);
  for (const abi::Domain domain : {abi::kDriver, abi::kRuntime}) {
    // No version has this many, and none leaves out a number that a name was given.
    for (std::uint32_t cbid = 1; cbid < 2000; ++cbid) {
      const char* name = nullptr;
      if (name_of(domain, cbid, &name) == 0) enable(1, r.subscriber, domain, cbid);
    }
  }
  for (std::uint32_t cbid = 1; cbid <= 25; ++cbid) enable(1, r.subscriber, abi::kResource, cbid);
  for (std::uint32_t cbid = 1; cbid <= 2; ++cbid) enable(1, r.subscriber, kSynchronize, cbid);
  return true;
}

}  // namespace
}  // namespace gpu

extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  static const bool subscribed = gpu::subscribe();
  static_cast<void>(subscribed);
  return 1;
}
