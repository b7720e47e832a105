// Coming from a mutex and a vector of functions: the same program before and after.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include <ringmain/bus/bus.hpp>

struct Allocation {
  std::uint64_t bytes;
};
constexpr auto describe(ringmain::EventOf<Allocation>) {
  return ringmain::event("memory.allocation",
                         ringmain::field<&Allocation::bytes>("bytes", ringmain::Unit::bytes));
}

namespace before {

class Registry {
 public:
  using Callback = std::function<void(const Allocation&)>;
  int add(Callback callback) {
    const std::lock_guard lock(mutex_);
    callbacks_.emplace_back(++last_, std::move(callback));
    return last_;
  }
  void remove(int id) {
    const std::lock_guard lock(mutex_);
    std::erase_if(callbacks_, [id](const auto& one) { return one.first == id; });
  }
  void fire(const Allocation& event) {
    const std::lock_guard lock(mutex_);  // every publisher waits for every callback of every other
    for (const auto& [id, callback] : callbacks_) callback(event);
  }

 private:
  std::mutex mutex_;
  std::vector<std::pair<int, Callback>> callbacks_;
  int last_ = 0;
};

std::uint64_t count() {
  Registry allocations;
  std::uint64_t bytes = 0;
  const int id = allocations.add([&bytes](const Allocation& e) { bytes += e.bytes; });
  std::jthread([&allocations] {
    for (int i = 0; i < 1000; ++i) allocations.fire({512});
  }).join();
  allocations.remove(id);
  return bytes;
}

}  // namespace before

namespace after {

std::uint64_t count() {
  ringmain::Bus bus;
  auto& allocations = bus.channel<Allocation>();
  std::uint64_t bytes = 0;
  auto counting = allocations.subscribe([&bytes](const Allocation& e) { bytes += e.bytes; });
  std::jthread([&allocations] {
    for (int i = 0; i < 1000; ++i) allocations.post({512});
  }).join();
  (void)bus.flush(std::chrono::seconds(10));  // callbacks run on a worker: wait for them
  counting.reset();                           // from here on `bytes` is nobody's but ours
  return bytes;
}

}  // namespace after

int main() {
  const std::uint64_t a = before::count();
  const std::uint64_t b = after::count();
  std::printf("before %llu bytes, after %llu bytes\n", static_cast<unsigned long long>(a),
              static_cast<unsigned long long>(b));
  return a == b ? 0 : 1;
}
