// A program that has wait counters as PyTorch has them: looked up once under their one name, each
// key offered once under a lock, begun and ended on any thread.
//
//   wait_host WAITS [COMMAND]     WAITS per thread and key; then the shell's COMMAND
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace {

// In this program's own words: it is not compiled with ringmain's.
struct Backend {
  void* self;
  std::intptr_t (*start)(void*, std::int64_t);
  void (*stop)(void*, std::int64_t, std::intptr_t);
  void (*destroy)(void*);
};
using Init = void (*)(Backend*, const char*, std::size_t);

std::int64_t now_us() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

Backend* backend_of(const std::string& key) {
  static std::mutex mutex;
  static std::map<std::string, Backend> known;
  static const auto init = reinterpret_cast<Init>(
      ::dlsym(RTLD_DEFAULT, "c10_monitor_wait_counter_dynamic_backend_init_v1"));
  const std::lock_guard lock(mutex);
  const auto [at, fresh] = known.try_emplace(key, Backend{});
  if (fresh && init != nullptr) init(&at->second, key.data(), key.size());
  return &at->second;
}

void wait_on(const std::string& key, int times) noexcept {
  for (int i = 0; i < times; ++i) {
    Backend* const backend = backend_of(key);
    if (backend->self == nullptr) continue;
    const std::intptr_t outer = backend->start(backend->self, now_us());
    const std::intptr_t inner = backend->start(backend->self, now_us());
    backend->stop(backend->self, now_us(), outer);  // waits on a key overlap freely
    backend->stop(backend->self, now_us(), inner);
  }
}

}  // namespace

int main(int count, char** words) {
  const int waits = count > 1 ? std::atoi(words[1]) : 1;
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([waits] {
      wait_on("pytorch.wait_counter.dynamo_compile", waits);
      wait_on("pytorch.wait_counter.c10d.new_group", waits);
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (waits > 0) {
    std::printf("%s\n", backend_of("pytorch.wait_counter.dynamo_compile")->self != nullptr
                            ? "heard"
                            : "not heard");
    std::fflush(stdout);
  }
  return count > 2 ? std::system(words[2]) : 0;
}
