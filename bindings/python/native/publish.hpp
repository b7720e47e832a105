// bus.publish(event) and bus.publish("its.name", field=…), as functions of C: what a program calls
// first must not cost several times what channel.publish() does.
#pragma once
#include <exception>
#include <functional>
#include <new>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "bindings/python/native/channel.hpp"

namespace ringmain::python {

class NativeBus;

/// The channels that a bus has said something on, by event type and by name. Under the GIL.
class PublishedChannels {
 public:
  /// Finds, or makes. Throws as NativeBus::channel().
  const Channel& of(NativeBus& bus, const Layout& layout);
  /// Of an event of that class; nullptr where it is none. Throws as NativeBus::channel().
  const Channel* of(NativeBus& bus, PyTypeObject* type);
  /// Throws KeyError, ValueError where there is none of that name.
  const Channel& of(PyObject* bus, PyObject* name);
  /// Names stand for other channels from now on: a class of that name was changed.
  static void names_changed() noexcept;

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const noexcept {
      return std::hash<std::string_view>{}(text);
    }
  };
  using ByName = std::unordered_map<std::string, Channel, Hash, std::equal_to<>>;
  // References into them stay good while Python code, which may run inside a publish, adds others.
  std::unordered_map<const Layout*, Channel> by_layout_;
  // The class that was said last. Its version is another once it, or a class that it is made of,
  // has been changed, and no other class ever has it; 0: Python has none for it.
  PyTypeObject* last_type_ = nullptr;  // compared only: it may be gone
  unsigned last_version_ = 0;
  const Channel* last_ = nullptr;
  ByName by_name_;
  std::vector<ByName::node_type> outdated_;  // kept: a publish may be using them
  unsigned changes_ = 0;                     // of names, that by_name_ has seen
};

/// The Python error that a C++ one stands for. Always nullptr.
template <class Work>
PyObject* guarded(Work work) noexcept {
  try {
    return work();
  } catch (nb::python_error& error) {
    error.restore();
  } catch (nb::builtin_exception& error) {
    PyErr_SetString(
        error.type() == nb::exception_type::type_error ? PyExc_TypeError : PyExc_ValueError,
        error.what());
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return nullptr;
}

/// channel.publish(field=value, …) and bus.publish(…), bound to that Channel or NativeBus.
[[nodiscard]] nb::object channel_publish_function(nb::handle channel);
[[nodiscard]] nb::object bus_publish_function(nb::handle bus);
/// A new reference. The results without a reason are made once.
[[nodiscard]] PyObject* result_object(PublishResult result);
void bind_results(nb::module_& m);

}  // namespace ringmain::python
