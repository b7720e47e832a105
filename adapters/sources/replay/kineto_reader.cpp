#include "adapters/sources/replay/kineto_reader.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace ringmain::replay {

std::string_view to_string(Skip reason) noexcept {
  switch (reason) {
    case Skip::none:
      return "none";
    case Skip::not_an_object:
      return "not_an_object";
    case Skip::bad_json:
      return "bad_json";
    case Skip::bad_utf8:
      return "bad_utf8";
    case Skip::too_large:
      return "too_large";
    case Skip::too_deep:
      return "too_deep";
    case Skip::no_phase:
      return "no_phase";
    case Skip::unknown_phase:
      return "unknown_phase";
    case Skip::bad_timestamp:
      return "bad_timestamp";
    case Skip::bad_duration:
      return "bad_duration";
    case Skip::negative_duration:
      return "negative_duration";
    case Skip::count:
      break;
  }
  return "";
}

Result<KinetoReader> KinetoReader::open(const std::string& path, const KinetoOptions& options,
                                        bool again) {
  if (options.memory_max < KinetoOptions::kMemoryMin) {
    return Error{Error::Code::refused, "reading a trace takes at least " +
                                           std::to_string(KinetoOptions::kMemoryMin >> 20) +
                                           " MiB; allow it more memory than " +
                                           std::to_string(options.memory_max) + " bytes."};
  }
  auto bytes = KinetoBytes::open(path, options, again);
  if (!bytes) return bytes.error();
  return KinetoReader(RecordSplitter(std::move(bytes).value(), options));
}

Result<bool> KinetoReader::next(KinetoRecord& record) {
  for (;;) {
    RecordText split;
    const auto more = splitter_.next(split);
    if (!more || !more.value()) return more;
    Skip skip = split.skip == Skip::none ? parser_.parse(split.text, record) : split.skip;
    if (skip == Skip::none && !rebase(record)) skip = Skip::bad_timestamp;
    ++counts_.read;
    record.number = counts_.read;
    if (skip == Skip::none) return true;
    ++counts_.skipped[static_cast<std::size_t>(skip)];
  }
}

/// False where the sum is beyond what 64 bits hold.
bool KinetoReader::rebase(KinetoRecord& record) const noexcept {
  if (base_ns_ == 0) return true;
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  if (record.ts_ns > kMax - record.duration_ns - base_ns_) return false;
  record.ts_ns += base_ns_;
  return true;
}

void KinetoReader::rewind(std::int64_t base_ns) {
  base_ns_ = std::max<std::int64_t>(base_ns, 0);
  splitter_.rewind();
  counts_ = {};
}

KinetoHeader KinetoReader::header() const {
  KinetoHeader header;
  for (const TopMember& member : splitter_.members()) {
    if (member.key == "baseTimeNanoseconds") {
      std::int64_t base = 0;
      if (parse_integer(member.text, base) && base > 0) header.base_ns = base;
    } else if (member.key == "distributedInfo") {
      header.ranks = parse_distributed_info(member.text);
    }
  }
  return header;
}

}  // namespace ringmain::replay
