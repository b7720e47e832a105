#include "bus/core/dump_requests.hpp"

#include <mutex>
#include <utility>

#include "engine/system/fork.hpp"

namespace ringmain::detail {
namespace {

/// Never destroyed: recorders end after static objects do.
struct Requests {
  engine::ForkMutex mutex{engine::kForkBuses};
  std::vector<std::weak_ptr<const DumpFn>> all;
};
Requests& requests() {
  static Requests& them = *new Requests;
  return them;
}

}  // namespace

DumpRequest::DumpRequest(DumpFn dump) : dump_(std::make_shared<const DumpFn>(std::move(dump))) {
  Requests& them = requests();
  const std::lock_guard lock(them.mutex);
  std::erase_if(them.all, [](const auto& one) { return one.expired(); });
  them.all.push_back(dump_);
}

std::vector<Dumped> dump_all() {
  std::vector<std::weak_ptr<const DumpFn>> all;
  {
    Requests& them = requests();
    const std::lock_guard lock(them.mutex);
    all = them.all;
  }
  std::vector<Dumped> written;
  for (const auto& one : all) {
    if (const auto dump = one.lock()) (*dump)(written);
  }
  return written;
}

}  // namespace ringmain::detail
