#include "engine/flight/ring_file.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <new>
#include <stdexcept>
#include <sys/mman.h>
#include <sys/random.h>
#include <system_error>
#include <unistd.h>

#include "engine/flight/process_life.hpp"
#include "engine/flight/ring_place.hpp"
#include "engine/system/clock.hpp"

namespace ringmain::engine::flight {
namespace {

enum : std::size_t { kAnnexCells = 32 };
/// A quarter of the rings is for threads of patterns that no thread has left a ring of.
enum : std::size_t { kForOthers = 4 };
/// A quarter of the text is for what records cannot be read without: each thread that publishes
/// adds a source, and there may be any number of them.
enum : std::size_t { kForNames = 4 };

std::int64_t realtime_ns() noexcept {
  timespec t{};
  ::clock_gettime(CLOCK_REALTIME, &t);
  return static_cast<std::int64_t>(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
}

std::uint64_t draw() noexcept {
  std::uint64_t salt = 0;
  if (::getrandom(&salt, sizeof salt, GRND_NONBLOCK) != sizeof salt) {
    const std::int64_t clocks[] = {now_ns(), realtime_ns(), ::getpid()};
    salt = sum_of(0, clocks, sizeof clocks);
  }
  return salt | 1;
}

/// The last byte stays zero.
template <std::size_t kSize>
void set_text(std::array<char, kSize>& to, std::string_view text) noexcept {
  std::memcpy(to.data(), text.data(), std::min(text.size(), kSize - 1));
}

constexpr std::uint64_t claim_of(std::uint32_t pattern, RingState state) noexcept {
  return std::uint64_t{pattern} << 2 | static_cast<std::uint64_t>(state);
}

}  // namespace

struct RingFile::Sizes {
  explicit Sizes(const RingFileOptions& options)
      : ring_cells(options.ring_bytes / kCellBytes),
        ring_and_annex((ring_cells + kAnnexCells) * kCellBytes) {
    constexpr std::size_t kMinimum = 1u << 20;
    constexpr std::size_t kMaximum = std::size_t{1} << 32;
    if (options.file_bytes < kMinimum || options.file_bytes > kMaximum ||
        options.ring_bytes < 4096 || !std::has_single_bit(options.ring_bytes)) {
      throw std::invalid_argument(
          "a flight recorder has 1 MiB to 4 GiB, and rings of 4 KiB or a larger power of two");
    }
    const std::size_t operations_bytes = options.operations * sizeof(OperationPlace);
    const std::size_t text_bytes = options.text_bytes / kLineBytes * kLineBytes;
    const std::size_t file = options.file_bytes / kLineBytes * kLineBytes;
    const std::size_t taken = sizeof(Header) + operations_bytes + text_bytes + kLineBytes;
    if (taken < file) rings = (file - taken) / (ring_and_annex + sizeof(RingLine));
    if (rings == 0)
      throw std::invalid_argument("a flight recorder of that size has no room for a ring");
    lines = {sizeof(Header), rings * sizeof(RingLine)};
    operations = {lines.at + lines.bytes, operations_bytes};
    text = {operations.at + operations.bytes, text_bytes};
    cells = {(text.at + text.bytes + kLineBytes - 1) / kLineBytes * kLineBytes,
             rings * ring_and_annex};
    bytes = file;
  }
  std::size_t ring_cells, ring_and_annex, rings = 0, bytes = 0;
  Part lines, operations, text, cells;
};

RingFile::RingFile() noexcept : ForkWitness(kForkFlight) {}

std::unique_ptr<RingFile> RingFile::open(const RingFileOptions& options) {
  const Sizes sizes(options);
  std::unique_ptr<RingFile> file(new RingFile);
  file->rings_ = sizes.rings;
  file->bytes_ = sizes.bytes;
  const ProcessLife self = this_process();
  file->map(options, self.start);
  file->lay_out(sizes, options);
  file->begin_watching();
  file->watching_ = true;
  return file;
}

void RingFile::map(const RingFileOptions& options, std::uint64_t process_start) {
  std::string why;
  const std::vector<std::string> folders = flight_folders(options.folder);
  for (const std::string& folder : folders) {
    MadeFile made = make_flight_file({.folder = folder,
                                      .process_start = process_start,
                                      .bytes = bytes_,
                                      // The system's own folders are not ours to make.
                                      .with_parents = folders.size() == 1,
                                      .makes_room = options.kept != kKeepAll});
    if (made.fd >= 0) {
      void* const at = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, made.fd, 0);
      ::close(made.fd);
      if (at != MAP_FAILED) {
        at_ = static_cast<std::byte*>(at);
        path_ = std::move(made.path);
        prune_flight_files(folder, options.kept);
        return;
      }
      (void)::unlink(made.path.c_str());
      made.complaint = made.path + " cannot be mapped; name another folder in RINGMAIN_FLIGHT_DIR";
    }
    why = std::move(made.complaint);
  }
  void* const at =
      ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) {
    throw std::system_error(errno, std::generic_category(),
                            "the process has no room for the " + std::to_string(bytes_) +
                                " bytes of a flight recorder (ulimit -v); give it fewer");
  }
  at_ = static_cast<std::byte*>(at);
  complaint_ =
      "the flight recorder is in memory only, and is lost if the process is killed: " + why + ".";
}

