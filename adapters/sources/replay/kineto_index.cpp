#include "adapters/sources/replay/kineto_index.hpp"

#include <algorithm>
#include <string>

#include "events/replay.hpp"

namespace ringmain::replay {

std::int32_t device_number(std::int64_t recorded) noexcept {
  constexpr std::int64_t kDevicesMax = 1 << 16;
  return recorded >= 0 && recorded < kDevicesMax ? static_cast<std::int32_t>(recorded) : kNoDevice;
}

std::int32_t device_of(const KinetoRecord& record) noexcept {
  const std::int32_t said = device_number(record.args.device);
  if (said >= 0) return said;
  return record.process.numeric ? device_number(record.process.number) : kNoDevice;
}

KinetoIndex::KinetoIndex(const KinetoOptions& options)
    : lanes(static_cast<std::size_t>(
          std::clamp<std::uint64_t>(options.memory_max / 4096, 1024, 65536))),
      bytes_max(options.memory_max / 4),
      names_max(static_cast<std::size_t>(
          std::clamp<std::uint64_t>(options.memory_max / 2048, 1024, 65536))) {}

std::optional<Error> KinetoIndex::read(KinetoReader& reader, std::optional<Error>& fault) {
  KinetoRecord record;
  bool timed = false;
  for (;;) {
    const auto more = reader.next(record);
    if (!more) fault = more.error();
    if (!more || !more.value()) break;
    if (record.has_time && !timed) {
      first_ns = record.ts_ns;
      timed = true;
    }
    const KinetoSide side = side_of(record.category);
    const bool gpu = side == KinetoSide::gpu;
    const std::int32_t device = gpu ? std::max(device_of(record), 0) : kNoDevice;
    const std::uint32_t thread = lanes.note(record, device);
    collectives.note(record, side, thread, device);
    if (gpu && record.category == "cuda_sync") syncs.note(record.args, device);
    if (collectives.bytes_held() + syncs.bytes_held() > bytes_max) {
      return Error{Error::Code::no_memory,
                   "the launches and collectives of this trace need more than " +
                       std::to_string(bytes_max >> 20) +
                       " MiB to be matched; allow it more memory (--memory-max)."};
    }
  }
  header = reader.header();
  records = reader.counts().read;
  collectives.match(header.ranks);
  syncs.sort();
  lanes.number();
  return std::nullopt;
}

}  // namespace ringmain::replay
