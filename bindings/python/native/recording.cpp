// A bus's flight recorder for Python: what was published stays in a file that outlives the process.
#include <nanobind/stl/string.h>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "events/recorded_operations.hpp"

#include "bindings/python/native/bus.hpp"

namespace ringmain::python {
namespace {

/// Nothing of it calls into Python, so no thread that records waits for the GIL.
class NativeRecording {
 public:
  explicit NativeRecording(Recording made) noexcept : held_(std::move(made)) {}
  NativeRecording(NativeRecording&&) noexcept = default;
  NativeRecording& operator=(NativeRecording&&) = delete;
  /// Once the interpreter is ending it goes on: what becomes of a process that hangs there is to be
  /// in the file, too.
  ~NativeRecording() {
    if (!exiting()) end();
    if (!held_) return;
    static auto& kept = *new std::vector<Recording>;
    kept.push_back(std::move(held_));
  }

  [[nodiscard]] std::string path() const { return path_; }
  [[nodiscard]] std::string complaint() const { return complaint_; }
  [[nodiscard]] bool goes_on() const noexcept { return bool(held_) && !born_.forked(); }
  /// Waits, without the GIL, for threads that are in the middle of a record. Of two threads that
  /// end it at once one does.
  void end() noexcept {
    if (!held_) return;
    Recording ending = std::move(held_);
    const Released released;
    ending.reset();
  }

 private:
  Recording held_;
  const std::string path_ = held_.path();  // known after its end, too
  const std::string complaint_ = held_.complaint();
  const engine::Born born_;
};

NativeRecording record(const NativeBus& on, const std::string& patterns, std::string folder,
                       std::size_t file_bytes, std::size_t ring_bytes, std::size_t files_kept) {
  Bus& bus = on.bus();
  std::optional<Result<Recording>> made;
  {
    const Released released;
    RecordOptions options;
    options.folder = std::move(folder);
    options.file_bytes = file_bytes;
    options.ring_bytes = ring_bytes;
    options.files_kept = files_kept;
    options.operations = collective::recorded_operations();
    made.emplace(bus.record(patterns, std::move(options)));
  }
  if (!*made) {
    PyErr_SetString(
        made->error().code == Error::Code::no_memory ? PyExc_MemoryError : PyExc_ValueError,
        made->error().message.c_str());
    throw nb::python_error();
  }
  return NativeRecording(std::move(*made).value());
}

}  // namespace

void bind_recording(nb::module_& m) {
  nb::class_<NativeRecording>(m, "Recording")
      .def_prop_ro("path", &NativeRecording::path)
      .def_prop_ro("complaint", &NativeRecording::complaint)
      .def_prop_ro("goes_on", &NativeRecording::goes_on)
      .def("end", &NativeRecording::end);
  m.def("record", &record, nb::arg("bus"), nb::arg("patterns"), nb::arg("folder"),
        nb::arg("file_bytes"), nb::arg("ring_bytes"), nb::arg("files_kept"));
}

}  // namespace ringmain::python