void RingFile::lay_out(const Sizes& sizes, const RingFileOptions& options) {
  const ProcessLife self = this_process();
  FixedHeader& fixed = header().fixed;
  fixed.version = kFlightVersion;
  fixed.header_bytes = sizeof(Header);
  fixed.byte_order = kByteOrder;
  fixed.file_bytes = bytes_;
  fixed.salt = draw();
  fixed.boot_id = self.boot_id;
  fixed.process_start = self.start;
  fixed.pid_namespace = self.pid_namespace;
  fixed.pid = self.pid;
  fixed.uid = ::getuid();
  const FlightIdentity& me = options.identity;
  fixed.rank = me.rank;
  fixed.local_rank = me.local_rank;
  fixed.world_size = me.world_size;
  fixed.local_world_size = me.local_world_size;
  fixed.attempt = me.attempt;
  fixed.ring_cells = static_cast<std::uint32_t>(sizes.ring_cells);
  fixed.annex_cells = kAnnexCells;
  fixed.cell_bytes = kCellBytes;
  fixed.record_header_bytes = kRecordHeaderBytes;
  fixed.payload_bytes_max = kPayloadBytesMax;
  fixed.rings = sizes.lines;
  fixed.operations = sizes.operations;
  fixed.text = sizes.text;
  fixed.cells = sizes.cells;
  set_text(fixed.host, me.host);
  set_text(fixed.job, me.job);
  set_text(fixed.launcher, me.launcher);
  std::string program = read_small_file("/proc/self/comm");
  while (!program.empty() && program.back() == '\n') program.pop_back();
  set_text(fixed.program, program);
  FixedHeader summed = fixed;
  summed.magic = kMagic;
  fixed.sum = sum_of(0, &summed, offsetof(FixedHeader, sum));

  operations_ = OpenOperations(reinterpret_cast<OperationPlace*>(at_ + sizes.operations.at),
                               options.operations, header().counts, fixed.salt);
  writers_ = std::make_unique<RingWriter[]>(rings_);
  claims_ = std::make_unique<Atomic<std::uint64_t>[]>(rings_);
  ends_ = std::make_unique<Atomic<std::uint64_t>[]>(rings_);
  for (std::size_t i = 0; i < rings_; ++i) {
    RingLine& of = line(i);
    of.ring.at = sizes.cells.at + i * sizes.ring_and_annex;
    of.ring.cells = sizes.ring_cells;
    of.annex.at = of.ring.at + sizes.ring_cells * kCellBytes;
    of.annex.cells = kAnnexCells;
    std::construct_at(&writers_[i], of, at_ + of.ring.at, fixed.salt);
  }
  note_clocks();
  // In two words, as only a whole header is one.
  std::uint64_t magic = 0;
  std::memcpy(&magic, kMagic.data(), sizeof magic);
  AtomicRef<std::uint64_t>(reinterpret_cast<std::uint64_t&>(fixed.magic))
      .store(magic, std::memory_order_seq_cst);  // z.whole
}

