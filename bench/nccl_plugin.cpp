// A profiler plugin of somebody else's, for the question of what coming behind ringmain's costs it:
// a record of each operation, taken from a list and put into a ring under a lock, with the time of
// both ends. It is as much as NVIDIA's Inspector does in a callback, and no more.
#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "engine/system/clock.hpp"

#include "adapters/sources/nccl/nccl_profiler_abi.hpp"

namespace {

namespace abi = ringmain::nccl::abi;

struct Record {
  Record* next = nullptr;
  std::int64_t began_ns = 0, ended_ns = 0;
  std::uint64_t sequence = 0, count = 0;
};

class Recorder {
 public:
  Recorder() {
    for (Record& one : records_) give_back(one);
  }
  Record* begin(const abi::DescriptorV7& what) {
    const std::lock_guard lock(mutex_);
    Record* const one = free_;
    if (one == nullptr) return nullptr;
    free_ = one->next;
    one->began_ns = ringmain::engine::now_ns();
    one->sequence = what.coll.seq_number;
    one->count = what.coll.count;
    return one;
  }
  void end(Record& one) {
    const std::lock_guard lock(mutex_);
    one.ended_ns = ringmain::engine::now_ns();
    done_[ended_++ % done_.size()] = one;
    give_back(one);
  }

 private:
  void give_back(Record& one) {
    one.next = free_;
    free_ = &one;
  }

  std::mutex mutex_;
  std::array<Record, 1024> records_{}, done_{};
  Record* free_ = nullptr;
  std::size_t ended_ = 0;
};
Recorder recorder;

abi::Result init(void** context, std::uint64_t, int* mask, const char*, int, int, int,
                 abi::Logger) {
  *context = &recorder;
  *mask = abi::kColl;
  return abi::kSuccess;
}
abi::Result start(void* context, void** handle, abi::DescriptorV7* what) {
  *handle = static_cast<Recorder*>(context)->begin(*what);
  return abi::kSuccess;
}
abi::Result stop(void* handle) {
  if (handle != nullptr) recorder.end(*static_cast<Record*>(handle));
  return abi::kSuccess;
}
abi::Result record(void*, abi::State, abi::StateArgs*) {
  return abi::kSuccess;
}
abi::Result finalize(void*) {
  return abi::kSuccess;
}

}  // namespace

extern "C" {
[[gnu::visibility("default")]] extern abi::TableV7 ncclProfiler_v7;
abi::TableV7 ncclProfiler_v7{"recorder", &init, &start, &stop, &record, &finalize};
}
