// How does an event's struct look from Python? Field by field, by the description it was made with.
#pragma once
#include <cstddef>
#include <nanobind/nanobind.h>
#include <string_view>
#include <utility>
#include <vector>

#include "bus/event.hpp"

namespace ringmain::python {
namespace nb = nanobind;

constexpr std::size_t kEventBytesMax = 1024;
template <std::size_t N>
struct OfBytes {
  std::byte bytes[N];
};
static_assert(Event<OfBytes<kEventBytesMax>> && !Event<OfBytes<kEventBytesMax + 1>>);

/// A schema with its words as Python strings. Lives as long as the process, like the schema.
class Layout {
 public:
  struct Field {
    const FieldSchema* schema;
    PyObject* name;                // interned
    std::vector<PyObject*> words;  // of an enumeration whose enumerators have names
  };

  /// The layout of that schema. With the GIL; throws std::bad_alloc, nanobind::python_error.
  static Layout& of(const Schema& schema);
  /// The event whose values fields have that are not given; without it, zeroes.
  void set_initial(std::vector<std::byte> bytes) noexcept { initial_ = std::move(bytes); }

  [[nodiscard]] const Schema& schema() const noexcept { return *schema_; }
  [[nodiscard]] const std::vector<Field>& fields() const noexcept { return fields_; }
  /// nullptr if no field has that name.
  [[nodiscard]] const Field* find(PyObject* name) const noexcept;

  /// The value of a field of the event at `event`: int, float, bool, or str for names, text and
  /// enumerations that say their words. A new reference; nullptr with a Python error set.
  static PyObject* read(const Field& field, const std::byte* event) noexcept;
  /// Writes a Python value. Throws nanobind::python_error with one sentence where it does not fit.
  void write(const Field& field, PyObject* value, std::byte* event) const;
  /// An event before any field was given: all as it is in C++.
  void begin(std::byte* event) const noexcept;
  /// The field of that name. Throws as write(), also if there is none.
  void write_named(PyObject* name, PyObject* value, std::byte* event) const;

 private:
  explicit Layout(const Schema& schema);
  [[noreturn]] void refuse(PyObject* kind, const Field& field, PyObject* value,
                           const char* wanted) const;
  [[noreturn]] void refuse_range(const Field& field, PyObject* value, const std::string& least,
                                 const std::string& most) const;
  void write_integer(const Field& field, PyObject* value, std::byte* event) const;
  void write_word(const Field& field, PyObject* value, std::byte* event) const;
  void write_text(const Field& field, PyObject* value, std::byte* event) const;

  const Schema* schema_;
  std::vector<Field> fields_;
  std::vector<std::byte> initial_;
};

/// Any text as a Python string, damaged UTF-8 replaced. A new reference, or nullptr.
PyObject* python_text(std::string_view text) noexcept;
/// The UTF-8 of a Python string; lone surrogates are replaced. `held` keeps what it points into.
std::string_view utf8_of(PyObject* text, nb::object& held);

}  // namespace ringmain::python
