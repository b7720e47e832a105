#include "bindings/python/native/batch.hpp"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <utility>

#include "bindings/python/native/refuse.hpp"

namespace ringmain::python {
namespace {

struct Records {
  nb::object batch;
  std::size_t next = 0;
};

std::string counted(const Batch& batch) {
  return std::to_string(batch.size()) + (batch.size() == 1 ? " event" : " events");
}

Record record_of(nb::object batch, std::size_t i) {
  const auto& of = nb::cast<const Batch&>(batch);
  return {&of.layout(), of.event(i), std::move(batch), i, {}, {}};
}

std::size_t index_of(Py_ssize_t i, std::size_t size) {
  const auto n = static_cast<Py_ssize_t>(size);
  if (i < -n || i >= n) throw nb::index_error("the batch has no event of that number");
  return static_cast<std::size_t>(i < 0 ? i + n : i);
}

int get_buffer(PyObject* self, Py_buffer* view, int flags) noexcept {
  const auto& batch = *nb::inst_ptr<Batch>(self);
  return PyBuffer_FillInfo(view, self, batch.first(),
                           static_cast<Py_ssize_t>(batch.size() * batch.stride()), 0, flags);
}

/// A field of the event, or what every object has.
PyObject* get_attribute(PyObject* self, PyObject* name) noexcept {
  const auto& record = *nb::inst_ptr<Record>(self);
  if (const Layout::Field* field = record.layout->find(name))
    return Layout::read(*field, record.event);
  return PyObject_GenericGetAttr(self, name);
}

nb::object value_of(const Record& record, nb::object key) {
  if (!PyUnicode_Check(key.ptr()))
    throw nb::type_error("an event's fields are asked for by name, as in event['step']");
  const auto name = nb::borrow<nb::str>(key);
  const Layout::Field* field = record.layout->find(name.ptr());
  if (field == nullptr)
    throw nb::key_error((std::string(record.layout->schema().name) + " has no field '" +
                         name.c_str() + "'; its fields are those of _asdict()")
                            .c_str());
  return nb::steal(Layout::read(*field, record.event));
}

nb::dict dict_of(const Record& record) {
  nb::dict all;
  for (const Layout::Field& f : record.layout->fields()) {
    const nb::object value = nb::steal(Layout::read(f, record.event));
    if (!value.is_valid() || PyDict_SetItem(all.ptr(), f.name, value.ptr()) != 0)
      throw nb::python_error();
  }
  return all;
}

std::string text_of(const Record& record) {
  std::string text(record.layout->schema().name);
  text += '(';
  bool first = true;
  for (const auto& [key, value] : dict_of(record)) {
    text += first ? "" : ", ";
    text += nb::str(key).c_str();
    text += '=';
    text += nb::repr(value).c_str();
    first = false;
  }
  return text + ')';
}

std::string_view time_from(const Stamp& stamp) {
  switch (stamp.time_from) {
    case TimeFrom::worker:
      return "worker";
    case TimeFrom::publisher:
      return "publisher";
    case TimeFrom::source:
      return "source";
  }
  return "?";
}

nb::object stamp_of_record(const Record& record) {
  if (!record.batch.is_valid()) return nb::none();
  return nb::cast(nb::cast<const Batch&>(record.batch).stamp(record.index));
}

std::string_view channel_of(const Record& record) {
  return record.batch.is_valid() ? nb::cast<const Batch&>(record.batch).channel()
                                 : std::string_view(record.channel);
}

/// What ringmain.frames makes of a batch.
template <class... Arguments>
nb::object framed(const char* how, const Arguments&... arguments) {
  return nb::module_::import_("ringmain.frames").attr(how)(arguments...);
}

void bind_frames(nb::class_<Batch>& batch) {
  batch.def("to_arrow", [](const nb::object& self) { return framed("to_arrow", self); })
      .def("to_arrow", refusing<const Batch>("to_arrow() takes nothing"))
      .def("to_pandas", [](const nb::object& self) { return framed("to_pandas", self); })
      .def("to_pandas", refusing<const Batch>("to_pandas() takes nothing"))
      .def(
          "__arrow_c_stream__",
          [](const nb::object& self, const nb::object& schema) {
            return framed("c_stream", self, schema);
          },
          nb::arg("requested_schema") = nb::none())
      .def(
          "__arrow_c_array__",
          [](const nb::object& self, const nb::object& schema) {
            return framed("c_array", self, schema);
          },
          nb::arg("requested_schema") = nb::none());
}

void bind_record(nb::module_& m) {
  nb::class_<Stamp>(m, "Stamp", "Where an event comes from and when.")
      .def("__init__", refusing<Stamp>("a stamp comes with an event, as event.stamp"))
      .def_ro("time_ns", &Stamp::time_ns)
      .def_ro("sequence", &Stamp::sequence)
      .def_ro("publisher", &Stamp::publisher)
      .def_prop_ro("time_from", &time_from)
      .def("__repr__", [](const Stamp& s) {
        return "Stamp(time_ns=" + std::to_string(s.time_ns) +
               ", sequence=" + std::to_string(s.sequence) +
               ", publisher=" + std::to_string(s.publisher) + ")";
      });
  PyType_Slot slots[] = {{Py_tp_getattro, reinterpret_cast<void*>(&get_attribute)}, {0, nullptr}};
  nb::class_<Record>(m, "Record", nb::type_slots(slots), "One event, its fields as attributes.")
      .def_prop_ro("stamp", &stamp_of_record)
      .def_prop_ro("channel", &channel_of)
      .def("__init__", refusing<Record>("events are read from batches; an @event class makes one"))
      .def("__getitem__", &value_of)
      .def("__getitem__", refusing<const Record>("an event gives one field, as in event['step']"))
      .def("_asdict", &dict_of)
      .def("_asdict", refusing<const Record>("_asdict() takes nothing"))
      .def("__repr__", &text_of);
}

}  // namespace

std::byte* Room::make(void* maker, std::size_t bytes) noexcept {
  constexpr std::size_t kAlignment = 64;
  auto& room = *static_cast<Room*>(maker);
  room.bytes = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  room.memory.reset(static_cast<std::byte*>(std::aligned_alloc(kAlignment, room.bytes)));
  return room.memory.get();
}

Batch::Batch(Room room, const engine::Run& run)
    : room_(std::move(room)),
      run_(run),
      channel_(const_cast<engine::ChannelCore*>(run.source)),
      layout_(&Layout::of(*static_cast<const Schema*>(run.source->options().schema))) {}

Stamp Batch::stamp(std::size_t i) const noexcept {
  const engine::SlotHeader& header = run_.header(i);
  const engine::Envelope& envelope = *run_.envelope(i);  // all that comes out of a mailbox has one
  return {header.time_ns, envelope.sequence, envelope.publisher,
          static_cast<TimeFrom>(envelope.time_from)};
}

void bind_batch(nb::module_& m) {
  bind_record(m);
  nb::class_<Records>(m, "_Records")
      .def("__repr__",
           [](const Records& records) {
             const auto& batch = nb::cast<const Batch&>(records.batch);
             return "<of " + counted(batch) + " of " + std::string(batch.channel()) +
                    ", the next is " + std::to_string(records.next) + ">";
           })
      .def("__iter__", [](nb::object self) { return self; })
      .def("__next__", [](Records& records) {
        if (records.next >= nb::cast<const Batch&>(records.batch).size())
          throw nb::stop_iteration();
        return record_of(records.batch, records.next++);
      });
  PyType_Slot slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(&get_buffer)}, {0, nullptr}};
  nb::class_<Batch> batch(
      m, "Batch", nb::type_slots(slots), nb::is_weak_referenceable(),
      "A run of events of one type and one channel, in the memory that the engine "
      "took it into, which it owns.");
  batch.def_prop_ro("channel", &Batch::channel)
      .def_prop_ro("_layout", &Batch::layout, nb::rv_policy::reference)
      .def_prop_ro("_stride", &Batch::stride)
      .def_prop_ro("_payload_offset", &Batch::payload_offset)
      .def_prop_ro("_room",
                   [](const Batch& b) {
                     return std::pair(reinterpret_cast<std::uintptr_t>(b.room().memory.get()),
                                      b.room().bytes);
                   })
      .def_prop_ro("array",
                   [](nb::object self) {
                     return nb::module_::import_("ringmain._numpy").attr("array_of")(self);
                   })
      .def("__len__", &Batch::size)
      .def("__iter__",
           [](nb::object self) {
             return Records{std::move(self), 0};
           })
      .def("__getitem__",
           [](nb::object self, nb::slice range) {
             const auto [at, end, step, n] = range.compute(nb::cast<const Batch&>(self).size());
             nb::list records;
             for (std::size_t i = 0; i < n; ++i)
               records.append(record_of(
                   self, static_cast<std::size_t>(at + static_cast<Py_ssize_t>(i) * step)));
             return records;
           })
      .def("__getitem__",
           [](nb::object self, Py_ssize_t i) {
             const std::size_t at = index_of(i, nb::cast<const Batch&>(self).size());
             return record_of(std::move(self), at);
           })
      .def("__getitem__",
           refusing<const Batch>("a batch gives events by whole numbers and slices; its columns "
                                 "are in .array, as in events.array['step']"))
      .def("__init__", refusing<Batch>("batches come from callbacks and mailboxes"))
      .def("__repr__", [](const Batch& b) {
        return "<" + counted(b) + " of " + std::string(b.channel()) + ">";
      });
  bind_frames(batch);
}

}  // namespace ringmain::python
