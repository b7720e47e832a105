// Which training step is it, and in which was an event published? Python's scopes, on the C++
// source of steps, and a log of their edges.
#include <algorithm>
#include <iterator>
#include <memory>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <optional>
#include <utility>
#include <vector>

#include "bus/core/erased.hpp"

#include "events/steps/log.hpp"
#include "events/steps/source.hpp"

#include "bindings/python/native/batch.hpp"
#include "bindings/python/native/bus.hpp"
#include "bindings/python/native/publish.hpp"
#include "bindings/python/native/stable_abi.hpp"

namespace ringmain::python {
namespace {

/// The scopes of one thread. They end from the inside out: with one end those that began inside it.
class Steps {
 public:
  explicit Steps(step::Source made) : source_(std::move(made)) { open_.reserve(kUsualDepth); }
  Steps(Steps&&) = default;
  Steps& operator=(Steps&&) = delete;
  ~Steps() {
    while (!open_.empty()) open_.pop_back();
    for (const Phase& phase : phases_) Py_DECREF(phase.text);
  }
  void begin_step(std::uint64_t number) { open_.push_back({source_.step(number), next_++}); }
  void begin_phase(PyObject* name) { open_.push_back({source_.phase(name_of(name)), next_++}); }
  void begin_micro_batch(std::uint32_t number) {
    open_.push_back({source_.micro_batch(number), next_++});
  }
  [[nodiscard]] std::uint64_t next() const noexcept { return next_; }
  /// Ends the scope of that serial and all behind it; nothing if it has ended, as with one around
  /// it.
  void end_from(std::uint64_t serial) noexcept {
    const auto found = std::find_if(open_.rbegin(), open_.rend(),
                                    [&](const Open& one) { return one.serial == serial; });
    if (found == open_.rend()) return;
    while (!open_.empty() && open_.back().serial >= serial) open_.pop_back();
  }
  /// True if it belongs to another thread or process: this one needs Steps of its own.
  [[nodiscard]] bool foreign() const noexcept {
    return born_.forked() || thread_ != PyThread_get_thread_ident();
  }

 private:
  struct Phase {
    PyObject* text;
    Name name;
  };
  struct Open {
    step::Source::Scope scope;
    std::uint64_t serial;
  };
  enum : std::size_t { kUsualDepth = 8, kPhasesMax = 16 };

  /// A loop's phases are the same few strings: a Name takes a lock to make.
  Name name_of(PyObject* text) {
    for (const Phase& phase : phases_) {
      if (phase.text == text) return phase.name;
    }
    nb::object held;
    const Name made(utf8_of(text, held));
    if (phases_.size() < kPhasesMax) {
      phases_.push_back({text, made});
      Py_INCREF(text);
    }
    return made;
  }

  step::Source source_;
  std::vector<Open> open_;
  std::uint64_t next_ = 0;
  std::vector<Phase> phases_;
  engine::Born born_;
  unsigned long thread_ = PyThread_get_thread_ident();
};

void refuse_if_forked(const NativeBus& bus) {
  if (bus.forked())
    throw std::runtime_error(
        "the bus belongs to the process that forked this one; make a Bus here");
}

/// One row for each event, as ringmain._steps reads it.
struct PlaceRow {
  std::uint64_t step;
  std::uint32_t phase;
  std::uint32_t micro_batch;
  std::uint64_t inside;  // 1 or 0
};

PlaceRow row_of(const step::Place& place) {
  return {place.step, place.phase.id(), place.micro_batch, place.inside ? 1u : 0u};
}

/// Threads: any.
class StepLog {
 public:
  explicit StepLog(const NativeBus& bus) : follow_(std::make_unique<step::Follow>(bus.bus())) {}

  [[nodiscard]] nb::bytes of(const Batch& batch) const {
    std::vector<PlaceRow> rows;
    rows.reserve(batch.size());
    for (std::size_t i = 0; i < batch.size(); ++i) rows.push_back(at(batch.stamp(i)));
    return nb::bytes(rows.data(), rows.size() * sizeof(PlaceRow));
  }
  [[nodiscard]] nb::bytes of_stamp(const Stamp& stamp) const {
    const PlaceRow row = at(stamp);
    return nb::bytes(&row, sizeof row);
  }
  void close() noexcept { follow_.reset(); }

