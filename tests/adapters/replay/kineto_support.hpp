// What do the tests of Kineto traces share? Traces made by hand, and readings of them.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bus/result.hpp"

#include "adapters/sources/replay/kineto_trace.hpp"

namespace ringmain::replay {

/// Bytes that can be opened by a path as long as this lives; no file is left afterwards.
class InMemory {
 public:
  explicit InMemory(std::string_view bytes);
  InMemory(const InMemory&) = delete;
  InMemory& operator=(const InMemory&) = delete;
  ~InMemory();
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  int fd_ = -1;
  std::string path_;
};

/// The most memory that this process has held so far.
[[nodiscard]] std::uint64_t resident_bytes_max();

/// Sanitizers keep freed memory, so bounds on memory do not hold under them.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#elif defined(__has_feature)
constexpr bool kSanitized = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
constexpr bool kSanitized = false;
#endif

[[nodiscard]] std::string gzip(std::string_view text);

/// {"schemaVersion": 1, "traceEvents": [ records… ]}
[[nodiscard]] std::string object_trace(const std::vector<std::string>& records,
                                       std::string_view members_after = "");

/// A record, with its views copied.
struct Seen {
  std::uint64_t number = 0;
  char phase = '\0';
  std::string name;
  std::string category;
  std::string process;
  std::string thread;
  std::int64_t ts_ns = 0;
  std::int64_t duration_ns = 0;
};

struct Reading {
  std::vector<Seen> records;
  KinetoCounts counts;
  KinetoHeader header;
  std::optional<Error> error;

  [[nodiscard]] std::uint64_t skipped(Skip reason) const {
    return counts.skipped[static_cast<std::size_t>(reason)];
  }
};
[[nodiscard]] Reading read_records(const std::string& path, const KinetoOptions& options = {});
[[nodiscard]] Reading read_text(std::string_view text, const KinetoOptions& options = {});

struct Mapping {
  std::vector<KinetoMapped> events;
  std::vector<KinetoLane> lanes;
  std::map<std::string, std::uint64_t> channels;  // events by channel
  KinetoCounts counts;
  std::uint64_t crowded = 0;
  std::optional<Error> error;

  [[nodiscard]] std::uint64_t on(const std::string& channel) const {
    const auto found = channels.find(channel);
    return found == channels.end() ? 0 : found->second;
  }
  /// The events of one type, in order.
  template <class E>
  [[nodiscard]] std::vector<E> all() const {
    std::vector<E> found;
    for (const KinetoMapped& mapped : events) {
      if (const E* event = std::get_if<E>(&mapped.event)) found.push_back(*event);
    }
    return found;
  }
  /// Their stamps' times.
  template <class E>
  [[nodiscard]] std::vector<std::int64_t> times() const {
    std::vector<std::int64_t> found;
    for (const KinetoMapped& mapped : events) {
      if (std::holds_alternative<E>(mapped.event)) found.push_back(mapped.time_ns);
    }
    return found;
  }
};
/// `keep`: hold the events too, not only their counts.
[[nodiscard]] Mapping map_trace(const std::string& path, bool keep = true,
                                const KinetoOptions& options = {});
[[nodiscard]] Mapping map_text(std::string_view text, const KinetoOptions& options = {});

}  // namespace ringmain::replay