RingFile::~RingFile() {
  if (watching_) end_watching();
  if (at_ == nullptr) return;
  if (!born_.forked())
    AtomicRef<std::uint64_t>(header().counts.closed)
        .store(1, std::memory_order_seq_cst);  // z.whole
  ::munmap(at_, bytes_);
}

RingLine& RingFile::line(std::size_t i) noexcept {
  return reinterpret_cast<RingLine*>(at_ + sizeof(Header))[i];
}

std::size_t RingFile::to_claim(std::uint64_t ended) const noexcept {
  std::size_t fresh = rings_, oldest = rings_, all_fresh = 0;
  std::uint64_t first_end = 0;
  for (std::size_t i = 0; i < rings_; ++i) {
    const std::uint64_t is = claims_[i].load(std::memory_order_relaxed);  // relaxed: claimed later
    if (is == 0 && all_fresh++ == 0) fresh = i;
    if (is != ended) continue;
    // Relaxed: a stale one lets a younger ring go, and no record is wrong by it.
    const std::uint64_t end = ends_[i].load(std::memory_order_relaxed);
    if (oldest == rings_ || end < first_end) {
      oldest = i;
      first_end = end;
    }
  }
  const bool scarce = all_fresh <= rings_ / kForOthers;
  return scarce && oldest != rings_ ? oldest : fresh;
}

RingWriter* RingFile::claim(std::uint32_t pattern) noexcept {
  if (born_.forked()) return nullptr;
  const std::uint64_t live = claim_of(pattern, RingState::live);
  const std::uint64_t ended = claim_of(pattern, RingState::ended);
  // Whoever is overtaken looks again; then another thread has got its ring.
  for (std::size_t i = to_claim(ended); i != rings_; i = to_claim(ended)) {
    std::uint64_t found = claims_[i].load(std::memory_order_relaxed);  // relaxed: claimed below
    if ((found != 0 && found != ended) ||
        !claims_[i].compare_exchange_strong(found, live, std::memory_order_acquire,  // z.claimed
                                            std::memory_order_relaxed)) {
      continue;
    }
    AtomicRef<std::uint64_t>(line(i).pattern).store(pattern, std::memory_order_relaxed);
    AtomicRef<std::uint64_t>(line(i).state)
        .store(static_cast<std::uint64_t>(RingState::live), std::memory_order_relaxed);
    return &writers_[i];
  }
  AtomicRef<std::uint64_t>(header().counts.rings_refused).fetch_add(1, std::memory_order_relaxed);
  return nullptr;
}

void RingFile::release(RingWriter& writer) noexcept {
  const auto i = static_cast<std::size_t>(&writer - writers_.get());
  AtomicRef<std::uint64_t>(line(i).state)
      .store(static_cast<std::uint64_t>(RingState::ended), std::memory_order_relaxed);
  // Relaxed, both: an order of ends, which nothing else follows from.
  ends_[i].store(ended_.fetch_add(1, std::memory_order_relaxed), std::memory_order_relaxed);
  const std::uint64_t pattern = claims_[i].load(std::memory_order_relaxed) >> 2;  // relaxed: ours
  claims_[i].store(claim_of(static_cast<std::uint32_t>(pattern), RingState::ended),
                   std::memory_order_release);  // z.claimed
}

void RingFile::count_unrecorded() noexcept {
  AtomicRef<std::uint64_t>(header().counts.unrecorded).fetch_add(1, std::memory_order_relaxed);
}

void RingFile::note_clocks() noexcept {
  if (born_.forked()) return;
  const std::lock_guard lock(text_mutex_);
  Header& to = header();
  const std::uint64_t number = to.counts.clock_pairs + 1;
  const std::int64_t before = now_ns();
  const std::int64_t realtime = realtime_ns();
  ClockPair pair{before + (now_ns() - before) / 2, realtime, number, 0};
  pair.sum = sum_of(to.fixed.salt, &pair, offsetof(ClockPair, sum));
  const std::size_t place = number == 1 ? 0 : 1 + (number - 2) % (kClockPairs - 1);
  to.clocks[place] = pair;
  AtomicRef<std::uint64_t>(to.counts.clock_pairs)
      .store(number, std::memory_order_seq_cst);  // z.whole
}

