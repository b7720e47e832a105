// How does C describe an event, and is the description valid?
#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <vector>

#include "bindings/c/handles.hpp"

namespace ringmain::c {
namespace {

enum : std::size_t { kNameBytesMax = 255 };

std::string in_quotes(std::string_view text) {
  return "'" + std::string(text) + "'";
}

/// "" for a channel's name that patterns can match.
std::string fault_of_name(std::string_view name) {
  if (name.empty()) return "the event's name is empty; give it one, as in train.step";
  if (name.size() > kNameBytesMax) return "the event's name has more than 255 bytes; shorten it";
  if (name.front() == '.' || name.back() == '.' || name.find("..") != name.npos) {
    return "event " + in_quotes(name) + " has an empty token; put one word between two dots";
  }
  if (name.find_first_of("*> \t\r\n") != name.npos) {
    return "event " + in_quotes(name) + " has a blank, * or > in its name; leave them out";
  }
  return {};
}

/// The size and alignment of a value of that type, but for text and enumerations.
constexpr std::array<std::uint32_t, 14> kBytes = {1, 2, 4, 8, 1, 2, 4, 8, 4, 8, 1, 0, 4, 2};
constexpr std::array<const char*, 14> kTypes = {
    "RINGMAIN_U8",   "RINGMAIN_U16",  "RINGMAIN_U32",  "RINGMAIN_U64", "RINGMAIN_I8",
    "RINGMAIN_I16",  "RINGMAIN_I32",  "RINGMAIN_I64",  "RINGMAIN_F32", "RINGMAIN_F64",
    "RINGMAIN_BOOL", "RINGMAIN_ENUM", "RINGMAIN_NAME", "RINGMAIN_TEXT"};

static_assert(kBytes.size() == RINGMAIN_TEXT + 1 && kBytes[RINGMAIN_BOOL] == sizeof(bool) &&
              kBytes[RINGMAIN_NAME] == sizeof(Name) && kBytes[RINGMAIN_TEXT] == alignof(Text<8>));

bool has_size(std::uint32_t type, std::uint32_t size) {
  if (type == RINGMAIN_TEXT) return size >= 8 && size % 8 == 0;
  if (type == RINGMAIN_ENUM) return size == 1 || size == 2 || size == 4 || size == 8;
  return size == kBytes[type];
}

/// "" for a field that lies in its event.
std::string fault_of_field(const ringmain_field& f, std::uint32_t number,
                           const ringmain_event_type& of) {
  const std::string event = "event " + in_quotes(of.name);
  if (f.name == nullptr || *f.name == '\0') {
    return event + ": field " + std::to_string(number) + " has no name; give it one";
  }
  const std::string field = event + ": field " + in_quotes(f.name);
  if (f.type >= kBytes.size()) {
    return field + " is of type " + std::to_string(f.type) +
           ", which there is not; use RINGMAIN_U8 … RINGMAIN_TEXT";
  }
  if (f.unit > RINGMAIN_UNIT_ID) {
    return field + " is in unit " + std::to_string(f.unit) +
           ", which there is not; use RINGMAIN_UNIT_NONE … RINGMAIN_UNIT_ID";
  }
  if (f.enumerators != nullptr && *f.enumerators != '\0' && f.type != RINGMAIN_ENUM) {
    return field + " has enumerators and is a " + kTypes[f.type] + "; make it a RINGMAIN_ENUM";
  }
  if (!has_size(f.type, f.size)) {
    return field + " has " + std::to_string(f.size) + " bytes, which no " + kTypes[f.type] +
           " has; set size to sizeof the member, and type to what it is";
  }
  if (f.offset > of.event_bytes || f.size > of.event_bytes - f.offset) {
    return field + " ends at byte " + std::to_string(std::uint64_t{f.offset} + f.size) + " of " +
           std::to_string(of.event_bytes) +
           "; set offset to offsetof the member, and event_bytes " + "to sizeof the event";
  }
  const std::uint32_t aligned = f.type == RINGMAIN_ENUM ? f.size : kBytes[f.type];
  if (f.offset % aligned != 0) {
    return field + " lies at offset " + std::to_string(f.offset) + ", which is no multiple of " +
           std::to_string(aligned) + "; move it in the struct, or do not pack it";
  }
  return {};
}

/// "" where no two fields share bytes or a name.
std::string fault_of_fields(std::vector<ringmain_field> fields, const ringmain_event_type& of) {
  const std::string event = "event " + in_quotes(of.name);
  std::sort(fields.begin(), fields.end(),
            [](const auto& a, const auto& b) { return a.offset < b.offset; });
  for (std::size_t i = 1; i < fields.size(); ++i) {
    if (fields[i].offset < fields[i - 1].offset + fields[i - 1].size) {
      return event + ": fields " + in_quotes(fields[i - 1].name) + " and " +
             in_quotes(fields[i].name) + " share bytes; look at their offsets";
    }
  }
  std::sort(fields.begin(), fields.end(), [](const auto& a, const auto& b) {
    return std::string_view(a.name) < std::string_view(b.name);
  });
  for (std::size_t i = 1; i < fields.size(); ++i) {
    if (std::string_view(fields[i].name) == fields[i - 1].name) {
      return event + " has two fields " + in_quotes(fields[i].name) + "; give one another name";
    }
  }
  return {};
}

/// The fields, however long their caller's struct is.
ringmain_code read_fields(const ringmain_event_type& type, std::vector<ringmain_field>& fields) {
  if (type.fields_count == 0) return RINGMAIN_OK;
  if (type.fields == nullptr) return fail(RINGMAIN_REFUSED, "ringmain_event_type.fields is NULL");
  if (type.field_bytes < sizeof(ringmain_field) || type.field_bytes > kStructBytesMax) {
    return fail(RINGMAIN_REFUSED, "ringmain_event_type.field_bytes is " +
                                      std::to_string(type.field_bytes) +
                                      "; set it to sizeof(ringmain_field)");
  }
  const auto* at = reinterpret_cast<const unsigned char*>(type.fields);
  for (std::uint32_t i = 0; i < type.fields_count; ++i, at += type.field_bytes) {
    std::memcpy(&fields.emplace_back(), at, sizeof(ringmain_field));
    if (auto fault = fault_of_field(fields.back(), i, type); !fault.empty())
      return fail(RINGMAIN_REFUSED, fault);
  }
  if (auto fault = fault_of_fields(fields, type); !fault.empty())
    return fail(RINGMAIN_REFUSED, fault);
  return RINGMAIN_OK;
}

ringmain_code check_event(const ringmain_event_type& type) {
  if (type.name == nullptr) return fail(RINGMAIN_REFUSED, "ringmain_event_type.name is NULL");
  if (auto fault = fault_of_name(type.name); !fault.empty()) return fail(RINGMAIN_REFUSED, fault);
  if (type.event_bytes == 0 || type.event_bytes > RINGMAIN_EVENT_BYTES_MAX) {
    return fail(RINGMAIN_REFUSED, "event " + in_quotes(type.name) + " has " +
                                      std::to_string(type.event_bytes) +
                                      " bytes; an event has 1 … 1024");
  }
  if (type.fields_count > type.event_bytes) {
    return fail(RINGMAIN_REFUSED, "event " + in_quotes(type.name) + " has more fields than bytes");
  }
  return RINGMAIN_OK;
}

// define() and field_of() cast one to the other.
static_assert(same(RINGMAIN_U8, Kind::u8) && same(RINGMAIN_U16, Kind::u16) &&
              same(RINGMAIN_U32, Kind::u32) && same(RINGMAIN_U64, Kind::u64) &&
              same(RINGMAIN_I8, Kind::i8) && same(RINGMAIN_I16, Kind::i16) &&
              same(RINGMAIN_I32, Kind::i32) && same(RINGMAIN_I64, Kind::i64) &&
              same(RINGMAIN_F32, Kind::f32) && same(RINGMAIN_F64, Kind::f64) &&
              same(RINGMAIN_BOOL, Kind::boolean) && same(RINGMAIN_ENUM, Kind::enumeration) &&
              same(RINGMAIN_NAME, Kind::name) && same(RINGMAIN_TEXT, Kind::text));
static_assert(same(RINGMAIN_UNIT_NONE, Unit::none) && same(RINGMAIN_UNIT_BYTES, Unit::bytes) &&
              same(RINGMAIN_UNIT_NS, Unit::ns) && same(RINGMAIN_UNIT_ADDRESS, Unit::address) &&
              same(RINGMAIN_UNIT_COUNT, Unit::count) && same(RINGMAIN_UNIT_DEVICE, Unit::device) &&
              same(RINGMAIN_UNIT_STREAM, Unit::stream) && same(RINGMAIN_UNIT_ID, Unit::id));

/// C's limit is C++'s: an event that is too large for one is for the other.
template <std::size_t N>
struct OfBytes {
  std::byte bytes[N];
};
static_assert(Event<OfBytes<RINGMAIN_EVENT_BYTES_MAX>> &&
              !Event<OfBytes<RINGMAIN_EVENT_BYTES_MAX + 1>>);

ringmain_code define(Bus& bus, const ringmain_event_type& type, engine::ChannelCore** made) {
  if (const auto code = check_event(type)) return code;
  std::vector<ringmain_field> fields;
  if (const auto code = read_fields(type, fields)) return code;
  std::vector<FieldSchema> described;
  for (const ringmain_field& f : fields) {
    described.push_back({f.name, f.enumerators == nullptr ? "" : f.enumerators,
                         static_cast<std::uint16_t>(f.offset), static_cast<std::uint16_t>(f.size),
                         static_cast<Unit>(f.unit), static_cast<Kind>(f.type)});
  }
  const std::string from = "a C event of " + std::to_string(type.event_bytes) + " bytes";
  Schema schema{type.name, 0, type.event_bytes, described, from};
  schema.hash = ringmain::detail::schema_hash_of(schema);
  auto channel = ringmain::detail::Erased::channel(bus, ringmain::detail::keep_schema(schema));
  if (!channel) return fail(channel.error());
  *made = channel.value();
  return RINGMAIN_OK;
}

}  // namespace

ringmain_field field_of(const FieldSchema& f) noexcept {
  return {f.name.data(),
          f.enumerators.data(),
          static_cast<std::uint32_t>(f.kind),
          static_cast<std::uint32_t>(f.unit),
          f.offset,
          f.bytes};
}

ringmain_code give_field(const Schema& schema, std::uint32_t number, ringmain_field* field) {
  if (field == nullptr) return fail(RINGMAIN_REFUSED, "field is NULL; give a place for it");
  if (number >= schema.fields.size()) {
    return fail(RINGMAIN_NOT_FOUND, "there is no field " + std::to_string(number) + ", only " +
                                        std::to_string(schema.fields.size()) + ", from 0");
  }
  *field = field_of(schema.fields[number]);
  return RINGMAIN_OK;
}

}  // namespace ringmain::c

