#include "bindings/python/native/publish.hpp"

#include <cstdint>
#include <iterator>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include "bindings/python/native/bus.hpp"
#include "bindings/python/native/refuse.hpp"
#include "bindings/python/native/stable_abi.hpp"

namespace ringmain::python {
namespace {

constexpr char kHow[] =
    "publish() takes an event, as in bus.publish(Loss(step=1)), or the name of one with its fields "
    "by their names, as in bus.publish('train.step', step=1)";

/// Most publishes end in one of a few ways: their results are made once. Under the GIL.
PyObject* known_results[static_cast<std::size_t>(PublishCode::forked) + 1] = {};

unsigned name_changes = 0;  // under the GIL

/// All fields are checked even when nobody listens, so that a mistake is found in every run.
PyObject* publish_fields(const Channel& channel, PyObject* const* values, PyObject* names) {
  alignas(16) std::byte event[kEventBytesMax];
  channel.layout().begin(event);
  const Py_ssize_t given = names == nullptr ? 0 : tuple_size(names);
  for (Py_ssize_t i = 0; i < given; ++i)
    channel.layout().write_named(tuple_item(names, i), values[i], event);
  return result_object(channel.publish(event));
}

PyObject* publish_object(const Channel& channel, PyObject* object) {
  alignas(16) std::byte event[kEventBytesMax];
  const Layout& layout = channel.layout();
  layout.begin(event);
  for (const Layout::Field& field : layout.fields()) {
    const nb::object value = nb::steal(PyObject_GetAttr(object, field.name));
    if (!value.is_valid()) throw nb::python_error();
    layout.write(field, value.ptr(), event);
  }
  return result_object(channel.publish(event));
}

PyObject* publish_fields(PyObject* self, PyObject* const* values, Py_ssize_t unnamed,
                         PyObject* names) {
  if (unnamed != 0) {
    PyErr_SetString(PyExc_TypeError, "publish() takes the fields of an event by their names only");
    return nullptr;
  }
  return guarded([&] { return publish_fields(*nb::inst_ptr<Channel>(self), values, names); });
}

PyObject* layout_key() {
  static PyObject* const key = PyUnicode_InternFromString("__ringmain_layout__");
  return key;
}

bool is_layout(PyObject* object) {
  static const nb::handle layout_type = nb::type<Layout>();
  return object != nullptr && reinterpret_cast<PyObject*>(Py_TYPE(object)) == layout_type.ptr();
}

/// The event type that @event made of that very class; a new reference, or an invalid object.
nb::object layout_of_class(PyTypeObject* type) {
  PyObject* const key = layout_key();
#ifdef Py_LIMITED_API
  const nb::object members = nb::handle(reinterpret_cast<PyObject*>(type)).attr("__dict__");
  const nb::object found = members.attr("get")(nb::handle(key));
  return is_layout(found.ptr()) ? found : nb::object();
#else
#if PY_VERSION_HEX >= 0x030c0000
  const nb::object own = nb::steal(PyType_GetDict(type));
  PyObject* members = own.ptr();
#else
  PyObject* members = type->tp_dict;
#endif
  PyObject* found = members == nullptr ? nullptr : PyDict_GetItemWithError(members, key);
  if (found == nullptr && PyErr_Occurred() != nullptr) throw nb::python_error();
  return is_layout(found) ? nb::borrow(found) : nb::object();
#endif
}

PyObject* publish_on_bus(PyObject* self, PyObject* const* values, Py_ssize_t unnamed,
                         PyObject* names) {
  if (unnamed != 1) {
    PyErr_SetString(PyExc_TypeError, kHow);
    return nullptr;
  }
  return guarded([&]() -> PyObject* {
    auto& bus = *nb::inst_ptr<NativeBus>(self);
    PyObject* const what = values[0];
    if (PyUnicode_Check(what))
      return publish_fields(bus.published().of(self, what), values + 1, names);
    if (const Channel* const channel = bus.published().of(bus, Py_TYPE(what))) {
      if (names != nullptr && tuple_size(names) != 0) {
        PyErr_Format(PyExc_TypeError,
                     "publish() takes an event as it is, or a name with fields: change %R itself",
                     tuple_item(names, 0));
        return nullptr;
      }
      return publish_object(*channel, what);
    }
    // An EventType, or something that cannot be published: Python's layer finds out which.
    const nb::object layout =
        nb::module_::import_("ringmain._bus").attr("_layout_of")(nb::handle(what));
    return publish_fields(bus.published().of(bus, *nb::inst_ptr<Layout>(layout)), values + 1,
                          names);
  });
}

nb::object function(PyMethodDef& definition, nb::handle self) {
  nb::object made = nb::steal(PyCFunction_New(&definition, self.ptr()));
  if (!made.is_valid()) throw nb::python_error();
  return made;
}

PyCFunction plain(PyObject* (*function)(PyObject*, PyObject* const*, Py_ssize_t, PyObject*)) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

}  // namespace

const Channel& PublishedChannels::of(NativeBus& bus, const Layout& layout) {
  const auto found = by_layout_.find(&layout);
  if (found != by_layout_.end()) return found->second;
  return by_layout_.emplace(&layout, bus.channel(layout)).first->second;
}

#ifdef Py_LIMITED_API
bool SeenClass::is(PyTypeObject* type) const {
  if (!weak_.is_valid() || PyWeakref_GetObject(weak_.ptr()) != reinterpret_cast<PyObject*>(type))
    return false;
  const nb::object found =
      nb::steal(PyObject_GetAttr(reinterpret_cast<PyObject*>(type), layout_key()));
  if (!found.is_valid()) PyErr_Clear();
  return is_layout(found.ptr()) && nb::inst_ptr<Layout>(found) == layout_;
}

void SeenClass::becomes(PyTypeObject* type, const Layout& layout) {
  weak_ = nb::steal(PyWeakref_NewRef(reinterpret_cast<PyObject*>(type), nullptr));
  if (!weak_.is_valid()) PyErr_Clear();
  layout_ = &layout;
}
#else
bool SeenClass::is(PyTypeObject* type) const {
  const unsigned version = type->tp_version_tag;
  return version != 0 && version == version_ && type == type_;
}

void SeenClass::becomes(PyTypeObject* type, const Layout&) {
  type_ = type;
  version_ = type->tp_version_tag;
}
#endif

const Channel* PublishedChannels::of(NativeBus& bus, PyTypeObject* type) {
  const auto address = reinterpret_cast<std::uintptr_t>(type);
  Seen& seen = seen_[(address >> 4 ^ address >> 10) % std::size(seen_)];
  if (seen.type.is(type)) return seen.channel;
  const nb::object layout = layout_of_class(type);
  if (!layout.is_valid()) return nullptr;
  const Layout& described = *nb::inst_ptr<Layout>(layout);
  const Channel& found = of(bus, described);
  seen.type.becomes(type, described);
  return seen.channel = &found;
}

void PublishedChannels::names_changed() noexcept {
  ++name_changes;
}

const Channel& PublishedChannels::of(PyObject* bus, PyObject* name) {
  nb::object held;
  const std::string_view text = utf8_of(name, held);
  if (changes_ != name_changes) {
    changes_ = name_changes;
    while (!by_name_.empty()) outdated_.push_back(by_name_.extract(by_name_.begin()));
  }
  const auto found = by_name_.find(text);
  if (found != by_name_.end()) return found->second;
  const nb::object made = nb::module_::import_("ringmain._bus")
                              .attr("_find_channel")(nb::handle(bus), nb::handle(name));
  return by_name_.emplace(std::string(text), nb::cast<const Channel&>(made)).first->second;
}

PyObject* result_object(PublishResult result) {
  if (result.why != Name{}) return nb::cast(result).release().ptr();
  PyObject*& kept = known_results[static_cast<std::size_t>(result.code)];
  if (kept == nullptr) kept = nb::cast(result).release().ptr();
  Py_INCREF(kept);
  return kept;
}

nb::object channel_publish_function(nb::handle channel) {
  static PyMethodDef definition = {"publish", plain(&publish_fields), METH_FASTCALL | METH_KEYWORDS,
                                   "Says one event, by its fields: see ringmain.Channel.publish."};
  return function(definition, channel);
}

nb::object bus_publish_function(nb::handle bus) {
  static PyMethodDef definition = {"publish", plain(&publish_on_bus), METH_FASTCALL | METH_KEYWORDS,
                                   "Says an event: see ringmain.Bus.publish."};
  return function(definition, bus);
}

void bind_results(nb::module_& m) {
  m.attr("_results") = nb::capsule(known_results, [](void*) noexcept {  // with the module they go
    for (PyObject*& kept : known_results) Py_CLEAR(kept);
  });
  nb::class_<PublishResult>(m, "PublishResult", "How a publish ended. True when nothing was lost.")
      .def("__init__", refusing<PublishResult>("publish() gives a result, and nobody makes one"))
      .def_prop_ro("code", [](const PublishResult& r) { return to_string(r.code); })
      .def_prop_ro(
          "why",
          [](const PublishResult& r) { return nb::steal<nb::str>(python_text(r.why.view())); })
      .def("__bool__", [](const PublishResult& r) { return static_cast<bool>(r); })
      .def("__repr__", [](const PublishResult& r) {
        return "<" + std::string(to_string(r.code)) + (r.why == Name{} ? "" : ": ") +
               std::string(r.why.view()) + ">";
      });
  nb::class_<BatchResult>(m, "BatchResult", "What became of the rows of a bulk publish.")
      .def("__init__", refusing<BatchResult>("publish_all() gives a result, and nobody makes one"))
      .def_ro("accepted", &BatchResult::accepted)
      .def_ro("refused", &BatchResult::refused)
      .def_ro("vetoed", &BatchResult::vetoed)
      .def_prop_ro("last", [](const BatchResult& r) { return to_string(r.last); })
      .def("__bool__", [](const BatchResult& r) { return r.refused == 0; })
      .def("__repr__", [](const BatchResult& r) {
        return "<" + std::to_string(r.accepted) + " accepted, " + std::to_string(r.refused) +
               " refused>";
      });
}

}  // namespace ringmain::python
