// How are things asked of Python that its stable ABI has no macros for? With the full interface by
// the macros, which a publish from Python pays for; for the stable ABI (Py_LIMITED_API) by the
// functions that it has. All under the GIL.
#pragma once
#include <nanobind/nanobind.h>
#include <string>

namespace ringmain::python {

inline Py_ssize_t tuple_size(PyObject* tuple) noexcept {
#ifdef Py_LIMITED_API
  return PyTuple_Size(tuple);
#else
  return PyTuple_GET_SIZE(tuple);
#endif
}

/// Borrowed; `at` is below its size.
inline PyObject* tuple_item(PyObject* tuple, Py_ssize_t at) noexcept {
#ifdef Py_LIMITED_API
  return PyTuple_GetItem(tuple, at);
#else
  return PyTuple_GET_ITEM(tuple, at);
#endif
}

/// A new reference; nullptr with Python's error set. A thread that Python ends at its own end
/// leaves by here: no noexcept.
inline PyObject* call_with(PyObject* callable, PyObject* argument) {
  PyObject* words[] = {nullptr, argument};
  return PyObject_Vectorcall(callable, words + 1, 1 | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr);
}

/// As `type(object).__name__`.
inline std::string class_name(PyObject* object) {
  const nanobind::object name = nanobind::steal(PyType_GetName(Py_TYPE(object)));
  Py_ssize_t size = 0;
  const char* text = name.is_valid() ? PyUnicode_AsUTF8AndSize(name.ptr(), &size) : nullptr;
  if (text != nullptr) return {text, static_cast<std::size_t>(size)};
  PyErr_Clear();
  return "object";
}

/// A new object of a class of ours, all zeros; nullptr with Python's error set.
inline PyObject* allocate(PyTypeObject* type) {
  return PyType_GenericAlloc(type, 0);
}

/// For Py_tp_dealloc, at the end.
inline void deallocate(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(object);
  Py_DECREF(type);
}

}  // namespace ringmain::python