using namespace ringmain::c;  // NOLINT(google-build-using-namespace): what follows is its face

extern "C" {

ringmain_code ringmain_define(ringmain_bus* bus, const ringmain_event_type* type,
                              ringmain_channel** channel) {
  return guarded([&] {
    if (bus == nullptr) return fail(RINGMAIN_REFUSED, "bus is NULL; open one");
    if (type == nullptr) return fail(RINGMAIN_REFUSED, "type is NULL; describe the event");
    if (channel == nullptr) return fail(RINGMAIN_REFUSED, "channel is NULL; give a place for it");
    ringmain_event_type known;
    if (const auto code = read_struct(type, "ringmain_event_type", known)) return code;
    ringmain::engine::ChannelCore* core = nullptr;
    if (const auto code = define(*bus->bus, known, &core)) return code;
    *channel = bus->handle(*core);
    return ringmain_code{RINGMAIN_OK};
  });
}

ringmain_code ringmain_find(ringmain_bus* bus, const char* name, ringmain_channel** channel) {
  return guarded([&] {
    if (bus == nullptr) return fail(RINGMAIN_REFUSED, "bus is NULL; open one");
    if (name == nullptr) return fail(RINGMAIN_REFUSED, "name is NULL; give a channel's");
    if (channel == nullptr) return fail(RINGMAIN_REFUSED, "channel is NULL; give a place for it");
    for (const auto& c : ringmain::detail::Erased::core(*bus->bus).channels()) {
      if (c->options().name != name) continue;
      *channel = bus->handle(*c);
      return ringmain_code{RINGMAIN_OK};
    }
    return fail(RINGMAIN_NOT_FOUND, "there is no channel " + in_quotes(name) +
                                        " yet; define it, or listen by a pattern");
  });
}

ringmain_code ringmain_channel_field(const ringmain_channel* channel, uint32_t number,
                                     ringmain_field* field) {
  return guarded([&] {
    if (channel == nullptr) return fail(RINGMAIN_REFUSED, "channel is NULL; define or find one");
    return give_field(*channel->schema, number, field);
  });
}

uint32_t ringmain_channel_event_bytes(const ringmain_channel* channel) {
  return channel == nullptr ? 0 : channel->schema->bytes;
}

}  // extern "C"
