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

/// Which of the copies, where there are several.
enum class Look { before, meanwhile, after };

/// The bytes of a file, wherever they are. None beyond its size is asked for.
class Image {
 public:
  virtual ~Image() = default;
  [[nodiscard]] virtual std::uint64_t size() const noexcept = 0;
  virtual void read(Look look, std::uint64_t offset, void* to, std::size_t bytes) noexcept = 0;
};

class CopiedImage final : public Image {
 public:
  CopiedImage(const Bytes& before, const Bytes& bytes, const Bytes& after) noexcept
      : before_(before), bytes_(bytes), after_(after) {}
  [[nodiscard]] std::uint64_t size() const noexcept override { return bytes_.size(); }
  void read(Look look, std::uint64_t offset, void* to, std::size_t bytes) noexcept override {
    if (bytes == 0) return;  // `to` may be nullptr
    const Bytes& wanted = look == Look::before ? before_ : look == Look::after ? after_ : bytes_;
    const bool is_there = offset + bytes <= wanted.size();
    std::memcpy(to, (is_there ? wanted : bytes_).data() + offset, bytes);
  }

 private:
  const Bytes& before_;
  const Bytes& bytes_;
  const Bytes& after_;
};

/// Each look reads the file again, so no more of it is in memory than is looked at.
class FileImage final : public Image {
 public:
  FileImage(int fd, std::uint64_t size) noexcept : fd_(fd), size_(size) {}
  [[nodiscard]] std::uint64_t size() const noexcept override { return size_; }
  void read(Look, std::uint64_t offset, void* to, std::size_t bytes) noexcept override {
    auto* into = static_cast<std::byte*>(to);
    while (bytes != 0) {
      const ssize_t some = ::pread(fd_, into, bytes, static_cast<off_t>(offset));
      if (some < 0 && errno == EINTR) continue;
      if (some < 0 && error_ == 0) error_ = errno;
      if (some <= 0) break;
      into += some;
      offset += static_cast<std::uint64_t>(some);
      bytes -= static_cast<std::size_t>(some);
    }
    // Cut meanwhile: zeros are no record, and the sums find it.
    if (bytes != 0) std::memset(into, 0, bytes);
  }
  /// Of the system; 0: all could be read.
  [[nodiscard]] int error() const noexcept { return error_; }

 private:
  const int fd_;
  const std::uint64_t size_;
  int error_ = 0;
};

/// More was recorded than is to be read.
struct TooMuch {
  std::uint64_t bytes;
};

class Parser {
 public:
  Parser(Image& image, std::uint64_t bytes_max, FlightRead& read) noexcept
      : image_(image), bytes_max_(bytes_max), read_(read) {}

  /// Throws TooMuch.
  void parse() {
    const FixedHeader& header = read_.header;
    if (image_.size() < header.file_bytes) {
      damage("it is cut: " + std::to_string(image_.size()) + " of " +
             std::to_string(header.file_bytes) + " bytes are there");
    }
    parse_clocks();
    if (is_here(header.rings)) parse_rings();
    if (is_here(header.operations)) parse_operations();
    // Text last: what the records above call by a number is in it by now.
    image_.read(Look::meanwhile, offsetof(Header, counts), &read_.counts, sizeof(Counts));
    if (header.text.at < image_.size()) parse_text();
  }

 private:
  enum : std::uint64_t { kAtOnce = 64u << 10 };  // bytes of rings' lines, or of operations

  void damage(const std::string& what) {
    if (read_.damage.empty()) read_.damage = what;
  }
  [[nodiscard]] bool is_here(const Part& part) const noexcept { return fits(part, image_.size()); }
  /// So much is going to be read, and kept in one form or another.
  void take(std::uint64_t bytes) {
    taken_ += bytes;
    if (taken_ > bytes_max_) throw TooMuch{taken_};
  }
  /// `f(offset, piece)` for the pieces of a part.
  template <class F>
  void in_pieces(const Part& part, F f) {
    Bytes piece;
    for (std::uint64_t done = 0; done < part.bytes; done += piece.size()) {
      piece.resize(std::min<std::uint64_t>(kAtOnce, part.bytes - done));
      image_.read(Look::before, part.at + done, piece.data(), piece.size());
      f(part.at + done, piece);
    }
  }

  void parse_clocks() {
    for (std::size_t i = 0; i < kClockPairs; ++i) {
      ClockPair pair;
      image_.read(Look::meanwhile, offsetof(Header, clocks) + i * sizeof(ClockPair), &pair,
                  sizeof pair);
      if (pair.number != 0 &&
          pair.sum == sum_of(read_.header.salt, &pair, offsetof(ClockPair, sum)))
        read_.clocks.push_back(pair);
    }
    std::sort(read_.clocks.begin(), read_.clocks.end(),
              [](const ClockPair& a, const ClockPair& b) { return a.number < b.number; });
  }

  void parse_rings() {
    std::uint64_t cells = 0;  // of all rings: no more than there are in the file
    in_pieces(read_.header.rings, [&](std::uint64_t offset, const Bytes& piece) {
      for (std::uint64_t i = 0; i < piece.size(); i += sizeof(RingLine)) {
        const auto line = at<RingLine>(piece, i);
        if (line.state != static_cast<std::uint64_t>(RingState::free) || line.pattern != 0)
          parse_ring(offset + i, line, cells);
      }
    });
  }

