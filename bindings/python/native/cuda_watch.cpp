// Does CUDA's source tell this process's calls on this bus just now?
//
// Its library is asked whenever a notice of the source says that something has changed. An inline
// subscriber of C++ hears the notices, in the thread that changes it and before that call returns.
// It takes no GIL, because a notice may come from inside a CUDA call, whose caller may hold what a
// thread with the GIL waits for. A notice of somebody whose library is not found counts as it is.
#include <atomic>
#include <dlfcn.h>
#include <memory>
#include <mutex>
#include <nanobind/stl/string_view.h>

#include "events/cuda_source.hpp"

#include "bindings/python/native/bus.hpp"

namespace ringmain::python {
namespace {

class CudaWatch {
 public:
  explicit CudaWatch(NativeBus& bus) : known_(std::make_shared<Known>(bus.bus())) {
    SubscribeOptions options;
    options.name = "ringmain.torch beside CUDA's source";
    // First the notices, then the question: what changes in between is in one of them.
    heard_ = bus.bus().channel<cuda::SourceNotice>().subscribe_inline(
        [known = known_](const cuda::SourceNotice& notice) { known->hear(notice.state); },
        std::move(options));
    known_->look(static_cast<int>(cuda::SourceState::detached));
  }
  [[nodiscard]] bool tells() const noexcept { return known_->tells(); }
  void end() noexcept {
    const Released released;
    (void)heard_.reset();
  }

 private:
  class Known {
   public:
    explicit Known(const Bus& bus) noexcept : bus_(&bus) {}
    void hear(cuda::SourceState state) {
      if (state != cuda::SourceState::unavailable) look(static_cast<int>(state));
    }
    /// `said`: what counts where the library is not loaded.
    void look(int said) {
      const std::lock_guard held(asking_);  // what is stored last was asked last
      if (ask_ == nullptr) {
        if (void* const library = ::dlopen(RINGMAIN_CUDA_FILE, RTLD_LAZY | RTLD_NOLOAD))
          ask_ = reinterpret_cast<Ask*>(::dlsym(library, "ringmain_cuda_state"));
      }
      const int state = ask_ != nullptr ? ask_(bus_) : said;
      tells_.store(state == static_cast<int>(cuda::SourceState::attached));
    }
    [[nodiscard]] bool tells() const noexcept { return tells_.load(); }

   private:
    using Ask = int(const void* bus) noexcept;
    const Bus* bus_;
    std::mutex asking_;
    Ask* ask_ = nullptr;
    std::atomic<bool> tells_{false};
  };

  std::shared_ptr<Known> known_;
  Subscription heard_;
};

}  // namespace

void bind_cuda_watch(nb::module_& m) {
  m.attr("cuda_library") = RINGMAIN_CUDA_FILE;  // the name by which the loader knows it
  nb::class_<CudaWatch>(m, "CudaWatch",
                        "Whether CUDA's source tells this process's calls on this bus just now. "
                        "Threads: any.")
      .def(
          "__init__", [](CudaWatch* self, NativeBus& bus) { new (self) CudaWatch(bus); },
          nb::keep_alive<1, 2>(), nb::arg("bus"))
      .def_prop_ro("tells", &CudaWatch::tells)
      .def("end", &CudaWatch::end);
}

}  // namespace ringmain::python
