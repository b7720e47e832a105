// What did this program ask of CUDA? It writes it down itself, a JSON line for each call.
//
// The lines have the form of the fake libraries' log (tests/adapters/cuda/fakes), so one script
// compares either with what was heard. The file is named by GPU_LEDGER; without it nothing is
// written. Calls of one thread are in order; `n` orders those of all.
#pragma once
#include <atomic>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <unistd.h>

namespace gpu {

constexpr std::uint64_t kNoStream = ~std::uint64_t{0};

struct Deed {
  std::uint64_t handle = 0, bytes = 0;
  std::uint64_t stream = kNoStream;
  unsigned flags = 0;
  int priority = 0;
};

/// The lines of one thread; they are written when it ends.
class Ledger {
 public:
  ~Ledger() {
    const char* const name = std::getenv("GPU_LEDGER");
    if (name == nullptr || lines_.empty()) return;
    static std::mutex mutex;
    const std::lock_guard lock(mutex);
    std::FILE* const file = std::fopen(name, "a");
    if (file == nullptr || std::fwrite(lines_.data(), 1, lines_.size(), file) != lines_.size() ||
        std::fclose(file) != 0) {
      std::perror("the ledger");
      std::_Exit(3);
    }
  }
  void add(int domain, const char* name, int result, const Deed& deed) {
    static std::atomic<std::uint64_t> calls{0};
    char stream[32] = "null";
    if (deed.stream != kNoStream) {
      std::snprintf(stream, sizeof stream, "\"0x%" PRIx64 "\"", deed.stream);
    }
    char line[512];
    std::snprintf(line, sizeof line,
                  "{\"n\":%" PRIu64
                  ",\"pid\":%d,\"tid\":%d,\"depth\":1,\"domain\":%d,\"cbid\":0,\"name\":\"%s\","
                  "\"result\":%d,\"handle\":\"0x%" PRIx64 "\",\"stream\":%s,\"bytes\":%" PRIu64
                  ",\"flags\":%u,\"priority\":%d}\n",
                  ++calls, static_cast<int>(::getpid()), static_cast<int>(::gettid()), domain, name,
                  result, deed.handle, stream, deed.bytes, deed.flags, deed.priority);
    lines_ += line;
  }

 private:
  std::string lines_;
};

inline Ledger& ledger() {
  thread_local Ledger mine;
  return mine;
}

template <class T>
std::uint64_t number(T* pointer) {
  return reinterpret_cast<std::uint64_t>(pointer);
}
inline std::uint64_t number(std::uint64_t value) {
  return value;
}

/// The calling thread's default stream is a stream of its own in programs that are compiled so.
template <class Stream>
std::uint64_t stream_of(Stream stream) {
#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
  return number(stream) == 0 ? 2 : number(stream);
#else
  return number(stream);
#endif
}

/// A call of the runtime (2) or the driver (1) whose result must be 0. `name` is what was called.
inline void must(int domain, const char* name, int result, const Deed& deed) {
  ledger().add(domain, name, result, deed);
  if (result == 0) return;
  std::fprintf(stderr, "%s answered %d\n", name, result);
  std::exit(4);
}

}  // namespace gpu
