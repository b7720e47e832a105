// Where do a trace's bytes come from? A file or a pipe, plain or gzip, read front to back and
// again.
//
// gzip is known by its first two bytes, whatever the file's name; several members are one text.
// A regular file is read with pread, so it may be standard input too. What cannot be read twice is
// copied to an unlinked file on the way, so that wrong input is refused before much was copied.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "bus/result.hpp"

#include "adapters/sources/replay/kineto_options.hpp"

namespace ringmain::replay {

/// Memory: two fixed buffers and zlib's window, about 0.4 MiB. Threads: one at a time.
class KinetoBytes {
 public:
  /// `path` "-" is standard input. `again`: rewind() will be called.
  static Result<KinetoBytes> open(const std::string& path, const KinetoOptions& options,
                                  bool again);
  /// Of a descriptor, which it closes, from where that stands; `name` for messages.
  static Result<KinetoBytes> of_descriptor(int fd, const std::string& name);
  KinetoBytes(KinetoBytes&&) noexcept;
  KinetoBytes& operator=(KinetoBytes&&) noexcept;
  ~KinetoBytes();

  /// The next bytes of the text, unzipped; 0 at its end. After an Error: the same Error.
  Result<std::size_t> read(std::span<char> to);
  /// Back to the first byte. A pipe must have been opened with `again`, and gives the second time
  /// what was read the first time.
  void rewind();

  [[nodiscard]] const std::string& path() const noexcept;  // for messages
  [[nodiscard]] std::uint64_t position() const noexcept;   // bytes taken, as stored
  [[nodiscard]] std::uint64_t size() const noexcept;       // as stored; 0 for a pipe
  [[nodiscard]] bool compressed() const noexcept;

 private:
  struct Core;
  explicit KinetoBytes(std::unique_ptr<Core> core) noexcept;
  static Result<KinetoBytes> over(std::unique_ptr<Core> core, bool again);
  std::unique_ptr<Core> core_;
};

}  // namespace ringmain::replay
