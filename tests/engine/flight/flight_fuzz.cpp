// Is there a file that makes the reader of the flight recorder crash, take more than it may, or say
// something impossible?
//
// A libFuzzer target, built with clang and -DRINGMAIN_BUILD_FUZZERS=ON:
//   flight_fuzz -max_total_time=60 -max_len=65536 CORPUS      its corpus: flight_corpus.py CORPUS
// Sums are made right before the file is read, as an enemy would, so that they hide nothing.
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "engine/flight/ring_reader.hpp"

namespace ringmain::engine::flight {
namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

void seal(std::vector<std::byte>& bytes) {
  FixedHeader header;
  if (bytes.size() < sizeof header) return;
  std::memcpy(&header, bytes.data(), sizeof header);
  header.sum = sum_of(0, &header, offsetof(FixedHeader, sum));
  std::memcpy(bytes.data(), &header, sizeof header);
}

void look(const TrackRead& track, std::size_t& payload) {
  std::uint64_t last = 0;
  for (const RecordRead& record : track.records) {
    require(record.number > last);
    last = record.number;
    require(record.payload_bytes <= kPayloadBytesMax);
    require(record.payload_at + record.payload_bytes <= track.payloads.size());
  }
  payload += track.payloads.size();
}

void read(std::vector<std::byte> bytes) {
  const FlightRead read = parse_flight({}, bytes, {});
  if (!read.refusal.empty()) {
    require(read.rings.empty() && read.text.empty() && read.operations.empty());
    return;
  }
  std::size_t payload = 0;
  for (const RingRead& ring : read.rings) {
    look(ring.ring, payload);
    look(ring.annex, payload);
  }
  for (const TextRead& text : read.text) payload += text.text.size();
  require(payload <= 2 * bytes.size());  // parts may lie over each other
  require(read.operations.size() <= bytes.size() / sizeof(OperationPlace));
}

}  // namespace
}  // namespace ringmain::engine::flight

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto* const from = reinterpret_cast<const std::byte*>(data);
  std::vector<std::byte> bytes(from, from + size);
  ringmain::engine::flight::read(bytes);
  ringmain::engine::flight::seal(bytes);
  ringmain::engine::flight::read(std::move(bytes));
  return 0;
}
