// What are the opcodes of a pickle called? All of them up to protocol 5, since one that is refused
// is refused by its name.
//
// Source: Python's pickletools, "Pickle opcodes".
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace ringmain::flight {

enum Opcode : std::uint8_t {
  kMark = '(',
  kStop = '.',
  kBinFloat = 'G',
  kBinInt = 'J',
  kBinInt1 = 'K',
  kBinInt2 = 'M',
  kNone = 'N',
  kBinUnicode = 'X',
  kEmptyList = ']',
  kAppend = 'a',
  kDict = 'd',
  kAppends = 'e',
  kBinGet = 'h',
  kLongBinGet = 'j',
  kList = 'l',
  kBinPut = 'q',
  kLongBinPut = 'r',
  kSetItem = 's',
  kTuple = 't',
  kSetItems = 'u',
  kEmptyDict = '}',
  kEmptyTuple = ')',
  kProto = 0x80,
  kTuple1 = 0x85,
  kTuple2 = 0x86,
  kTuple3 = 0x87,
  kNewTrue = 0x88,
  kNewFalse = 0x89,
  kLong1 = 0x8a,
  kShortBinUnicode = 0x8c,
  kBinUnicode8 = 0x8d,
  kMemoize = 0x94,
  kFrame = 0x95
};

/// Its name, or "0xff" for what is no opcode.
[[nodiscard]] std::string opcode_name(std::uint8_t opcode);
/// True for those by which a pickle calls code or makes objects: GLOBAL, REDUCE, BUILD and their
/// kin.
[[nodiscard]] bool makes_objects(std::uint8_t opcode) noexcept;

}  // namespace ringmain::flight
