#include "bus/core/schema_text.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <vector>

namespace ringmain::detail {
namespace {

enum : std::size_t { kFieldsMax = 1024 };

/// A word may come from a user's description; a tab or line end in it would be a word's end.
void add_word(std::string& to, std::string_view word, char end) {
  for (const char c : word) to += c == '\t' || c == '\n' ? ' ' : c;
  to += end;
}

std::string_view next_word(std::string_view& left, char end) {
  const std::size_t at = std::min(left.find(end), left.size());
  const std::string_view word = left.substr(0, at);
  left.remove_prefix(std::min(at + 1, left.size()));
  return word;
}

template <class T>
bool read_number(std::string_view word, T& to) {
  const char* const end = word.data() + word.size();
  const auto [stopped, fault] = std::from_chars(word.data(), end, to);
  return fault == std::errc{} && stopped == end && !word.empty();
}

template <class E>
bool read_enum(std::string_view word, E last, E& to) {
  for (unsigned i = 0; i <= static_cast<unsigned>(last); ++i) {
    to = static_cast<E>(i);
    if (to_string(to) == word) return true;
  }
  return false;
}

/// Can a value of that kind be read from so many bytes?
bool fits(Kind kind, std::uint32_t bytes) {
  switch (kind) {
    case Kind::u8:
    case Kind::i8:
    case Kind::boolean:
      return bytes == 1;
    case Kind::u16:
    case Kind::i16:
      return bytes == 2;
    case Kind::u32:
    case Kind::i32:
    case Kind::f32:
    case Kind::name:
      return bytes == 4;
    case Kind::u64:
    case Kind::i64:
    case Kind::f64:
      return bytes == 8;
    case Kind::enumeration:
      return bytes >= 1 && bytes <= 8;
    case Kind::text:
      return bytes >= 8;
  }
  return false;
}

std::optional<FieldSchema> read_field(std::string_view line, std::uint32_t event_bytes) {
  FieldSchema field;
  field.name = next_word(line, '\t');
  const bool known = read_enum(next_word(line, '\t'), Kind::text, field.kind) &&
                     read_enum(next_word(line, '\t'), Unit::id, field.unit) &&
                     read_number(next_word(line, '\t'), field.offset) &&
                     read_number(next_word(line, '\t'), field.bytes);
  field.enumerators = line;
  if (!known || !fits(field.kind, field.bytes)) return std::nullopt;
  if (std::uint32_t{field.offset} + field.bytes > event_bytes) return std::nullopt;
  return field;
}

}  // namespace

std::string text_of(const Schema& schema) {
  std::string text;
  add_word(text, schema.name, '\t');
  add_word(text, std::to_string(schema.bytes), '\t');
  add_word(text, schema.type, '\n');
  for (const FieldSchema& field : schema.fields) {
    add_word(text, field.name, '\t');
    add_word(text, to_string(field.kind), '\t');
    add_word(text, to_string(field.unit), '\t');
    add_word(text, std::to_string(field.offset), '\t');
    add_word(text, std::to_string(field.bytes), '\t');
    add_word(text, field.enumerators, '\n');
  }
  return text;
}

const Schema* schema_of(std::string_view text, std::uint64_t hash) {
  Schema schema;
  std::string_view first = next_word(text, '\n');
  schema.name = next_word(first, '\t');
  if (!read_number(next_word(first, '\t'), schema.bytes)) return nullptr;
  if (schema.bytes == 0 || schema.bytes > engine::kPayloadBytesMax) return nullptr;
  schema.type = first;
  std::vector<FieldSchema> fields;
  while (!text.empty()) {
    const auto field = read_field(next_word(text, '\n'), schema.bytes);
    if (!field || fields.size() == kFieldsMax) return nullptr;
    fields.push_back(*field);
  }
  schema.fields = fields;
  if (schema.name.empty()) {
    // Of a type without a description nothing but its size is known, and its hash cannot be looked
    // at. What is kept is kept for the process: under a hash of its own, or an enemy's file could
    // put it in the place of any type.
    if (!fields.empty()) return nullptr;
    hash = hash_bytes(hash_number(hash_start(), schema.bytes), schema.type);
  } else if (hash_of(schema.name, fields, schema.bytes) != hash) {
    return nullptr;
  }
  schema.hash = hash;
  const Schema& kept = keep_schema(schema);
  return kept.bytes == schema.bytes ? &kept : nullptr;
}

}  // namespace ringmain::detail
