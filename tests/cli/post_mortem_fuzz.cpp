// Is there a file of a flight recorder that makes what is told of it crash, or be cut: the events
// in it by the types that it describes, the operations, the text, the JSON, the picture?
//
// A libFuzzer target, built with clang and -DRINGMAIN_BUILD_FUZZERS=ON:
//   post_mortem_fuzz -max_total_time=60 NEW_INPUTS tests/engine/flight/corpus
// All sums are made anew before the file is read, as an enemy would, so that they hide nothing.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

#include "engine/flight/layout.hpp"
#include "engine/flight/open_operations.hpp"

#include "adapters/flight/ring_snapshot.hpp"
#include "adapters/flight/rings.hpp"

#include "cli/post_mortem.hpp"

namespace ringmain::cli {
namespace {

namespace raw = engine::flight;

void require(bool holds) {
  if (!holds) std::abort();
}

/// A file's bytes, of which only those that are there are read and written.
class Sealing {
 public:
  explicit Sealing(std::vector<std::byte>& bytes) : bytes_(bytes) {
    if (bytes_.size() < sizeof(raw::Header)) return;
    header_ = at<raw::FixedHeader>(0);
    seal_text();
    seal_operations();
    const std::uint64_t lines =
        std::min<std::uint64_t>(part(header_.rings) / sizeof(raw::RingLine), 64);
    for (std::uint64_t i = 0; i < lines; ++i) {
      const auto line = at<raw::RingLine>(header_.rings.at + i * sizeof(raw::RingLine));
      for (const raw::Track& track : {line.ring, line.annex}) seal_records(track);
    }
    header_.sum = raw::sum_of(0, &header_, offsetof(raw::FixedHeader, sum));
    put(0, header_);
  }

 private:
  template <class T>
  [[nodiscard]] T at(std::uint64_t place) const {
    T value{};
    if (place <= bytes_.size() && sizeof value <= bytes_.size() - place)
      std::memcpy(&value, bytes_.data() + place, sizeof value);
    return value;
  }
  template <class T>
  void put(std::uint64_t place, const T& value) {
    if (place <= bytes_.size() && sizeof value <= bytes_.size() - place)
      std::memcpy(bytes_.data() + place, &value, sizeof value);
  }
  /// How many bytes of it are there.
  [[nodiscard]] std::uint64_t part(const raw::Part& of) const {
    return of.at > bytes_.size() ? 0 : std::min<std::uint64_t>(of.bytes, bytes_.size() - of.at);
  }

  void seal_text() {
    const std::uint64_t end = part(header_.text);
    for (std::uint64_t in = 0; in + sizeof(raw::TextHead) <= end;) {
      auto head = at<raw::TextHead>(header_.text.at + in);
      if (head.bytes > end - in - sizeof head) return;
      head.sum =
          raw::sum_of_text(header_.salt, head, bytes_.data() + header_.text.at + in + sizeof head);
      put(header_.text.at + in, head);
      in += raw::text_step(head.bytes);
    }
  }
  void seal_operations() {
    for (std::uint64_t in = 0; in + sizeof(raw::OperationPlace) <= part(header_.operations);
         in += sizeof(raw::OperationPlace)) {
      auto place = at<raw::OperationPlace>(header_.operations.at + in);
      if (place.state == 0) continue;
      place.sum = raw::sum_of_operation(
          header_.salt, {place.id, place.time_ns, static_cast<std::uint32_t>(place.source_and_kind),
                         static_cast<std::uint32_t>(place.source_and_kind >> 32), place.group,
                         place.sequence, place.bytes});
      put(header_.operations.at + in, place);
    }
  }
  void seal_records(const raw::Track& track) {
    const std::uint64_t cells =
        std::min<std::uint64_t>(track.cells, bytes_.size() / raw::kCellBytes);
    for (std::uint64_t i = 0; i < cells && track.at <= bytes_.size(); ++i) {
      const std::uint64_t from = track.at + i * raw::kCellBytes;
      const auto word = [&](std::size_t n) { return at<std::uint64_t>(from + n * 8); };
      if (word(raw::kGeneration) == 0) continue;
      const std::uint64_t size = raw::Packed::of(word(raw::kPacked)).bytes;
      if (size > engine::kPayloadBytesMax) continue;
      raw::Sum sum(header_.salt);
      sum.add(word(raw::kGeneration), word(raw::kPacked));
      sum.add(word(raw::kTime), word(raw::kSequence));
      sum.add(word(raw::kSchema), size);
      for (std::uint64_t n = raw::kRecordHeaderWords; (n - raw::kRecordHeaderWords) * 8 < size;
           n += 2) {
        // From the row's end it goes on at its begin.
        const auto wrapped = [&](std::uint64_t w) {
          return at<std::uint64_t>(track.at +
                                   (i * raw::kCellWords + w) % (cells * raw::kCellWords) * 8);
        };
        sum.add(wrapped(n), wrapped(n + 1));
      }
      put(from + raw::kSum * 8, sum.value());
    }
  }

  std::vector<std::byte>& bytes_;
  raw::FixedHeader header_{};
};

void tell(const std::vector<std::byte>& bytes) {
  const int fd = ::memfd_create("fuzz", MFD_CLOEXEC);
  require(fd >= 0 && ::write(fd, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
  const std::string path = "/proc/self/fd/" + std::to_string(fd);
  const auto dump = flight::RingDump::read(path);
  if (dump) {
    std::size_t events = 0;
    for (const flight::RecordedRing& ring : dump.value().rings()) events += ring.events.size();
    require(events <= bytes.size() / raw::kCellBytes * 2);  // rows may lie over each other
    require(post_mortem_text(dump.value(), 20).ends_with('\n'));
    const std::string json = post_mortem_json(dump.value(), 20);
    require(json.starts_with('{') && json.find('\n') >= json.size() - 1);
    require(post_mortem_svg(dump.value(), 20).find("</svg>") != std::string::npos);
  } else {
    require(!dump.error().message.empty());
  }
  const auto snapshot = flight::snapshot_of_ring(path);
  require(snapshot || !snapshot.error().message.empty());
  ::close(fd);
}

}  // namespace
}  // namespace ringmain::cli

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto* const from = reinterpret_cast<const std::byte*>(data);
  std::vector<std::byte> bytes(from, from + size);
  const ringmain::cli::Sealing sealed(bytes);
  ringmain::cli::tell(bytes);
  return 0;
}
