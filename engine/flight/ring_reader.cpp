#include "engine/flight/ring_reader.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace ringmain::engine::flight {
namespace {

using Bytes = std::vector<std::byte>;

enum : std::uint64_t { kFileBytesMax = std::uint64_t{1} << 32 };

/// Whole, and within the file.
bool fits(const Part& part, std::uint64_t file_bytes) noexcept {
  return part.at % 8 == 0 && part.at <= file_bytes && part.bytes <= file_bytes - part.at;
}

template <class T>
T at(const Bytes& bytes, std::uint64_t offset) noexcept {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

template <std::size_t kSize>
bool ends(const std::array<char, kSize>& text) noexcept {
  return text.back() == '\0';
}

/// "": it is a header that this version knows.
std::string refusal_of(const FixedHeader& header) {
  if (header.magic != kMagic) return "it is no file of the flight recorder, or was not finished";
  if (header.byte_order != kByteOrder) return "it was written on a machine of another byte order";
  if (header.version != kFlightVersion)
    return "it has version " + std::to_string(header.version) + ", and this program reads 1";
  FixedHeader summed = header;
  if (header.sum != sum_of(0, &summed, offsetof(FixedHeader, sum))) return "its header is damaged";
  if (header.header_bytes != sizeof(Header) || header.cell_bytes != kCellBytes ||
      header.record_header_bytes != kRecordHeaderBytes ||
      header.payload_bytes_max != kPayloadBytesMax || header.file_bytes > kFileBytesMax ||
      header.operations.bytes % sizeof(OperationPlace) != 0 || header.rings.at != sizeof(Header) ||
      header.rings.bytes % sizeof(RingLine) != 0) {
    return "its header says what no version 1 can have";
  }
  if (!ends(header.host) || !ends(header.job) || !ends(header.launcher) || !ends(header.program))
    return "its header has texts without an end";
  for (const Part& part : {header.rings, header.operations, header.text, header.cells}) {
    if (!fits(part, header.file_bytes)) return "its header names parts outside of it";
  }
  return "";
}

class Parser {
 public:
  Parser(const Bytes& before, const Bytes& bytes, const Bytes& after, FlightRead& read) noexcept
      : before_(before), bytes_(bytes), after_(after), read_(read) {}

  void parse() {
    const FixedHeader& header = read_.header;
    if (bytes_.size() < header.file_bytes) {
      damage("it is cut: " + std::to_string(bytes_.size()) + " of " +
             std::to_string(header.file_bytes) + " bytes are there");
    }
    read_.counts = at<Counts>(bytes_, offsetof(Header, counts));
    parse_clocks();
    if (is_here(header.rings)) parse_rings();
    if (is_here(header.operations)) parse_operations();
    if (header.text.at < bytes_.size()) parse_text();
  }

 private:
  void damage(const std::string& what) {
    if (read_.damage.empty()) read_.damage = what;
  }
  [[nodiscard]] bool is_here(const Part& part) const noexcept { return fits(part, bytes_.size()); }

  void parse_clocks() {
    for (std::size_t i = 0; i < kClockPairs; ++i) {
      const auto pair = at<ClockPair>(bytes_, offsetof(Header, clocks) + i * sizeof(ClockPair));
      if (pair.number != 0 &&
          pair.sum == sum_of(read_.header.salt, &pair, offsetof(ClockPair, sum)))
        read_.clocks.push_back(pair);
    }
    std::sort(read_.clocks.begin(), read_.clocks.end(),
              [](const ClockPair& a, const ClockPair& b) { return a.number < b.number; });
  }

  void parse_rings() {
    const Part& lines = read_.header.rings;
    std::uint64_t cells = 0;  // of all rings: no more than there are in the file
    for (std::uint64_t offset = lines.at; offset < lines.at + lines.bytes;
         offset += sizeof(RingLine)) {
      const auto line = at<RingLine>(bytes_, offset);
      if (line.state == static_cast<std::uint64_t>(RingState::free) && line.pattern == 0) continue;
      RingRead ring;
      ring.pattern = line.pattern;
      ring.state = static_cast<RingState>(std::min<std::uint64_t>(line.state, 2));
      ring.missed = line.missed;
      const std::uint64_t in_line = offset + offsetof(RingLine, ring);
      if (!parse_track(in_line, cells, ring.ring) ||
          !parse_track(in_line + sizeof(Track), cells, ring.annex)) {
        damage("a ring is where none can be, or beyond its end");
        continue;
      }
      if (ring.ring.impossible || ring.annex.impossible)
        damage("the words of a ring contradict each other");
      read_.rings.push_back(std::move(ring));
    }
  }

  bool parse_track(std::uint64_t offset, std::uint64_t& cells, TrackRead& to) {
    const auto track = at<Track>(bytes_, offset);
    const Part& all = read_.header.cells;
    const bool is_power = track.cells != 0 && (track.cells & (track.cells - 1)) == 0;
    if (!is_power || track.cells < kCellsPerRecordMax || track.cells > all.bytes / kCellBytes ||
        track.at % kCellBytes != 0 || track.at < all.at ||
        track.at - all.at > all.bytes - track.cells * kCellBytes ||
        track.at + track.cells * kCellBytes > bytes_.size()) {
      return false;
    }
    cells += track.cells;
    if (cells > all.bytes / kCellBytes) return false;  // rings that lie over each other
    const bool looked_before = offset + sizeof(Track) <= before_.size();
    const bool looked_after = offset + sizeof(Track) <= after_.size();
    TrackCopy copy;
    const Track earlier = looked_before ? at<Track>(before_, offset) : track;
    copy.committed = earlier.committed;
    copy.written = earlier.written;
    copy.reserved = looked_after ? at<Track>(after_, offset).reserved : track.reserved;
    copy.cells = track.cells;
    words_.resize(track.cells * kCellWords);
    std::memcpy(words_.data(), bytes_.data() + track.at, track.cells * kCellBytes);
    copy.words = words_.data();
    to = read_track(copy, read_.header.salt);
    return true;
  }

  void parse_operations() {
    const Part& part = read_.header.operations;
    for (std::uint64_t offset = part.at; offset < part.at + part.bytes;
         offset += sizeof(OperationPlace)) {
      const auto place = at<OperationPlace>(bytes_, offset);
      if (place.state == 0) continue;
      const bool looked_after = offset + 8 <= after_.size();
      const std::uint64_t state = looked_after ? at<std::uint64_t>(after_, offset) : place.state;
      OpenOperation operation;
      if (read_operation(place, place.state, read_.header.salt, operation)) {
        if (state == place.state) read_.operations.push_back(operation);  // else it has ended
      } else if (state == place.state) {
        ++read_.operations_unreadable;
      }
    }
    std::sort(read_.operations.begin(), read_.operations.end(),
              [](const OpenOperation& a, const OpenOperation& b) { return a.id < b.id; });
  }

  void parse_text() {
    const Part& part = read_.header.text;
    const std::uint64_t end =
        std::min(std::min(read_.counts.text_end, part.bytes), bytes_.size() - part.at);
    std::uint64_t done = 0;
    while (end - done >= sizeof(TextHead)) {
      const auto head = at<TextHead>(bytes_, part.at + done);
      const std::uint64_t room = end - done - sizeof head;
      const std::byte* const text = bytes_.data() + part.at + done + sizeof head;
      if (head.bytes > room || head.sum != sum_of_text(read_.header.salt, head, text)) break;
      add_text(head, reinterpret_cast<const char*>(text));
      done += std::min(text_step(head.bytes), end - done);
    }
    // Counts lie before the text: they may be younger than what was copied.
    read_.text_unreadable = std::max(read_.counts.text_end, done) - done;
    if (read_.text_unreadable != 0) damage("its text is damaged, or cut");
  }

  void add_text(const TextHead& head, const char* text) {
    TextRead one;
    one.kind = static_cast<TextKind>(head.kind);
    one.id = head.id;
    std::size_t before = 0;
    if (one.kind == TextKind::channel) before = sizeof one.schema;
    if (one.kind == TextKind::source) before = sizeof one.source;
    if (head.bytes < before) return;
    if (one.kind == TextKind::channel) std::memcpy(&one.schema, text, before);
    if (one.kind == TextKind::source) std::memcpy(&one.source, text, before);
    one.text.assign(text + before, head.bytes - before);
    read_.text.push_back(std::move(one));
  }

  const Bytes& before_;
  const Bytes& bytes_;
  const Bytes& after_;
  FlightRead& read_;
  std::vector<std::uint64_t> words_;
};

/// As much as is there, from the begin; an error of the system.
int read_bytes(int fd, Bytes& bytes) {
  std::size_t size = 0;
  while (size < bytes.size()) {
    const ssize_t some =
        ::pread(fd, bytes.data() + size, bytes.size() - size, static_cast<off_t>(size));
    if (some < 0 && errno == EINTR) continue;
    if (some < 0) return errno;
    if (some == 0) break;
    size += static_cast<std::size_t>(some);
  }
  bytes.resize(size);
  return 0;
}

std::string refuse(const std::string& path, const std::string& why) {
  return path + " cannot be read: " + why + ".";
}

}  // namespace

const TextRead* FlightRead::find(TextKind kind, std::uint64_t id) const noexcept {
  for (const TextRead& one : text)
    if (one.kind == kind && one.id == id) return &one;
  return nullptr;
}

FlightRead parse_flight(const Bytes& before, const Bytes& bytes, const Bytes& after) {
  FlightRead read;
  if (bytes.size() < sizeof(Header)) {
    read.refusal = "it is shorter than a header";
    return read;
  }
  read.header = at<FixedHeader>(bytes, 0);
  read.refusal = refusal_of(read.header);
  if (read.refusal.empty()) Parser(before, bytes, after, read).parse();
  return read;
}

FlightRead read_flight(const std::string& path) {
  FlightRead read;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat about {};
  if (fd < 0 || ::fstat(fd, &about) != 0 || !S_ISREG(about.st_mode) ||
      static_cast<std::uint64_t>(about.st_size) > kFileBytesMax) {
    char text[128];
    read.refusal = refuse(path, fd < 0 ? ::strerror_r(errno, text, sizeof text)
                                       : "it is no regular file, or larger than 4 GiB");
    if (fd >= 0) ::close(fd);
    return read;
  }
  auto size = static_cast<std::size_t>(about.st_size);
  Bytes bytes(std::min(size, sizeof(Header)));
  Bytes before, after;
  int error = read_bytes(fd, bytes);
  if (error == 0 && bytes.size() == sizeof(Header)) {
    const auto header = at<FixedHeader>(bytes, 0);
    if (refusal_of(header).empty()) {
      size = std::min<std::size_t>(size, header.file_bytes);  // what follows costs no memory
      const std::uint64_t lines = header.operations.at + header.operations.bytes;
      before.resize(std::min<std::uint64_t>(lines, size));
      bytes.resize(size);
      after.resize(before.size());
      error = read_bytes(fd, before);
      if (error == 0) error = read_bytes(fd, bytes);
      if (error == 0) error = read_bytes(fd, after);
    }
  }
  ::close(fd);
  if (error != 0) {
    char text[128];
    read.refusal = refuse(path, ::strerror_r(error, text, sizeof text));
    return read;
  }
  read = parse_flight(before, bytes, after);
  if (!read.refusal.empty()) {
    read.refusal = refuse(path, read.refusal);
    return read;
  }
  if (!read.damage.empty()) read.damage = path + " is damaged: " + read.damage + ".";
  read.living = lives(
      {read.header.boot_id, read.header.process_start, read.header.pid_namespace, read.header.pid});
  return read;
}

}  // namespace ringmain::engine::flight
