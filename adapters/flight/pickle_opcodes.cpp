#include "adapters/flight/pickle_opcodes.hpp"

#include <algorithm>
#include <cstdio>
#include <iterator>

namespace ringmain::flight {
namespace {

struct Named {
  std::uint8_t opcode;
  std::string_view name;
};

constexpr Named kNamed[] = {{'(', "MARK"},
                            {'.', "STOP"},
                            {'0', "POP"},
                            {'1', "POP_MARK"},
                            {'2', "DUP"},
                            {'F', "FLOAT"},
                            {'G', "BINFLOAT"},
                            {'I', "INT"},
                            {'J', "BININT"},
                            {'K', "BININT1"},
                            {'L', "LONG"},
                            {'M', "BININT2"},
                            {'N', "NONE"},
                            {'P', "PERSID"},
                            {'Q', "BINPERSID"},
                            {'R', "REDUCE"},
                            {'S', "STRING"},
                            {'T', "BINSTRING"},
                            {'U', "SHORT_BINSTRING"},
                            {'V', "UNICODE"},
                            {'X', "BINUNICODE"},
                            {'a', "APPEND"},
                            {'b', "BUILD"},
                            {'c', "GLOBAL"},
                            {'d', "DICT"},
                            {'e', "APPENDS"},
                            {'g', "GET"},
                            {'h', "BINGET"},
                            {'i', "INST"},
                            {'j', "LONG_BINGET"},
                            {'l', "LIST"},
                            {'o', "OBJ"},
                            {'p', "PUT"},
                            {'q', "BINPUT"},
                            {'r', "LONG_BINPUT"},
                            {'s', "SETITEM"},
                            {'t', "TUPLE"},
                            {'u', "SETITEMS"},
                            {'}', "EMPTY_DICT"},
                            {']', "EMPTY_LIST"},
                            {')', "EMPTY_TUPLE"},
                            {'B', "BINBYTES"},
                            {'C', "SHORT_BINBYTES"},
                            {0x80, "PROTO"},
                            {0x81, "NEWOBJ"},
                            {0x82, "EXT1"},
                            {0x83, "EXT2"},
                            {0x84, "EXT4"},
                            {0x85, "TUPLE1"},
                            {0x86, "TUPLE2"},
                            {0x87, "TUPLE3"},
                            {0x88, "NEWTRUE"},
                            {0x89, "NEWFALSE"},
                            {0x8a, "LONG1"},
                            {0x8b, "LONG4"},
                            {0x8c, "SHORT_BINUNICODE"},
                            {0x8d, "BINUNICODE8"},
                            {0x8e, "BINBYTES8"},
                            {0x8f, "EMPTY_SET"},
                            {0x90, "ADDITEMS"},
                            {0x91, "FROZENSET"},
                            {0x92, "NEWOBJ_EX"},
                            {0x93, "STACK_GLOBAL"},
                            {0x94, "MEMOIZE"},
                            {0x95, "FRAME"},
                            {0x96, "BYTEARRAY8"},
                            {0x97, "NEXT_BUFFER"},
                            {0x98, "READONLY_BUFFER"}};

constexpr std::string_view kMakeObjects[] = {
    "PERSID", "BINPERSID", "REDUCE", "BUILD", "GLOBAL",    "INST",        "OBJ",
    "NEWOBJ", "EXT1",      "EXT2",   "EXT4",  "NEWOBJ_EX", "STACK_GLOBAL"};

}  // namespace

std::string opcode_name(std::uint8_t opcode) {
  for (const Named& named : kNamed) {
    if (named.opcode == opcode) return std::string(named.name);
  }
  char hexadecimal[8];
  std::snprintf(hexadecimal, sizeof hexadecimal, "0x%02x", opcode);
  return hexadecimal;
}

bool makes_objects(std::uint8_t opcode) noexcept {
  return std::any_of(kNamed, std::end(kNamed), [opcode](const Named& named) {
    return named.opcode == opcode &&
           std::find(kMakeObjects, std::end(kMakeObjects), named.name) != std::end(kMakeObjects);
  });
}

}  // namespace ringmain::flight