bool RingFile::add_text(TextKind kind, std::uint64_t id, std::string_view first,
                        std::string_view second) noexcept {
  Header& to = header();
  const std::size_t bytes = first.size() + second.size();
  const std::uint64_t step = text_step(bytes);
  const std::uint64_t all = to.fixed.text.bytes;
  const std::uint64_t end = kind == TextKind::source ? all - all / kForNames : all;
  if (text_end_ + step > end) {
    AtomicRef<std::uint64_t>(to.counts.text_left_out).fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  std::byte* const at = at_ + to.fixed.text.at + text_end_;
  TextHead head{static_cast<std::uint32_t>(kind), static_cast<std::uint32_t>(bytes), 0, id};
  if (!first.empty()) std::memcpy(at + sizeof head, first.data(), first.size());
  if (!second.empty()) std::memcpy(at + sizeof head + first.size(), second.data(), second.size());
  head.sum = sum_of_text(to.fixed.salt, head, at + sizeof head);
  std::memcpy(at, &head, sizeof head);
  text_end_ += step;
  AtomicRef<std::uint64_t>(to.counts.text_end)
      .store(text_end_, std::memory_order_seq_cst);  // z.whole
  return true;
}

bool RingFile::add_name(std::uint32_t id, std::string_view text) noexcept {
  if (born_.forked()) return false;
  const std::lock_guard lock(text_mutex_);
  return add_text(TextKind::name, id, text);
}

bool RingFile::add_schema(std::uint64_t hash, std::string_view description) noexcept {
  if (born_.forked()) return false;
  const std::lock_guard lock(text_mutex_);
  return add_text(TextKind::schema, hash, description);
}

std::uint32_t RingFile::add_channel(std::string_view name, std::uint64_t schema) noexcept {
  if (born_.forked()) return 0;
  const std::lock_guard lock(text_mutex_);
  const std::string_view hash(reinterpret_cast<const char*>(&schema), sizeof schema);
  return add_text(TextKind::channel, channels_ + 1, hash, name) ? ++channels_ : 0;
}

std::uint32_t RingFile::add_pattern(std::string_view pattern) noexcept {
  if (born_.forked()) return 0;
  const std::lock_guard lock(text_mutex_);
  return add_text(TextKind::pattern, patterns_ + 1, pattern) ? ++patterns_ : 0;
}

std::uint16_t RingFile::add_source(std::uint32_t channel, std::uint32_t publisher,
                                   std::uint32_t thread, std::string_view thread_name) noexcept {
  if (born_.forked()) return 0;
  const std::lock_guard lock(text_mutex_);
  if (sources_ == 0xffff) {  // a record has 16 bits for it
    AtomicRef<std::uint64_t>(header().counts.text_left_out).fetch_add(1, std::memory_order_relaxed);
    return 0;
  }
  const SourceHead head{channel, publisher, thread, 0};
  const std::string_view bytes(reinterpret_cast<const char*>(&head), sizeof head);
  return add_text(TextKind::source, sources_ + 1, bytes, thread_name)
             ? static_cast<std::uint16_t>(++sources_)
             : std::uint16_t{0};
}

void RingFile::before_fork() noexcept {
  text_mutex_.lock();
}
void RingFile::after_fork() noexcept {
  text_mutex_.unlock();
}
void RingFile::in_child() noexcept {
  // The file is the parent's evidence. What is in the middle of a record here goes on in memory of
  // the child's own, of the same size.
  constexpr int kOver = MAP_ANONYMOUS | MAP_FIXED;
  // Private memory counts against RLIMIT_DATA, and shared memory does not.
  if (::mmap(at_, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | kOver, -1, 0) == MAP_FAILED)
    (void)::mmap(at_, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | kOver, -1, 0);
  text_mutex_.unlock();
}

}  // namespace ringmain::engine::flight
