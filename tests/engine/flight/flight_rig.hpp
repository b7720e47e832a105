// Records that say what they must hold: each is made from its number alone, so that a reader can
// tell a whole one from any mixture, and knows where it lies.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <unistd.h>
#include <vector>

#include "engine/flight/ring_file.hpp"
#include "engine/flight/track_reading.hpp"

namespace ringmain::tests {

namespace flight = engine::flight;

/// A number that depends on all of `seed`.
inline std::uint64_t mixed(std::uint64_t seed) {
  seed += 0x9e3779b97f4a7c15;
  seed = (seed ^ seed >> 30) * 0xbf58476d1ce4e5b9;
  seed = (seed ^ seed >> 27) * 0x94d049bb133111eb;
  return seed ^ seed >> 31;
}

/// The `number`-th record of one writer.
struct Expected {
  Expected(std::uint64_t writer, std::uint64_t number) {
    std::uint64_t state = mixed(writer * 1000003 + number);
    // Most are small; some take all the cells that a record can have.
    bytes = state % 16 == 0 ? 1024 - state / 16 % 100 : state / 16 % 160;
    head.time_ns = static_cast<std::int64_t>(mixed(state + 1) >> 1);
    head.sequence = number;
    head.schema = mixed(state + 2);
    head.source = static_cast<std::uint16_t>(mixed(state + 3));
    head.code = static_cast<PublishCode>(mixed(state + 4) % 9);
    for (std::size_t i = 0; i < payload.size(); i += 8) {
      state = mixed(state);
      std::memcpy(payload.data() + i, &state, 8);
    }
  }
  flight::RecordHead head;
  std::size_t bytes = 0;
  std::array<std::byte, 1024> payload;

  [[nodiscard]] bool is(const flight::TrackRead& read, const flight::RecordRead& record) const {
    return record.payload_bytes == bytes && record.head.time_ns == head.time_ns &&
           record.head.sequence == head.sequence && record.head.schema == head.schema &&
           record.head.source == head.source && record.head.code == head.code &&
           std::memcmp(read.payloads.data() + record.payload_at, payload.data(), bytes) == 0;
  }
};

/// What must be readable of a ring of `cells` after `begun` records were begun and `done` of them
/// were over, as the sizes of all of them say: "" if `read` is just that, else what is wrong.
inline std::string compare(std::uint64_t writer, const flight::TrackRead& read, std::uint64_t cells,
                           std::uint64_t done, std::uint64_t begun) {
  if (read.impossible) return "its words contradict each other";
  if (read.written < done || read.written > begun)
    return "written " + std::to_string(read.written) + " of " + std::to_string(done) + " to " +
           std::to_string(begun);
  if (read.unreadable != 0) return std::to_string(read.unreadable) + " are unreadable";
  if (read.written != read.overwritten + read.records.size())
    return "written is not readable and overwritten";
  if (begun - read.written > 1) return "more than one was under way";
  for (std::size_t i = 0; i < read.records.size(); ++i) {
    const flight::RecordRead& record = read.records[i];
    if (record.number != read.overwritten + 1 + i) return "a record is out of its order";
    if (!Expected(writer, record.number).is(read, record))
      return "record " + std::to_string(record.number) + " is not what was written";
  }
  // By the sizes: which of them lie within the last `cells` that were reserved?
  std::uint64_t reserved = 0;
  const std::uint64_t last = read.written + (read.under_way ? 1 : 0);
  for (std::uint64_t n = last; n > 0 && reserved <= cells; --n) {
    reserved += flight::cells_of(Expected(writer, n).bytes);
    const bool must = reserved <= cells && n <= read.written;
    if (must != (n > read.overwritten && n <= read.written) && n <= read.written)
      return "record " + std::to_string(n) + (must ? " is missing" : " must have been overwritten");
  }
  return "";
}

/// A folder that goes with its test.
class Folder {
 public:
  Folder() {
    std::string made = (std::filesystem::temp_directory_path() / "flight-XXXXXX").string();
    path_ = ::mkdtemp(made.data()) == nullptr ? std::string() : made;
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code ignored;
    std::filesystem::permissions(path_, std::filesystem::perms::owner_all, ignored);
    std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(path_))
      names.push_back(entry.path().filename().string());
    return names;
  }

 private:
  std::string path_;
};

/// Small rings, so that they go round often.
inline flight::RingFileOptions small_rings(const std::string& folder) {
  flight::RingFileOptions options;
  options.folder = folder;
  options.file_bytes = 1u << 20;
  options.ring_bytes = 4096;
  options.text_bytes = 64u << 10;
  options.operations = 64;
  return options;
}

}  // namespace ringmain::tests
