#include "bus/core/dump_requests.hpp"

#include <exception>
#include <mutex>
#include <utility>

#include "engine/system/fork.hpp"

namespace ringmain::detail {
namespace {

/// Never destroyed: recorders end after static objects do.
struct Requests {
  struct One {
    std::uint64_t number;  // rising
    std::weak_ptr<const DumpFn> dump;
  };
  engine::ForkMutex mutex{engine::kForkBuses};
  std::uint64_t last = 0;
  std::vector<One> all;

  /// The first that is there still and comes after that one, whose number it sets.
  [[nodiscard]] std::shared_ptr<const DumpFn> after(std::uint64_t& number) noexcept {
    const std::lock_guard lock(mutex);
    for (const One& one : all) {
      if (one.number <= number) continue;
      number = one.number;
      if (auto dump = one.dump.lock()) return dump;
    }
    return nullptr;
  }
};
Requests& requests() {
  static Requests& them = *new Requests;
  return them;
}

}  // namespace

DumpRequest::DumpRequest(DumpFn dump) : dump_(std::make_shared<const DumpFn>(std::move(dump))) {
  Requests& them = requests();
  const std::lock_guard lock(them.mutex);
  std::erase_if(them.all, [](const auto& one) { return one.dump.expired(); });
  them.all.push_back({++them.last, dump_});
}

void dump_all(std::vector<Dumped>& written) noexcept {
  Requests& them = requests();
  std::uint64_t number = 0;
  while (const auto dump = them.after(number)) {
    try {
      (*dump)(written);
    } catch (const std::exception&) {  // it had no memory to say what it wrote
    }
  }
}

}  // namespace ringmain::detail
