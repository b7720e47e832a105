// Does CUDA's source tell this process's calls on this bus just now?
//
// Its library is asked, once it is loaded. That it may be loaded now is known from the source's
// notices, which an inline subscriber of C++ hears in the thread that attaches the source, before
// attach() returns. It takes no GIL, because a notice may come from inside a CUDA call, whose
// caller may hold what a thread with the GIL waits for. A notice of somebody whose library is not
// found counts as it is.
#include <atomic>
#include <dlfcn.h>
#include <memory>
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
        [known = known_](const cuda::SourceNotice& notice) noexcept { known->hear(notice.state); },
        std::move(options));
    known_->look();
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
    void look() noexcept {
      if (ask_.load() != nullptr) return;
      if (void* const library = ::dlopen(RINGMAIN_CUDA_FILE, RTLD_LAZY | RTLD_NOLOAD))
        ask_.store(reinterpret_cast<Ask*>(::dlsym(library, "ringmain_cuda_state")));
    }
    void hear(cuda::SourceState state) noexcept {
      if (state == cuda::SourceState::unavailable) return;
      said_.store(state);
      look();
    }
    [[nodiscard]] bool tells() const noexcept {
      const Ask* const ask = ask_.load();
      const int state = ask != nullptr ? ask(bus_) : static_cast<int>(said_.load());
      return state == static_cast<int>(cuda::SourceState::attached);
    }

   private:
    using Ask = int(const void* bus) noexcept;
    const Bus* bus_;
    std::atomic<Ask*> ask_{nullptr};
    std::atomic<cuda::SourceState> said_{cuda::SourceState::detached};
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