 private:
  [[nodiscard]] PlaceRow at(const Stamp& stamp) const {
    return follow_ == nullptr ? PlaceRow{} : row_of(follow_->at(stamp));
  }

  std::unique_ptr<step::Follow> follow_;
};

std::unique_ptr<StepLog> follow_steps(const NativeBus& bus) {
  refuse_if_forked(bus);
  return std::make_unique<StepLog>(bus);
}

Steps open_steps(const NativeBus& bus) {
  refuse_if_forked(bus);
  // Checked first: Channel<E> would end the process if train.step had been described otherwise.
  auto channel = ringmain::detail::Erased::channel(bus.bus(), ringmain::schema<step::Step>());
  if (!channel) throw nb::value_error(channel.error().message.c_str());
  auto source = step::Source::attach(bus.bus());
  if (!source) throw std::runtime_error(source.error().message);
  return Steps(std::move(source).value());
}

// --- with bus.step(7, phase="forward", micro_batch=1): ---

/// What bus.step() needs: a bus, and which Steps the calling thread has on it.
struct StepMaker {
  nb::object bus;
  nb::object local;  // a threading.local: its .open are this thread's Steps
  nb::object last;   // the Steps that were asked for last: usually one thread trains
};

/// A scope as Python holds it: a type of C, since making it is half of what a step costs.
struct StepScope {
  PyObject ob_base;
  PyObject* maker;
  PyObject* phase;  // nullptr: not given
  PyObject* open;   // the Steps that it began on
  unsigned long long number;
  unsigned long micro_batch;
  bool has_number, has_micro_batch;
  std::uint64_t serial;  // of the first of its scopes, while it is open
};
PyTypeObject* scope_type = nullptr;

StepScope& scope_of(PyObject* self) noexcept {
  return *reinterpret_cast<StepScope*>(self);
}

PyObject* refuse(PyObject* kind, const char* what, const char* takes, PyObject* value) {
  PyErr_Clear();
  PyErr_Format(kind, "step(): %s takes %s, and not %R", what, takes, value);
  return nullptr;
}

bool whole_number(PyObject* value, const char* what, unsigned long long most,
                  unsigned long long& into) {
  const nb::object whole = nb::steal(PyNumber_Index(value));
  if (!whole.is_valid()) {
    refuse(PyExc_TypeError, what, "a whole number", value);
    return false;
  }
  into = PyLong_AsUnsignedLongLong(whole.ptr());
  if (PyErr_Occurred() == nullptr && into <= most) return true;
  refuse(PyExc_OverflowError, what, "a whole number from 0 that fits its bytes", value);
  return false;
}

/// One argument into the scope; `what` is its name.
bool take_argument(StepScope& scope, const char* what, PyObject* value) {
  unsigned long long number = 0;
  if (value == Py_None) return true;
  if (*what == 'n') {
    scope.has_number = whole_number(value, what, ~0ull, scope.number);
    return scope.has_number;
  }
  if (*what == 'p') {
    if (!PyUnicode_Check(value)) return refuse(PyExc_TypeError, what, "a str", value) != nullptr;
    Py_INCREF(value);
    Py_XDECREF(std::exchange(scope.phase, value));
    return true;
  }
  scope.has_micro_batch = whole_number(value, what, 0xffffffffu, number);
  scope.micro_batch = static_cast<unsigned long>(number);
  return scope.has_micro_batch;
}

const char* argument_named(PyObject* name) noexcept {
  static constexpr const char* kKnown[] = {"phase", "micro_batch", "number"};
  static PyObject* const interned[] = {PyUnicode_InternFromString(kKnown[0]),
                                       PyUnicode_InternFromString(kKnown[1]),
                                       PyUnicode_InternFromString(kKnown[2])};
  for (std::size_t i = 0; i < std::size(kKnown); ++i) {
    if (name == interned[i]) return kKnown[i];
  }
  for (const char* known : kKnown) {
    if (PyUnicode_CompareWithASCIIString(name, known) == 0) return known;
  }
  return nullptr;
}

PyObject* make_scope(PyObject* self, PyObject* const* values, Py_ssize_t unnamed, PyObject* names) {
  if (unnamed > 1) {
    PyErr_SetString(PyExc_TypeError,
                    "step() takes the step's number; phase= and micro_batch= by their names");
    return nullptr;
  }
  const nb::object made = nb::steal(allocate(scope_type));
  if (!made.is_valid()) return nullptr;
  StepScope& scope = scope_of(made.ptr());
  Py_INCREF(self);
  scope.maker = self;
  if (unnamed == 1 && !take_argument(scope, "number", values[0])) return nullptr;
  const Py_ssize_t named = names == nullptr ? 0 : tuple_size(names);
  for (Py_ssize_t i = 0; i < named; ++i) {
    const char* what = argument_named(tuple_item(names, i));
    if (what == nullptr || (*what == 'n' && unnamed == 1)) {
      PyErr_Format(PyExc_TypeError,
                   "step() takes number, phase= and micro_batch= once each, and not %R",
                   tuple_item(names, i));
      return nullptr;
    }
    if (!take_argument(scope, what, values[unnamed + i])) return nullptr;
  }
  Py_INCREF(made.ptr());
  return made.ptr();
}

/// The Steps of this thread, in this process. Throws.
nb::object open_of(StepMaker& maker) {
  if (maker.last.is_valid() && !nb::inst_ptr<Steps>(maker.last)->foreign()) return maker.last;
  static PyObject* const key = PyUnicode_InternFromString("open");
  nb::object open = nb::steal(PyObject_GetAttr(maker.local.ptr(), key));
  if (open.is_valid() && !nb::inst_ptr<Steps>(open)->foreign()) return maker.last = open;
  PyErr_Clear();
  open = nb::cast(open_steps(nb::cast<const NativeBus&>(maker.bus)), nb::rv_policy::move);
  if (PyObject_SetAttr(maker.local.ptr(), key, open.ptr()) != 0) throw nb::python_error();
  return maker.last = open;
}

void end_scope(StepScope& scope) noexcept {
  Steps& steps = *nb::inst_ptr<Steps>(nb::handle(scope.open));
  if (!steps.foreign()) steps.end_from(scope.serial);  // else the thread that began it ends it
  Py_CLEAR(scope.open);
}

PyObject* enter_scope(PyObject* self, PyObject*) {
  StepScope& scope = scope_of(self);
  if (scope.open != nullptr) {
    PyErr_SetString(PyExc_RuntimeError, "this step is open already; make another by bus.step()");
    return nullptr;
  }
  return guarded([&]() -> PyObject* {
    scope.open = open_of(*nb::inst_ptr<StepMaker>(nb::handle(scope.maker))).release().ptr();
    Steps& steps = *nb::inst_ptr<Steps>(nb::handle(scope.open));
    scope.serial = steps.next();
    try {
      if (scope.has_number) steps.begin_step(scope.number);
      if (scope.phase != nullptr) steps.begin_phase(scope.phase);
      if (scope.has_micro_batch)
        steps.begin_micro_batch(static_cast<std::uint32_t>(scope.micro_batch));
    } catch (...) {
      end_scope(scope);
      throw;
    }
    Py_RETURN_NONE;
  });
}

PyObject* exit_scope(PyObject* self, PyObject* const*, Py_ssize_t) {
  StepScope& scope = scope_of(self);
  if (scope.open == nullptr) Py_RETURN_NONE;
  if (nb::inst_ptr<Steps>(nb::handle(scope.open))->foreign()) {
    Py_CLEAR(scope.open);  // the thread that began it ends it, at the latest when that thread ends
    PyErr_SetString(PyExc_RuntimeError,
                    "a step ends in the thread and process that began it; open one in each");
    return nullptr;
  }
  end_scope(scope);
  Py_RETURN_NONE;
}

/// Another scope with the same arguments, for a decorated function.
PyObject* again(PyObject* self, PyObject*) {
  PyObject* made = allocate(scope_type);
  if (made == nullptr) return nullptr;
  StepScope& to = scope_of(made);
  const StepScope& from = scope_of(self);
  const PyObject head = to.ob_base;
  to = from;
  to.ob_base = head;
  to.open = nullptr;
  Py_XINCREF(to.maker);
  Py_XINCREF(to.phase);
  return made;
}

PyObject* decorate(PyObject* self, PyObject* arguments, PyObject*) {
  if (tuple_size(arguments) != 1) {
    PyErr_SetString(PyExc_TypeError, "step() as a decorator takes one function");
    return nullptr;
  }
  return guarded([&] {
    const nb::object around = nb::module_::import_("ringmain._steps").attr("around");
    return around(nb::handle(self), nb::handle(tuple_item(arguments, 0))).release().ptr();
  });
}

/// "<step 7, phase 'forward', open>"
PyObject* text_of_scope(PyObject* self) {
  const StepScope& scope = scope_of(self);
  return guarded([&] {
    std::string text = "<step";
    if (scope.has_number) text += " " + std::to_string(scope.number);
    if (scope.phase != nullptr) text += std::string(", phase ") + nb::repr(scope.phase).c_str();
    if (scope.has_micro_batch) text += ", micro-batch " + std::to_string(scope.micro_batch);
    if (scope.open != nullptr) text += ", open";
    text += '>';
    return PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size()));
  });
}

