#include "tests/adapters/replay/kineto_support.hpp"

#include <stdexcept>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
#include <variant>
#include <zlib.h>

namespace ringmain::replay {

InMemory::InMemory(std::string_view bytes) : fd_(::memfd_create("trace", MFD_CLOEXEC)) {
  if (fd_ < 0) throw std::runtime_error("memfd_create failed");
  path_ = "/proc/self/fd/" + std::to_string(fd_);
  while (!bytes.empty()) {
    const ssize_t put = ::write(fd_, bytes.data(), bytes.size());
    if (put <= 0) throw std::runtime_error("a memory file could not be written");
    bytes.remove_prefix(static_cast<std::size_t>(put));
  }
}

InMemory::~InMemory() {
  ::close(fd_);
}

std::uint64_t resident_bytes_max() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_maxrss) << 10;
}

std::string gzip(std::string_view text) {
  z_stream zip{};
  if (deflateInit2(&zip, 9, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY) != Z_OK) {
    throw std::runtime_error("deflateInit2 failed");
  }
  std::string out(deflateBound(&zip, static_cast<uLong>(text.size())) + 64, '\0');
  zip.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  zip.avail_in = static_cast<uInt>(text.size());
  zip.next_out = reinterpret_cast<Bytef*>(out.data());
  zip.avail_out = static_cast<uInt>(out.size());
  const int code = deflate(&zip, Z_FINISH);
  out.resize(zip.total_out);
  deflateEnd(&zip);
  if (code != Z_STREAM_END) throw std::runtime_error("deflate failed");
  return out;
}

std::string object_trace(const std::vector<std::string>& records, std::string_view members_after) {
  std::string text = "{\"schemaVersion\": 1, \"traceEvents\": [\n";
  for (std::size_t i = 0; i < records.size(); ++i) {
    text += (i == 0 ? "  " : ",\n  ") + records[i];
  }
  return text + "\n]" + std::string(members_after) + "}\n";
}

Reading read_records(const std::string& path, const KinetoOptions& options) {
  Reading reading;
  auto opened = KinetoReader::open(path, options);
  if (!opened) {
    reading.error = opened.error();
    return reading;
  }
  KinetoReader& reader = opened.value();
  KinetoRecord record;
  for (;;) {
    const auto more = reader.next(record);
    if (!more) {
      reading.error = more.error();
      break;
    }
    if (!more.value()) break;
    reading.records.push_back({record.number, record.phase, std::string(record.name),
                               std::string(record.category), std::string(record.process.text),
                               std::string(record.thread.text), record.ts_ns, record.duration_ns});
  }
  reading.counts = reader.counts();
  reading.header = reader.header();
  return reading;
}

Reading read_text(std::string_view text, const KinetoOptions& options) {
  const InMemory file(text);
  return read_records(file.path(), options);
}

Mapping map_trace(const std::string& path, bool keep, const KinetoOptions& options) {
  Mapping mapping;
  auto opened = KinetoTrace::open(path, options);
  if (!opened) {
    mapping.error = opened.error();
    return mapping;
  }
  KinetoTrace& trace = opened.value();
  KinetoMapped mapped;
  for (;;) {
    const auto more = trace.next(mapped);
    if (!more) {
      mapping.error = more.error();
      break;
    }
    if (!more.value()) break;
    const std::string_view channel = std::visit(
        []<class E>(const E&) -> std::string_view { return describe(EventOf<E>{}).name; },
        mapped.event);
    ++mapping.channels[std::string(channel)];
    if (keep) mapping.events.push_back(mapped);
  }
  mapping.lanes = trace.lanes();
  mapping.crowded = trace.crowded();
  mapping.counts = trace.counts();
  return mapping;
}

Mapping map_text(std::string_view text, const KinetoOptions& options) {
  const InMemory file(text);
  return map_trace(file.path(), true, options);
}

}  // namespace ringmain::replay
