// How does C leave what is published in a file that outlives the process?
#include <limits>
#include <memory>
#include <string>

#include "events/recorded_operations.hpp"

#include "bindings/c/handles.hpp"

using namespace ringmain::c;  // NOLINT(google-build-using-namespace): this is its face

struct ringmain_recording {
  explicit ringmain_recording(ringmain::Recording made)
      : held(std::move(made)), path(held.path()), complaint(held.complaint()) {}
  ringmain::Recording held;
  const std::string path, complaint;
};

namespace {

template <class Size>
void set_unless_0(Size& to, std::uint64_t given) {
  if (given != 0) to = static_cast<Size>(given);
}

ringmain_code options_of(const ringmain_record_options* given, ringmain::RecordOptions& options) {
  ringmain_record_options o;
  if (const auto code = read_struct(given, "ringmain_record_options", o)) return code;
  if (o.folder != nullptr) options.folder = o.folder;
  set_unless_0(options.file_bytes, o.file_bytes);
  set_unless_0(options.ring_bytes, o.ring_bytes);
  set_unless_0(options.files_kept, o.files_kept);
  if (o.files_kept == RINGMAIN_FILES_ALL)
    options.files_kept = std::numeric_limits<std::size_t>::max();
  options.operations = ringmain::collective::recorded_operations();
  return RINGMAIN_OK;
}

}  // namespace

extern "C" {

ringmain_code ringmain_record(ringmain_bus* bus, const char* patterns,
                              const ringmain_record_options* options,
                              ringmain_recording** recording) {
  return guarded([&] {
    if (bus == nullptr) return fail(RINGMAIN_REFUSED, "bus is NULL; open one");
    if (patterns == nullptr)
      return fail(RINGMAIN_REFUSED, "patterns is NULL; give channels, as in \"collective.>\"");
    if (recording == nullptr)
      return fail(RINGMAIN_REFUSED, "recording is NULL; give a place for it");
    if (ringmain::detail::Erased::core(*bus->bus).forked())
      return published({ringmain::PublishCode::forked, {}});
    ringmain::RecordOptions known;
    if (const auto code = options_of(options, known)) return code;
    auto made = bus->bus->record(patterns, std::move(known));
    if (!made) return fail(made.error());
    *recording = std::make_unique<ringmain_recording>(std::move(made).value()).release();
    return ringmain_code{RINGMAIN_OK};
  });
}

const char* ringmain_recording_path(const ringmain_recording* recording) {
  return recording != nullptr ? recording->path.c_str() : "";
}

const char* ringmain_recording_complaint(const ringmain_recording* recording) {
  return recording != nullptr ? recording->complaint.c_str() : "";
}

void ringmain_recording_close(ringmain_recording* recording) {
  delete recording;
}

}  // extern "C"