void free_scope(PyObject* self) {
  StepScope& scope = scope_of(self);
  if (scope.open != nullptr) end_scope(scope);  // it was begun by hand, and let go
  Py_CLEAR(scope.phase);
  Py_CLEAR(scope.maker);
  deallocate(self);
}

void bind_scope(nb::module_& m) {
  static PyMethodDef methods[] = {
      {"__enter__", &enter_scope, METH_NOARGS, nullptr},
      {"__exit__", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&exit_scope)),
       METH_FASTCALL, nullptr},
      {"_again", &again, METH_NOARGS, nullptr},
      {nullptr, nullptr, 0, nullptr}};
  static PyType_Slot slots[] = {
      {Py_tp_methods, methods},
      {Py_tp_dealloc, reinterpret_cast<void*>(&free_scope)},
      {Py_tp_call, reinterpret_cast<void*>(&decorate)},
      {Py_tp_repr, reinterpret_cast<void*>(&text_of_scope)},
      {Py_tp_doc, const_cast<char*>("A step, phase or micro-batch of bus.step(), for `with`.")},
      {0, nullptr}};
  static PyType_Spec spec = {"ringmain._native.StepScope", sizeof(StepScope), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  nb::object type = nb::steal(PyType_FromSpec(&spec));
  if (!type.is_valid()) throw nb::python_error();
  scope_type = reinterpret_cast<PyTypeObject*>(type.ptr());
  m.attr("StepScope") = type;
}

nb::object step_function(nb::object bus, nb::object local) {
  static PyMethodDef definition = {
      "step", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&make_scope)),
      METH_FASTCALL | METH_KEYWORDS, "A step, phase or micro-batch: see ringmain.Bus.step."};
  const nb::object maker = nb::cast(StepMaker{std::move(bus), std::move(local), {}});
  nb::object made = nb::steal(PyCFunction_New(&definition, maker.ptr()));
  if (!made.is_valid()) throw nb::python_error();
  return made;
}

}  // namespace

void bind_steps(nb::module_& m) {
  nb::class_<Steps>(m, "Steps");
  nb::class_<StepMaker>(m, "_StepMaker");
  bind_scope(m);
  m.def("step_function", &step_function, nb::arg("bus"), nb::arg("local"));
  nb::class_<StepLog>(m, "StepLog")
      .def("of", &StepLog::of, nb::arg("batch"))
      .def("of_stamp", &StepLog::of_stamp, nb::arg("stamp"))
      .def("close", &StepLog::close);
  m.def("follow_steps", &follow_steps, nb::arg("bus"));
}

}  // namespace ringmain::python
