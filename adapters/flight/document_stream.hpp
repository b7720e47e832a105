// How is a document written, as a pickle or as JSON, while it is being told, without memory for the
// whole of it?
//
// What comes out is what to_pickle() and to_json() of document_writer.hpp make of that document,
// byte by byte, as long as the memo has room for its texts; later ones are written again each time.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "adapters/flight/byte_sink.hpp"
#include "adapters/flight/document.hpp"

namespace ringmain::flight {

enum class DumpFormat : std::uint8_t { pickle, json };

/// Which texts has a pickle, and where in the reader's memo are they? Of a fixed size: 92 KiB, of
/// which only what is used is touched. Threads: one at a time.
class PickleMemo {
 public:
  enum : std::size_t { kTexts = 2048, kCells = 2 * kTexts, kBytes = 65536, kLongest = 4096 };
  enum : std::uint32_t { kNowhere = ~0u };
  struct Place {
    std::uint32_t number = kNowhere;  // in the reader's memo
    bool is_new = false;
  };

  PickleMemo() noexcept {}  // clear() comes first
  void clear() noexcept;
  /// Where a text is laid out that is looked for: kLongest bytes.
  [[nodiscard]] char* stage() noexcept { return bytes_.data() + used_; }
  /// The text that lies there. kNowhere: it is new, and there is no room to keep it.
  [[nodiscard]] Place find(std::size_t bytes) noexcept;

 private:
  struct Text {
    std::uint32_t from, bytes;
  };
  std::uint32_t texts_ = 0, used_ = 0;
  std::array<std::uint16_t, kCells> cells_;  // number of a text, from 1 on; 0: free
  std::array<Text, kTexts> known_;
  std::array<char, kBytes + kLongest> bytes_;
};

/// Values are told in their order; of a dict each behind its key. A container's end is told, too,
/// and both times whether it is empty. Throws what the sink does. Threads: one.
class DocumentStream {
 public:
  DocumentStream(ByteSink& to, DumpFormat format, PickleMemo& memo);

  void open_dict(bool is_empty = false) { open(Value::Kind::dict, is_empty); }
  void close_dict(bool is_empty = false) { close(Value::Kind::dict, is_empty); }
  void open_list(bool is_empty = false) { open(Value::Kind::list, is_empty); }
  void close_list(bool is_empty = false) { close(Value::Kind::list, is_empty); }
  /// Two items come. JSON has lists in their place.
  void open_pair() { open(Value::Kind::tuple, false); }
  void close_pair() { close(Value::Kind::tuple, false); }

  void key(std::string_view name);
  void text(std::string_view text);
  /// The same in pieces, which have so many bytes together, all of them printable ASCII without
  /// quotes. A pickle has it anew each time.
  void open_text(std::size_t bytes);
  void add_to_text(std::string_view piece) { to_ += piece; }
  void close_text();
  void whole(std::int64_t number);
  void real(double number);
  void boolean(bool is_true);
  void none();
  /// Of the document.
  void end();

 private:
  void open(Value::Kind kind, bool is_empty);
  void close(Value::Kind kind, bool is_empty);
  void before_value();
  void opcode(std::uint8_t code) { to_ += static_cast<char>(code); }
  void number(std::uint64_t value, std::size_t bytes);
  void memo(std::uint8_t one_byte, std::uint8_t four_bytes, std::uint32_t place);
  void pickle_whole(std::int64_t value);
  void pickle_text(std::string_view text);

  ByteSink& to_;
  PickleMemo& memo_;
  const bool pickle_;
  bool first_ = true;  // JSON: nothing lies between the last bracket and here
  bool after_key_ = false;
};

}  // namespace ringmain::flight
