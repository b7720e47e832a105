// What was a plugin told, and by which handle did it take it? For an oracle that knows what must
// come of it.
//
// Each thread writes a list of its own; nothing is shared while a scenario plays, so that the log
// orders no two threads. It is read when all threads are done.
#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "adapters/sources/nccl/nccl_profiler_abi.hpp"

namespace ringmain::nccl_conformance {

class CallLog {
 public:
  struct Begin {
    nccl::abi::DescriptorV7 descriptor;  // as the newest front end has it; texts are NCCL's own
    void* context;
    void* handle;  // null: the plugin dropped it
    bool foreign;
  };
  struct Communicator {
    std::uint64_t id;
    int rank;
  };

  void opened(void* context, Communicator who) {
    const std::lock_guard guard(lock_);
    communicators_[context] = who;
  }
  void began(const nccl::abi::DescriptorV7& descriptor, void* context, void* handle, bool foreign) {
    mine().begins.push_back({descriptor, context, handle, foreign});
  }
  void ended(void* handle) { mine().ends.push_back(handle); }
  /// A step is in a state that only sends have.
  void sent(void* handle) { mine().sends.push_back(handle); }

  // Once all threads are done.
  [[nodiscard]] std::vector<Begin> begins() const;
  [[nodiscard]] std::vector<void*> ends() const { return all(&OfThread::ends); }
  [[nodiscard]] std::vector<void*> sends() const { return all(&OfThread::sends); }
  [[nodiscard]] const std::map<void*, Communicator>& communicators() const {
    return communicators_;
  }

 private:
  struct OfThread {
    std::vector<Begin> begins;
    std::vector<void*> ends, sends;
  };
  OfThread& mine();
  [[nodiscard]] std::vector<void*> all(std::vector<void*> OfThread::*which) const;

  std::mutex lock_;  // of the two below
  std::deque<OfThread> threads_;
  std::map<void*, Communicator> communicators_;
};

}  // namespace ringmain::nccl_conformance
