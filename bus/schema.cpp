#include <cstdlib>
#include <cxxabi.h>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "ringmain/engine/fork.hpp"

#include "ringmain/bus/erased.hpp"
#include "ringmain/bus/event.hpp"
#include "ringmain/bus/result.hpp"

namespace ringmain {
namespace {

/// Owns what a Schema's views point to: the code that described it may be unloaded.
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
// Made before there are threads: a fork while another one is in the guard would leave it locked.
[[maybe_unused]] const Schemas& made_at_load = schemas();

}  // namespace

namespace detail {
const Schema& keep_schema(const Schema& made) {
  Schemas& all = schemas();
  const std::lock_guard lock(all.mutex);
  auto& kept = all.by_hash[made.hash];
  if (!kept) kept = keep(made);
  return kept->schema;
}

std::uint64_t schema_hash_of(const Schema& schema) noexcept {
  constexpr std::uint64_t kPrime = 0x100000001b3ull;
  std::uint64_t h = hash_bytes(kHashStart, schema.name);
  for (const FieldSchema& f : schema.fields) {
    h = hash_bytes(hash_bytes(h, f.name), f.enumerators);
    h = (h ^ static_cast<std::uint64_t>(f.unit)) * kPrime;
    h = (h ^ static_cast<std::uint64_t>(f.kind)) * kPrime;
    h = (h ^ f.bytes) * kPrime;
  }
  return (h ^ schema.bytes) * kPrime;
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

std::string_view to_string(PublishCode code) noexcept {
  switch (code) {
    case PublishCode::accepted:
      return "accepted";
    case PublishCode::unheard:
      return "unheard";
    case PublishCode::full:
      return "full";
    case PublishCode::closed:
      return "closed";
    case PublishCode::would_deadlock:
      return "would_deadlock";
    case PublishCode::no_memory:
      return "no_memory";
    case PublishCode::too_deep:
      return "too_deep";
    case PublishCode::vetoed:
      return "vetoed";
    case PublishCode::forked:
      return "forked";
  }
  return "?";
}

std::string_view to_string(Detached detached) noexcept {
  switch (detached) {
    case Detached::done:
      return "done";
    case Detached::deferred:
      return "deferred";
    case Detached::timeout:
      return "timeout";
    case Detached::was_not_attached:
      return "was_not_attached";
  }
  return "?";
}

}  // namespace ringmain
