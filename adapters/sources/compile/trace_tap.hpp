// What does PyTorch's structured trace say about compiles? A tap takes one record after the other,
// from a handler in the process that compiles or from the log of a past one, and publishes what
// they mean on the channels named compile.>.
//
//   compile::TraceTap tap(bus);
//   tap.record(R"({"dynamo_start": {"stack": […]}, "frame_id": 0, "frame_compile_id": 0})", "");
//
// The callbacks of torch._dynamo.callback tell of the same compiles: with both, each compile is one
// start and one end. Source: the records that PyTorch 2.13 writes. Records that it does not know,
// or that are damaged, are counted and skipped.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "../../../bus/bus.hpp"

#include "../../../events/compile.hpp"

namespace ringmain::compile {

/// Why a record was not read.
enum class TraceSkip : std::uint8_t {
  bad_json,
  not_an_object,
  no_kind,      // nothing but the keys that all records share
  bad_record,   // its kind's own part is not what it should be
  bad_payload,  // missing, or not readable
  too_large,    // above TraceTap::kBytesMax
  no_memory
};
constexpr std::size_t kTraceSkips = static_cast<std::size_t>(TraceSkip::no_memory) + 1;
[[nodiscard]] std::string_view to_string(TraceSkip skip) noexcept;

/// read = mapped + passed + all skipped.
struct TraceCounts {
  std::uint64_t read = 0;
  std::uint64_t with_payload = 0;
  std::uint64_t mapped = 0;  // became events, if anybody listened
  std::uint64_t passed = 0;  // of kinds that tell nothing of Dynamo's concepts
  std::uint64_t events = 0;  // published or offered to be
  std::array<std::uint64_t, kTraceSkips> skipped{};
  [[nodiscard]] std::uint64_t skipped_total() const noexcept;
};

/// Threads: any, at once. A lock is held while a record is read, never while it is published, so an
/// inline subscriber may cause further records. Nothing throws. A forked child is told nothing,
/// says nothing and never waits: all counts are 0 there.
class TraceTap {
 public:
  static constexpr std::size_t kBytesMax = std::size_t{64} << 20;

  /// Publishes as things happen. One bus for a tap, one tap for a process.
  explicit TraceTap(Bus& bus);
  /// Publishes what is long over: losslessly, with the records' times as stamps. One thread.
  /// no_memory: no lane is left.
  static Result<TraceTap> recorded(Bus& bus);
  TraceTap(TraceTap&&) noexcept;
  TraceTap& operator=(TraceTap&&) noexcept;
  ~TraceTap();

  /// One record: its metadata as JSON, and its payload, "" without one. `time_ns`: when it was
  /// written; 0: now. `thread`: the thread that wrote it; 0: the calling one.
  void record(std::string_view metadata, std::string_view payload, std::int64_t time_ns = 0,
              std::uint32_t thread = 0) noexcept;

  enum class Want : std::uint8_t { nothing, metadata, payload };
  /// What a tap needs of a kind of record; `artifact` is an artifact's name. A handler that looks
  /// first leaves large payloads alone. Progress: wait-free.
  [[nodiscard]] static Want wants(std::string_view kind, std::string_view artifact = {}) noexcept;
  /// All kinds of which it wants anything; "artifact" is one. And all names of artifacts.
  [[nodiscard]] static std::span<const std::string_view> wanted() noexcept;
  [[nodiscard]] static std::span<const std::string_view> wanted_artifacts() noexcept;

  /// The channels that it publishes on.
  [[nodiscard]] static std::span<const std::string_view> channels() noexcept;

  /// A start callback ran. Returns how publishing compile.start ended: `vetoed`, with the reason,
  /// if the compile should be refused.
  PublishResult started(Trigger trigger, std::string_view id) noexcept;
  /// An end callback ran.
  void ended(Trigger trigger, std::string_view id) noexcept;
  /// A guard-complete hook ran. Progress: as publish.
  void guard_checked(bool hit) noexcept;
  /// torch._dynamo.reset() was called.
  void reset() noexcept;
  /// What the number of a file in later stacks stands for; also said by records of kind "str".
  void file_named(std::int64_t number, std::string_view path) noexcept;

  /// Ends what is still open, with Outcome::unknown: nothing more will come.
  void finish() noexcept;

  [[nodiscard]] TraceCounts counts() const;
  /// Records by kind, and artifacts by name; of very many different ones the rest is "(others)".
  [[nodiscard]] std::map<std::string, std::uint64_t> kinds() const;
  [[nodiscard]] std::map<std::string, std::uint64_t> artifacts() const;

 private:
  struct Core;
  explicit TraceTap(std::unique_ptr<Core> core) noexcept;
  std::unique_ptr<Core> core_;
};

}  // namespace ringmain::compile
