#include "bindings/python/native/layout.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <map>
#include <memory>
#include <string>

namespace ringmain::python {
namespace {

PyObject* interned(std::string_view text) {
  PyObject* made = python_text(text);
  if (made == nullptr) throw nb::python_error();
  PyUnicode_InternInPlace(&made);
  return made;
}

template <class T>
T load(const std::byte* at) noexcept {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}
template <class T>
void store(std::byte* at, T value) noexcept {
  std::memcpy(at, &value, sizeof value);
}

std::uint64_t load_unsigned(const std::byte* at, std::size_t bytes) noexcept {
  std::uint64_t value = 0;  // little-endian: publisher.hpp asserts it
  std::memcpy(&value, at, bytes);
  return value;
}

bool is_signed(Kind kind) noexcept {
  return kind == Kind::i8 || kind == Kind::i16 || kind == Kind::i32 || kind == Kind::i64;
}

// What is read and written here is a Text<N> as it is in memory: the size, with the highest bit for
// a cut, then the bytes. A bool is one byte.
using TextBytes = std::array<unsigned char, 8>;
static_assert(std::bit_cast<TextBytes>(Text<8>("ab")) == TextBytes{2, 0, 'a', 'b'});
static_assert(std::bit_cast<TextBytes>(Text<8>("abcdefg")) ==
              TextBytes{6, 0x80, 'a', 'b', 'c', 'd', 'e', 'f'});
static_assert(sizeof(bool) == sizeof(std::uint8_t));

std::string_view text_at(const FieldSchema& field, const std::byte* at) noexcept {
  const auto size = static_cast<std::size_t>(load<std::uint16_t>(at) & 0x7fffu);
  return {reinterpret_cast<const char*>(at) + 2, std::min<std::size_t>(size, field.bytes - 2u)};
}

}  // namespace

PyObject* python_text(std::string_view text) noexcept {
  return PyUnicode_DecodeUTF8(text.data() == nullptr ? "" : text.data(),
                              static_cast<Py_ssize_t>(text.size()), "replace");
}

std::string_view utf8_of(PyObject* text, nb::object& held) {
  Py_ssize_t size = 0;
  if (const char* bytes = PyUnicode_AsUTF8AndSize(text, &size))
    return {bytes, static_cast<std::size_t>(size)};
  if (PyErr_ExceptionMatches(PyExc_UnicodeEncodeError) == 0) throw nb::python_error();
  PyErr_Clear();
  held = nb::steal(PyUnicode_AsEncodedString(text, "utf-8", "replace"));
  if (!held.is_valid()) throw nb::python_error();
  return {PyBytes_AsString(held.ptr()), static_cast<std::size_t>(PyBytes_Size(held.ptr()))};
}

Layout::Layout(const Schema& schema) : schema_(&schema) {
  for (const FieldSchema& f : schema.fields) {
    Field field{&f, interned(f.name), {}};
    for (std::string_view rest = f.enumerators; !rest.empty();) {
      const std::size_t comma = std::min(rest.find(','), rest.size());
      field.words.push_back(interned(rest.substr(0, comma)));
      rest.remove_prefix(std::min(comma + 1, rest.size()));
    }
    fields_.push_back(std::move(field));
  }
}

Layout& Layout::of(const Schema& schema) {
  static auto& all = *new std::map<const Schema*, std::unique_ptr<Layout>>;  // the GIL is its lock
  auto& kept = all[&schema];
  if (kept == nullptr) kept.reset(new Layout(schema));
  return *kept;
}

const Layout::Field* Layout::find(PyObject* name) const noexcept {
  for (const Field& f : fields_) {
    if (f.name == name) return &f;
  }
  if (!PyUnicode_Check(name)) return nullptr;
  for (const Field& f : fields_) {
    if (PyUnicode_Compare(f.name, name) == 0) return &f;
  }
  return nullptr;
}

PyObject* Layout::read(const Field& field, const std::byte* event) noexcept {
  const FieldSchema& f = *field.schema;
  const std::byte* at = event + f.offset;
  switch (f.kind) {
    case Kind::f32:
      return PyFloat_FromDouble(static_cast<double>(load<float>(at)));
    case Kind::f64:
      return PyFloat_FromDouble(load<double>(at));
    case Kind::boolean:
      return PyBool_FromLong(load<std::uint8_t>(at));
    case Kind::name:
      return python_text(std::bit_cast<Name>(load<std::uint32_t>(at)).view());
    case Kind::text:
      return python_text(text_at(f, at));
    case Kind::i8:
      return PyLong_FromLong(load<std::int8_t>(at));
    case Kind::i16:
      return PyLong_FromLong(load<std::int16_t>(at));
    case Kind::i32:
      return PyLong_FromLong(load<std::int32_t>(at));
    case Kind::i64:
      return PyLong_FromLongLong(load<std::int64_t>(at));
    default:
      break;
  }
  const std::uint64_t value = load_unsigned(at, std::min<std::size_t>(f.bytes, 8));
  if (f.kind == Kind::enumeration && value < field.words.size()) {
    PyObject* word = field.words[static_cast<std::size_t>(value)];
    Py_INCREF(word);
    return word;
  }
  return PyLong_FromUnsignedLongLong(value);
}

void Layout::refuse(PyObject* kind, const Field& field, PyObject* value, const char* wanted) const {
  PyErr_Clear();
  PyErr_Format(kind, "%s: field %R takes %s, and not %R", std::string(schema_->name).c_str(),
               field.name, wanted, value);
  throw nb::python_error();
}

void Layout::refuse_range(const Field& field, PyObject* value, const std::string& least,
                          const std::string& most) const {
  const std::string wanted = "an integer from " + least + " to " + most;
  refuse(PyExc_OverflowError, field, value, wanted.c_str());
}

void Layout::write_integer(const Field& field, PyObject* value, std::byte* event) const {
  const FieldSchema& f = *field.schema;
  const nb::object whole = nb::steal(PyNumber_Index(value));
  if (!whole.is_valid()) refuse(PyExc_TypeError, field, value, "an integer");
  const unsigned bits = 8u * std::min<unsigned>(f.bytes, 8);
  if (is_signed(f.kind)) {
    int overflow = 0;
    const long long number = PyLong_AsLongLongAndOverflow(whole.ptr(), &overflow);
    const long long high = static_cast<long long>((std::uint64_t{1} << (bits - 1)) - 1);
    if (overflow != 0 || number > high || number < -high - 1)
      refuse_range(field, value, std::to_string(-high - 1), std::to_string(high));
    std::memcpy(event + f.offset, &number, f.bytes);
    return;
  }
  const unsigned long long number = PyLong_AsUnsignedLongLong(whole.ptr());
  if (PyErr_Occurred() != nullptr || (bits < 64 && number >> bits != 0))
    refuse_range(field, value, "0", std::to_string(~std::uint64_t{0} >> (64 - bits)));
  std::memcpy(event + f.offset, &number, f.bytes);
}

void Layout::write_word(const Field& field, PyObject* value, std::byte* event) const {
  for (std::size_t i = 0; i < field.words.size(); ++i) {
    if (PyUnicode_Compare(field.words[i], value) != 0) continue;
    std::memcpy(event + field.schema->offset, &i, field.schema->bytes);
    return;
  }
  const std::string words = "one of " + std::string(field.schema->enumerators) + ", or an integer";
  refuse(PyExc_ValueError, field, value, words.c_str());
}

void Layout::write_text(const Field& field, PyObject* value, std::byte* event) const {
  const FieldSchema& f = *field.schema;
  std::byte* at = event + f.offset;
  if (value != Py_None && !PyUnicode_Check(value)) refuse(PyExc_TypeError, field, value, "a str");
  nb::object held;
  const std::string_view text = value == Py_None ? std::string_view() : utf8_of(value, held);
  if (f.kind == Kind::name) return store(at, Name(text).id());
  const std::size_t n = ringmain::detail::utf8_prefix(text, f.bytes - 2u);
  store(at, static_cast<std::uint16_t>(n | (n < text.size() ? 0x8000u : 0u)));
  std::memset(at + 2, 0, f.bytes - 2u);
  if (n != 0) std::memcpy(at + 2, text.data(), n);
}

void Layout::write(const Field& field, PyObject* value, std::byte* event) const {
  const FieldSchema& f = *field.schema;
  std::byte* at = event + f.offset;
  switch (f.kind) {
    case Kind::f32:
    case Kind::f64: {
      const double number = PyFloat_AsDouble(value);
      if (number == -1.0 && PyErr_Occurred() != nullptr)
        refuse(PyExc_TypeError, field, value, "a number");
      f.kind == Kind::f32 ? store(at, static_cast<float>(number)) : store(at, number);
      return;
    }
    case Kind::boolean: {
      const int truth = PyObject_IsTrue(value);
      if (truth < 0) refuse(PyExc_TypeError, field, value, "True or False");
      return store(at, static_cast<std::uint8_t>(truth));
    }
    case Kind::name:
    case Kind::text:
      return write_text(field, value, event);
    case Kind::enumeration:
      if (PyUnicode_Check(value)) return write_word(field, value, event);
      return write_integer(field, value, event);
    default:
      return write_integer(field, value, event);
  }
}

void Layout::begin(std::byte* event) const noexcept {
  if (initial_.empty()) {
    std::memset(event, 0, schema_->bytes);
  } else {
    std::memcpy(event, initial_.data(), initial_.size());
  }
}

void Layout::write_named(PyObject* name, PyObject* value, std::byte* event) const {
  if (const Field* field = find(name)) return write(*field, value, event);
  std::string names;
  for (const Field& f : fields_) names += (names.empty() ? "" : ", ") + std::string(f.schema->name);
  PyErr_Format(PyExc_TypeError, "%s has no field %R; it has %s", std::string(schema_->name).c_str(),
               name, names.c_str());
  throw nb::python_error();
}

}  // namespace ringmain::python
