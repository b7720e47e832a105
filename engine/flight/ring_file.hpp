// Where do a process's records lie, so that they are there when it is not?
//
// In one file, mapped by the process that writes it: what it stored belongs to Linux and survives
// SIGKILL, without a last step. The file is made whole before its first use, so that no later store
// can find the disk full, and is not opened again. Where no file can be had the same bytes are
// memory of the process, and a sentence says why. What is in it: layout.hpp, docs/flight-ring.md.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "../system/atomics.hpp"
#include "../system/fork.hpp"
#include "layout.hpp"
#include "open_operations.hpp"
#include "ring_writer.hpp"

namespace ringmain::engine::flight {

/// Which process of the job this is, as the file will say it.
struct FlightIdentity {
  std::uint32_t rank = 0, local_rank = 0, world_size = 1, local_world_size = 1, attempt = 0;
  std::string host, job, launcher;
};

struct RingFileOptions {
  std::string folder;                  // "": flight_folders()
  std::size_t file_bytes = 8u << 20;   // 1 MiB at least
  std::size_t ring_bytes = 64u << 10;  // of each ring's cells: a power of two, 4 KiB at least
  std::size_t operations = 4096;       // places of the table of open operations
  std::size_t text_bytes = 512u << 10;
  std::size_t kept = 16;  // files of dead processes that stay in the folder; ~0: all
  FlightIdentity identity;
};

/// Threads: any, but for what a function says. In a forked child it refuses all, and what was taken
/// from it before the fork writes to memory that nobody reads.
class RingFile final : public ForkWitness {
 public:
  /// Never fails for want of a file: complaint(). Throws std::bad_alloc, or
  /// std::invalid_argument for sizes that do not go together.
  [[nodiscard]] static std::unique_ptr<RingFile> open(const RingFileOptions& options);
  /// After its writers are not used any more. The file stays.
  ~RingFile() override;
  RingFile(const RingFile&) = delete;
  RingFile& operator=(const RingFile&) = delete;

  /// "": in memory.
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  /// Why it is in memory: one sentence, or "".
  [[nodiscard]] const std::string& complaint() const noexcept { return complaint_; }

  // Text. Each takes a lock and returns 0, and counts, where there is no room for more. Names and
  // schemas have numbers of their own.
  bool add_name(std::uint32_t id, std::string_view text) noexcept;
  bool add_schema(std::uint64_t hash, std::string_view description) noexcept;
  std::uint32_t add_channel(std::string_view name, std::uint64_t schema) noexcept;
  std::uint32_t add_pattern(std::string_view pattern) noexcept;
  /// One publisher, in one thread: what records call their source. The last quarter of the room is
  /// not for these.
  std::uint16_t add_source(std::uint32_t channel, std::uint32_t publisher, std::uint32_t thread,
                           std::string_view thread_name) noexcept;

  /// A ring for this thread: a fresh one while more than a quarter of them are, so that what
  /// threads left before their ends stays; then the one that a thread of the same pattern left
  /// longest ago; then one of the last quarter. Never another pattern's. Null, and counted, where
  /// there is none. Async-signal-safe. Progress: lock-free, no system call.
  [[nodiscard]] RingWriter* claim(std::uint32_t pattern) noexcept;
  /// Its thread ends, or records no more: another one may go on behind its records.
  void release(RingWriter& writer) noexcept;
  /// An event had no ring.
  void count_unrecorded() noexcept;

  [[nodiscard]] OpenOperations& operations() noexcept { return operations_; }
  /// Notes what both clocks say. Takes a lock.
  void note_clocks() noexcept;

  /// All of it, as a reader of this process sees it; bytes() of them. Words change meanwhile.
  [[nodiscard]] const std::byte* memory() const noexcept { return at_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::size_t rings() const noexcept { return rings_; }

  void before_fork() noexcept override;
  void after_fork() noexcept override;
  void in_child() noexcept override;

 private:
  struct Sizes;
  RingFile() noexcept;
  void map(const RingFileOptions& options, std::uint64_t process_start);
  void lay_out(const Sizes& sizes, const RingFileOptions& options);
  bool add_text(TextKind kind, std::uint64_t id, std::string_view first,
                std::string_view second = {}) noexcept;
  [[nodiscard]] Header& header() noexcept { return *reinterpret_cast<Header*>(at_); }
  [[nodiscard]] RingLine& line(std::size_t i) noexcept;
  /// The ring to try; rings_: none is left. `ended`: what the claim of one says that may go on.
  [[nodiscard]] std::size_t to_claim(std::uint64_t ended) const noexcept;

  std::byte* at_ = nullptr;
  std::size_t bytes_ = 0, rings_ = 0;
  std::unique_ptr<RingWriter[]> writers_;
  std::unique_ptr<Atomic<std::uint64_t>[]> claims_;  // pattern, and RingState in the lowest bits
  std::unique_ptr<Atomic<std::uint64_t>[]> ends_;  // of each ring: the how manieth end of a thread
  Atomic<std::uint64_t> ended_{0};
  OpenOperations operations_;
  std::string path_, complaint_;
  Born born_;
  bool watching_ = false;
  std::mutex text_mutex_;
  std::uint64_t text_end_ = 0;  // with the lock, as what follows
  std::uint32_t channels_ = 0, patterns_ = 0, sources_ = 0;
};

}  // namespace ringmain::engine::flight
