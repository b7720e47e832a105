#include "bus/event.hpp"

#include <algorithm>
#include <cstdlib>
#include <cxxabi.h>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/system/fork.hpp"

namespace ringmain {
namespace {

/// Owns what a Schema's views point to, because the code that described it may be unloaded.
struct KeptSchema {
  std::string name, type;
  std::vector<std::string> words;
  std::vector<FieldSchema> fields;
  Schema schema;
};

std::string readable(std::string_view type) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> plain(
      abi::__cxa_demangle(std::string(type).c_str(), nullptr, nullptr, &status), &std::free);
  return plain ? std::string(plain.get()) : std::string(type);
}

std::unique_ptr<KeptSchema> keep(const Schema& made) {
  auto kept = std::make_unique<KeptSchema>();
  kept->name = made.name;
  kept->type = readable(made.type);
  kept->words.reserve(2 * made.fields.size());
  for (FieldSchema f : made.fields) {
    f.name = kept->words.emplace_back(f.name);
    f.enumerators = kept->words.emplace_back(f.enumerators);
    kept->fields.push_back(f);
  }
  kept->schema = {kept->name, made.hash, made.bytes, kept->fields, kept->type};
  return kept;
}

struct Schemas {
  engine::ForkMutex mutex{engine::kForkSchemas};
  std::map<std::uint64_t, std::unique_ptr<KeptSchema>> by_hash;
};

Schemas& schemas() {
  static Schemas& all =
      *new Schemas;  // never destroyed: sinks may read after static objects are gone
  return all;
}
// Made before there are threads: a fork while another thread holds the guard would leave it locked.
[[maybe_unused]] const Schemas& schemas_made_at_load = schemas();

}  // namespace

namespace detail {
const Schema& keep_schema(const Schema& made) {
  Schemas& all = schemas();
  const std::lock_guard lock(all.mutex);
  auto& kept = all.by_hash[made.hash];
  if (!kept) kept = keep(made);
  return kept->schema;
}

std::string conflict_of(std::string_view channel, const Schema& has, const Schema& asked) {
  const std::string holds = "channel '" + std::string(channel) + "' holds " + std::string(has.type);
  const bool alike = has.name == asked.name && has.bytes == asked.bytes &&
                     std::equal(has.fields.begin(), has.fields.end(), asked.fields.begin(),
                                asked.fields.end(), [](const auto& a, const auto& b) {
                                  return a.name == b.name && a.kind == b.kind && a.unit == b.unit &&
                                         a.bytes == b.bytes && a.enumerators == b.enumerators;
                                });
  for (std::size_t i = 0; alike && i < has.fields.size(); ++i) {
    if (has.fields[i].offset == asked.fields[i].offset) continue;
    return holds + " with field '" + std::string(has.fields[i].name) + "' at offset " +
           std::to_string(has.fields[i].offset) + ", not " +
           std::to_string(asked.fields[i].offset) + "; lay both structs out alike";
  }
  return holds + ", not " + std::string(asked.type) + "; give one of the two another name";
}
}  // namespace detail

std::string_view to_string(Unit unit) noexcept {
  switch (unit) {
    case Unit::none:
      return "";
    case Unit::bytes:
      return "bytes";
    case Unit::ns:
      return "ns";
    case Unit::address:
      return "address";
    case Unit::count:
      return "count";
    case Unit::device:
      return "device";
    case Unit::stream:
      return "stream";
    case Unit::id:
      return "id";
  }
  return "?";
}

std::string_view to_string(Kind kind) noexcept {
  switch (kind) {
    case Kind::u8:
      return "u8";
    case Kind::u16:
      return "u16";
    case Kind::u32:
      return "u32";
    case Kind::u64:
      return "u64";
    case Kind::i8:
      return "i8";
    case Kind::i16:
      return "i16";
    case Kind::i32:
      return "i32";
    case Kind::i64:
      return "i64";
    case Kind::f32:
      return "f32";
    case Kind::f64:
      return "f64";
    case Kind::boolean:
      return "bool";
    case Kind::enumeration:
      return "enum";
    case Kind::name:
      return "name";
    case Kind::text:
      return "text";
  }
  return "?";
}

}  // namespace ringmain