  void parse_ring(std::uint64_t offset, const RingLine& line, std::uint64_t& cells) {
    RingRead ring;
    ring.pattern = line.pattern;
    ring.state = static_cast<RingState>(std::min<std::uint64_t>(line.state, 2));
    ring.missed = line.missed;
    if (!parse_track(offset + offsetof(RingLine, ring), line.ring, cells, ring.ring) ||
        !parse_track(offset + offsetof(RingLine, annex), line.annex, cells, ring.annex)) {
      return damage("a ring is where none can be, or beyond its end");
    }
    if (ring.ring.impossible || ring.annex.impossible)
      damage("the words of a ring contradict each other");
    read_.rings.push_back(std::move(ring));
  }

  bool parse_track(std::uint64_t offset, const Track& track, std::uint64_t& cells, TrackRead& to) {
    const Part& all = read_.header.cells;
    const bool is_power = track.cells != 0 && (track.cells & (track.cells - 1)) == 0;
    if (!is_power || track.cells < kCellsPerRecordMax || track.cells > all.bytes / kCellBytes ||
        track.at % kCellBytes != 0 || track.at < all.at ||
        track.at - all.at > all.bytes - track.cells * kCellBytes ||
        track.at + track.cells * kCellBytes > image_.size()) {
      return false;
    }
    cells += track.cells;
    if (cells > all.bytes / kCellBytes) return false;  // rings that lie over each other
    // Of a ring that has not gone round, only what was written, and a record that is under way.
    const std::uint64_t used =
        track.committed < track.cells
            ? std::min<std::uint64_t>(track.committed + 2 * kCellsPerRecordMax, track.cells)
            : track.cells;
    take(used * kCellBytes);
    TrackCopy copy;
    copy.committed = track.committed;
    copy.written = track.written;
    copy.cells = track.cells;
    words_.resize(used * kCellWords);
    image_.read(Look::meanwhile, track.at, words_.data(), used * kCellBytes);
    image_.read(Look::after, offset + offsetof(Track, reserved), &copy.reserved,
                sizeof copy.reserved);
    copy.words = words_.data();
    to = read_track(copy, read_.header.salt);
    return true;
  }

  void parse_operations() {
    in_pieces(read_.header.operations, [&](std::uint64_t offset, const Bytes& piece) {
      Bytes later(piece.size());
      image_.read(Look::after, offset, later.data(), later.size());
      for (std::uint64_t i = 0; i < piece.size(); i += sizeof(OperationPlace)) {
        const auto place = at<OperationPlace>(piece, i);
        if (place.state != 0) parse_operation(place, at<std::uint64_t>(later, i));
      }
    });
    std::sort(read_.operations.begin(), read_.operations.end(),
              [](const OpenOperation& a, const OpenOperation& b) { return a.id < b.id; });
  }

  void parse_operation(const OperationPlace& place, std::uint64_t state_later) {
    if (state_later != place.state) return;  // it has ended
    OpenOperation operation;
    if (!read_operation(place, place.state, read_.header.salt, operation)) {
      ++read_.operations_unreadable;
      return;
    }
    take(sizeof place);
    read_.operations.push_back(operation);
  }

  void parse_text() {
    const Part& part = read_.header.text;
    const std::uint64_t end =
        std::min(std::min(read_.counts.text_end, part.bytes), image_.size() - part.at);
    take(end);
    Bytes all(end);
    image_.read(Look::meanwhile, part.at, all.data(), all.size());
    std::uint64_t done = 0;
    while (end - done >= sizeof(TextHead)) {
      const auto head = at<TextHead>(all, done);
      const std::uint64_t room = end - done - sizeof head;
      const std::byte* const text = all.data() + done + sizeof head;
      if (head.bytes > room || head.sum != sum_of_text(read_.header.salt, head, text)) break;
      add_text(head, reinterpret_cast<const char*>(text));
      done += std::min(text_step(head.bytes), end - done);
    }
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

  Image& image_;
  const std::uint64_t bytes_max_;
  std::uint64_t taken_ = 0;
  FlightRead& read_;
  std::vector<std::uint64_t> words_;
};

FlightRead parse(Image& image, std::uint64_t bytes_max) {
  FlightRead read;
  if (image.size() < sizeof(Header)) {
    read.refusal = "it is shorter than a header";
    return read;
  }
  image.read(Look::meanwhile, 0, &read.header, sizeof read.header);
  read.refusal = refusal_of(read.header);
  if (!read.refusal.empty()) return read;
  try {
    Parser(image, bytes_max, read).parse();
  } catch (const TooMuch& too_much) {
    const FixedHeader header = read.header;
    read = {};
    read.header = header;
    read.refusal = "it holds " + std::to_string(too_much.bytes >> 20) + " MiB or more, and " +
                   std::to_string(bytes_max >> 20) +
                   " MiB are read of a file in a folder; name it by itself to read it all the same";
  }
  return read;
}

struct Closed {
  const int fd;
  ~Closed() {
    if (fd >= 0) ::close(fd);
  }
};

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
  CopiedImage image(before, bytes, after);
  return parse(image, ~std::uint64_t{0});
}

FlightRead read_flight(const std::string& path, std::uint64_t bytes_max) {
  FlightRead read;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  const Closed closed{fd};
  char text[128];
  struct stat about {};
  if (fd < 0 || ::fstat(fd, &about) != 0 || !S_ISREG(about.st_mode) ||
      static_cast<std::uint64_t>(about.st_size) > kFileBytesMax) {
    read.refusal = refuse(path, fd < 0 ? ::strerror_r(errno, text, sizeof text)
                                       : "it is no regular file, or larger than 4 GiB");
    return read;
  }
  FileImage image(fd, static_cast<std::uint64_t>(about.st_size));
  read = parse(image, bytes_max);
  if (image.error() != 0) {
    read = {};
    read.refusal = refuse(path, ::strerror_r(image.error(), text, sizeof text));
    return read;
  }
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
