// How does a program read a Kineto trace? Record by record, front to back, in bounded memory.
//
//   auto reader = KinetoReader::open("trace.json.gz");
//   KinetoRecord record;
//   for (;;) {
//     auto more = reader.value().next(record);
//     if (!more) return more.error();   // cut short, damaged, not a trace: one sentence
//     if (!more.value()) break;
//   }
#pragma once
#include <cstdint>
#include <string>
#include <utility>

#include "bus/result.hpp"

#include "adapters/sources/replay/kineto_bytes.hpp"
#include "adapters/sources/replay/kineto_options.hpp"
#include "adapters/sources/replay/kineto_parse.hpp"
#include "adapters/sources/replay/kineto_record.hpp"
#include "adapters/sources/replay/kineto_splitter.hpp"

namespace ringmain::replay {

/// What a trace says of itself, outside its records. Complete when next() has returned false: some
/// writers put it last.
struct KinetoHeader {
  std::int64_t base_ns = 0;  // "baseTimeNanoseconds": what rewind() wants
  KinetoRanks ranks;
};

/// Threads: one at a time. Memory: KinetoOptions::memory_max at most, and far less for real traces.
class KinetoReader {
 public:
  /// `path` "-" is standard input. `again`: rewind() will be called, so a pipe must be kept.
  static Result<KinetoReader> open(const std::string& path, const KinetoOptions& options = {},
                                   bool again = false);

  /// Fills `record`; false after the last. What cannot be read is counted and passed over; an Error
  /// ends the reading, after all records before the fault, and is given again by later calls.
  Result<bool> next(KinetoRecord& record);
  /// Back to the first record, from now on with `base_ns` added to each ts_ns. A pipe gives what
  /// was read of it the first time.
  void rewind(std::int64_t base_ns = 0);

  [[nodiscard]] const KinetoCounts& counts() const noexcept { return counts_; }
  [[nodiscard]] KinetoHeader header() const;
  [[nodiscard]] std::uint64_t position() const noexcept { return splitter_.bytes().position(); }
  /// Bytes of the file as stored, 0 for a pipe: position() / size() is the progress.
  [[nodiscard]] std::uint64_t size() const noexcept { return splitter_.bytes().size(); }

 private:
  explicit KinetoReader(RecordSplitter splitter) : splitter_(std::move(splitter)) {}
  bool rebase(KinetoRecord& record) const noexcept;

  RecordSplitter splitter_;
  RecordParser parser_;
  KinetoCounts counts_;
  std::int64_t base_ns_ = 0;
};

}  // namespace ringmain::replay
