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

/// An event's class as it was when it was looked at. Under the GIL.
class SeenClass {
 public:
  /// Is it that class, and describes it the same event?
  [[nodiscard]] bool is(PyTypeObject* type) const;
  void becomes(PyTypeObject* type, const Layout& layout);

 private:
#ifdef Py_LIMITED_API
  nb::object weak_;  // no other class can have its address while this leads to it
  const Layout* layout_ = nullptr;
#else
  // Its version changes when the class, or one of its bases, is changed, and no other class ever
  // has the same version; 0: Python gives it none.
  PyTypeObject* type_ = nullptr;  // compared only: the class may be gone
  unsigned version_ = 0;
#endif
};

/// The channels that Python has published on, by event type and by name. Under the GIL.
class PublishedChannels {
 public:
  /// Finds the channel, or makes it. Throws as NativeBus::channel().
  const Channel& of(NativeBus& bus, const Layout& layout);
  /// The channel of that class's events; nullptr if it is no event's. Throws as
  /// NativeBus::channel().
  const Channel* of(NativeBus& bus, PyTypeObject* type);
  /// The channel of that name. Throws KeyError or ValueError if there is none.
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
  // References into these stay valid while Python code, perhaps inside a publish, adds others.
  std::unordered_map<const Layout*, Channel> by_layout_;
  struct Seen {
    SeenClass type;
    const Channel* channel = nullptr;
  };
  Seen seen_[8];  // the classes of events that were published last, by their addresses
  ByName by_name_;
  std::vector<ByName::node_type> outdated_;  // kept: a publish may be using them
  unsigned changes_ = 0;                     // of names, that by_name_ has seen
};

/// Sets the Python error that stands for a C++ one. Always returns nullptr.
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
