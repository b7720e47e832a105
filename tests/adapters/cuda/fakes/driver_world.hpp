// What does the fake driver know? Its contexts, handles and memory, under one mutex that nothing is
// called under. A handle that was given back comes again soon, as a real one does.
#pragma once
#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tests/adapters/cuda/fakes/driver_work.hpp"
#include "tests/adapters/cuda/fakes/served.hpp"

namespace ringmain::fake {

struct Context {
  std::uint32_t uid = 0;
  CUdevice device = 0;
  std::atomic<bool> live{false};
  std::atomic<int> broken{0};  // what its calls answer once an error has ended its work
  bool primary = false;
};

/// Handles of one kind: addresses that nothing lies at, the last one given back first.
template <class T>
class Slots {
 public:
  explicit Slots(std::uint64_t base) : base_(base) {}
  std::uint64_t make(T what) {
    std::size_t place = all_.size();
    if (free_.empty()) {
      all_.emplace_back();
    } else {
      place = free_.back();
      free_.pop_back();
    }
    all_[place] = {std::move(what), true};
    return base_ + place * kStep;
  }
  /// Null: no such handle lives.
  T* find(std::uint64_t handle) {
    const std::uint64_t place = (handle - base_) / kStep;
    const bool ours = handle >= base_ && (handle - base_) % kStep == 0 && place < all_.size();
    return ours && all_[place].second ? &all_[place].first : nullptr;
  }
  bool give_back(std::uint64_t handle) {
    if (find(handle) == nullptr) return false;
    const std::size_t place = (handle - base_) / kStep;
    all_[place].second = false;
    free_.push_back(place);
    return true;
  }
  template <class F>
  void for_each(F f) {
    for (auto& [what, live] : all_) {
      if (live) f(what);
    }
  }
  /// Those of a context that ends.
  void give_back_of(const Context* context) {
    for (std::size_t place = 0; place < all_.size(); ++place) {
      if (all_[place].second && all_[place].first.context == context) {
        give_back(base_ + place * kStep);
      }
    }
  }

 private:
  static constexpr std::uint64_t kStep = 64;
  std::uint64_t base_;
  std::deque<std::pair<T, bool>> all_;  // and whether it lives
  std::vector<std::size_t> free_;
};

struct Event {
  const Context* context = nullptr;
  std::uint32_t flags = 0;
  std::shared_ptr<Mark> mark = std::make_shared<Mark>();
};
struct Stream {
  const Context* context = nullptr;
  std::uint64_t id = 0;  // never another stream's
  std::uint32_t flags = 0;
  std::shared_ptr<Work> work;
  bool capturing = false;
  bool invalidated = false;  // the capture is of no use any more
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  std::thread::id by{};  // who captures
  std::vector<Op> captured;
};
struct Graph {
  const Context* context = nullptr;
  std::vector<Op> nodes;  // in the order in which they came
};
struct GraphExec {
  const Context* context = nullptr;
  std::uint64_t graph = 0;
  std::vector<Op> nodes;
};
struct Array {
  const Context* context = nullptr;
  bool mipmapped = false;
};

enum class MemoryClass { device, host, registered, managed, ipc, reserved, mapped };
struct Block {
  MemoryClass kind = MemoryClass::device;
  std::uint64_t bytes = 0;
  const Context* context = nullptr;
};

constexpr std::uint64_t kDeviceBytes = 80ULL << 30;

struct World {
  std::mutex mutex;
  bool initialized = false;
  int devices = 1;
  std::deque<Context> contexts;  // addresses stay; a context's place is never used again
  Context* primary = nullptr;
  unsigned primary_users = 0;
  Slots<Event> events{0x550000000000};
  Slots<Stream> streams{0x560000000000};
  Slots<Graph> graphs{0x570000000000};
  Slots<GraphExec> execs{0x580000000000};
  Slots<Array> arrays{0x590000000000};
  Slots<Block> physical{0x5A0000000000};            // cuMemCreate's
  std::unordered_map<std::uint64_t, Block> memory;  // by address
  std::map<std::pair<MemoryClass, std::uint64_t>, std::vector<std::uint64_t>> free_memory;
  std::uint64_t next_address = 0x7f4000000000;
  std::uint64_t used_bytes = 0;
  std::uint64_t last_stream_id = 16;
  std::map<std::uint64_t, std::shared_ptr<Work>> default_works;  // by what default_stream() says
  std::map<int, int> attributes;                                 // that a test has told
};
World& world();

/// The queue of a stream, also of a default one; null: no such stream. `world().mutex` is held.
std::shared_ptr<Work> work_of(std::uint64_t stream);
/// The id of a default stream of the current context: 1, or this thread's.
std::uint64_t default_stream(std::uint64_t stream);
/// What cuDeviceGetAttribute() says.
int attribute_of(int attribute);
/// May this thread ask how far work has come? Who may not spoils the captures that forbid it.
/// `world().mutex` is held.
bool spoils_captures();
/// This thread's, as cuThreadExchangeStreamCaptureMode() changes it.
CUstreamCaptureMode& capture_mode();

/// This thread's, or null.
Context* current_context();
void set_current_context(Context* context);

/// What CUPTI tells beside calls, in these domains.
enum : int { kResources = 3, kSynchronizations = 4 };
void raise_notice(int domain, std::uint32_t cbid, void* context, void* stream);

/// 34, 3, 201 or what broke the context: why no call of the driver's may go on. 0: it may.
CUresult usable();

template <class Served, class Body>
CUresult driver_call(typename Served::Params params, Body body) {
  return static_cast<CUresult>(serve<Served>(params, [&](Deed& deed) -> CUresult {
    const CUresult why_not = usable();
    return why_not != CUDA_SUCCESS ? why_not : body(deed);
  }));
}

template <class H>
std::uint64_t number(H handle) {
  return static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(handle));
}
inline std::uint64_t number(CUdeviceptr handle) {
  return handle;
}
template <class H>
H handle_of(std::uint64_t number) {
  return reinterpret_cast<H>(static_cast<std::uintptr_t>(number));
}

}  // namespace ringmain::fake
