#include "bindings/python/native/channel.hpp"

#include <bit>
#include <cstring>
#include <iterator>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>
#include <new>
#include <tuple>

#include "engine/publish/thread_lanes.hpp"

#include "bus/core/erased.hpp"

#include "bindings/python/native/gil.hpp"
#include "bindings/python/native/publish.hpp"

namespace ringmain::python {
namespace {

struct Copied {
  const std::byte* event;
  std::size_t bytes;
};
void copy(void* to, void* from) noexcept {
  const auto& event = *static_cast<const Copied*>(from);
  std::memcpy(to, event.event, event.bytes);
}

/// A Python object's bytes while this lives.
class Rows {
 public:
  explicit Rows(nb::handle object) {
    if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_SIMPLE) != 0) throw nb::python_error();
  }
  ~Rows() { PyBuffer_Release(&view_); }
  Rows(const Rows&) = delete;
  Rows& operator=(const Rows&) = delete;
  [[nodiscard]] const std::byte* first() const noexcept {
    return static_cast<const std::byte*>(view_.buf);
  }
  [[nodiscard]] std::size_t bytes() const noexcept { return static_cast<std::size_t>(view_.len); }

 private:
  Py_buffer view_{};
};

/// name, kind, unit, offset, bytes, enumerators
using FieldTuple =
    std::tuple<std::string, std::string, std::string, unsigned, unsigned, std::string>;

constexpr Kind kKinds[] = {Kind::u8,      Kind::u16,         Kind::u32,  Kind::u64, Kind::i8,
                           Kind::i16,     Kind::i32,         Kind::i64,  Kind::f32, Kind::f64,
                           Kind::boolean, Kind::enumeration, Kind::name, Kind::text};
constexpr Unit kUnits[] = {Unit::none,  Unit::bytes,  Unit::ns,     Unit::address,
                           Unit::count, Unit::device, Unit::stream, Unit::id};

static_assert(std::size(kKinds) == static_cast<std::size_t>(Kind::text) + 1 &&
              std::size(kUnits) == static_cast<std::size_t>(Unit::id) + 1);

template <class E, std::size_t N>
E by_word(const E (&all)[N], std::string_view word, const char* what) {
  for (const E e : all) {
    if (to_string(e) == word) return e;
  }
  throw nb::value_error((std::string(what) + " '" + std::string(word) + "' is not known").c_str());
}

/// What the Python side has checked and laid out.
const Layout& define(const std::string& name, unsigned bytes,
                     const std::vector<FieldTuple>& fields) {
  if (bytes == 0 || bytes > kEventBytesMax)
    throw nb::value_error(
        (name + " has " + std::to_string(bytes) + " bytes; an event has 1 to 1024").c_str());
  std::vector<FieldSchema> described;
  for (const auto& [field, kind, unit, offset, size, enumerators] : fields) {
    if (size == 0 || offset > bytes || size > bytes - offset)
      throw nb::value_error((name + ": field " + field + " does not lie in the event").c_str());
    described.push_back({field, enumerators, static_cast<std::uint16_t>(offset),
                         static_cast<std::uint16_t>(size), by_word(kUnits, unit, "unit"),
                         by_word(kKinds, kind, "kind")});
  }
  const std::string from = "a Python event of " + std::to_string(bytes) + " bytes";
  Schema schema{name, 0, bytes, described, from};
  schema.hash = ringmain::detail::schema_hash_of(schema);
  return Layout::of(ringmain::detail::keep_schema(schema));
}

std::vector<FieldTuple> fields_of(const Layout& layout) {
  std::vector<FieldTuple> fields;
  for (const FieldSchema& f : layout.schema().fields)
    fields.emplace_back(f.name, to_string(f.kind), to_string(f.unit), f.offset, f.bytes,
                        f.enumerators);
  return fields;
}

std::vector<const Layout*> described() {
  std::vector<const Layout*> all;
  for (const Schema* s : described_events()) all.push_back(&Layout::of(*s));
  return all;
}

}  // namespace

constexpr std::uint64_t kManyEvents = 1024;

PublishResult Channel::publish(const std::byte* event) const noexcept {
  const std::uint32_t seen = core_->line.look();
  if (!engine::ChannelLine::heard(seen)) return ringmain::detail::unheard_on(seen);
  Copied from{event, layout_->schema().bytes};
  engine::Lane* lane = engine::thread_lane(*core_);
  if (lane == nullptr) return ringmain::detail::result_of(engine::push_once(*core_, copy, &from));
  // After many events a rest ends, because the lane must not fill up meanwhile.
  if (lane->published() % kManyEvents == kManyEvents - 1) core_->host().end_rests();
  return ringmain::detail::result_of(engine::push_slowly(*lane, copy, &from, 0));
}

BatchResult Channel::publish_rows(nb::handle rows) const {
  const Rows given(rows);
  const std::size_t bytes = layout_->schema().bytes;
  if (given.bytes() % bytes != 0)
    throw nb::value_error("the rows are no whole number of events; use the channel's dtype");
  const std::size_t n = given.bytes() / bytes;
  BatchResult sum;
  if (!wanted()) {
    sum.last = ringmain::detail::unheard_on(core_->line.look()).code;
    if (sum.last != PublishCode::unheard) sum.refused = static_cast<std::uint32_t>(n);
    return sum;
  }
  for (std::size_t i = 0; i < n; ++i) {
    const PublishResult one = publish(given.first() + i * bytes);
    if (one) {
      sum.accepted += one == PublishCode::accepted ? 1u : 0u;
      continue;
    }
    ++sum.refused;
    sum.vetoed += one == PublishCode::vetoed ? 1u : 0u;
    sum.last = one.code;
  }
  return sum;
}

void bind_channel(nb::module_& m) {
  bind_results(m);
  nb::class_<Layout>(m, "Layout", "An event type: its name, size and fields.")
      .def_prop_ro("name", [](const Layout& l) { return l.schema().name; })
      .def_prop_ro("bytes", [](const Layout& l) { return l.schema().bytes; })
      .def_prop_ro("hash", [](const Layout& l) { return l.schema().hash; })
      .def_prop_ro("fields", &fields_of);
  nb::class_<Channel>(m, "Channel")
      .def_prop_ro("name", &Channel::name)
      .def_prop_ro("layout", &Channel::layout, nb::rv_policy::reference)
      .def_prop_ro("wanted", &Channel::wanted)
      .def("publish_function",
           [](nb::handle_t<Channel> self) { return channel_publish_function(self); })
      .def("publish_rows", &Channel::publish_rows, nb::arg("rows"));
  m.def("define", &define, nb::rv_policy::reference, nb::arg("name"), nb::arg("bytes"),
        nb::arg("fields"));
  m.def("names_changed", &PublishedChannels::names_changed);
  m.def("described", &described, nb::rv_policy::reference);
  m.def(
      "name",
      [](const nb::str& text) {
        nb::object held;
        return Name(utf8_of(text.ptr(), held)).id();
      },
      nb::arg("text"));
  m.def(
      "name_text",
      [](std::uint32_t id) {
        return nb::steal<nb::str>(python_text(std::bit_cast<Name>(id).view()));
      },
      nb::arg("id"));
}

}  // namespace ringmain::python
