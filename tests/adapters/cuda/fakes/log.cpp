#include "tests/adapters/cuda/fakes/log.hpp"

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <unistd.h>

namespace ringmain::fake {
namespace {

int log_file() {
  static const int file = [] {
    const char* name = std::getenv("FAKE_CUDA_LOG");
    return name == nullptr ? -1 : ::open(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  }();
  return file;
}

}  // namespace

void write_line(const Call& call, int result) {
  if (log_file() < 0) return;
  char stream[32] = "null";
  if (call.deed.stream != kNone) {
    std::snprintf(stream, sizeof stream, "\"0x%" PRIx64 "\"", call.deed.stream);
  }
  char line[512];
  const int size = std::snprintf(
      line, sizeof line,
      "{\"n\":%" PRIu64
      ",\"pid\":%d,\"tid\":%d,\"depth\":%u,\"domain\":%d,\"cbid\":%u,\"name\":\"%s\",\"result\":%d,"
      "\"context\":%u,\"handle\":\"0x%" PRIx64 "\",\"stream\":%s,\"bytes\":%" PRIu64
      ",\"flags\":%u,\"priority\":%d,\"graph\":\"0x%" PRIx64 "\",\"forbidden\":%s}\n",
      call.order, static_cast<int>(::getpid()), static_cast<int>(::gettid()), call.depth,
      call.row.domain, call.row.cbid, call.row.function, result, call.context_uid, call.deed.handle,
      stream, call.deed.bytes, call.deed.flags, call.deed.priority, call.deed.graph,
      call.forbidden ? "true" : "false");
  // One write for a line, so that threads and processes do not mix theirs. What the disk does not
  // take is missing, and who compares will say so.
  [[maybe_unused]] const auto written = ::write(log_file(), line, static_cast<std::size_t>(size));
}

}  // namespace ringmain::fake
