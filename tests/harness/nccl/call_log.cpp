#include "tests/harness/nccl/call_log.hpp"

namespace ringmain::nccl_conformance {

CallLog::OfThread& CallLog::mine() {
  thread_local CallLog* of = nullptr;
  thread_local OfThread* own = nullptr;
  if (of != this) {
    const std::lock_guard guard(lock_);
    own = &threads_.emplace_back();
    of = this;
  }
  return *own;
}

std::vector<CallLog::Begin> CallLog::begins() const {
  std::vector<Begin> all;
  for (const OfThread& one : threads_) all.insert(all.end(), one.begins.begin(), one.begins.end());
  return all;
}

std::vector<void*> CallLog::all(std::vector<void*> OfThread::*which) const {
  std::vector<void*> all;
  for (const OfThread& one : threads_)
    all.insert(all.end(), (one.*which).begin(), (one.*which).end());
  return all;
}

}  // namespace ringmain::nccl_conformance
