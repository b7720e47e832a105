// The extension module ringmain._native: what Python's own layer in python/ringmain is made of.
#include "bindings/python/native/batch.hpp"
#include "bindings/python/native/bus.hpp"
#include "bindings/python/native/channel.hpp"
#include "bindings/python/native/communicator.hpp"

NB_MODULE(_native, m) {
  m.doc() = "The bus behind the package ringmain. Use the package.";
  m.attr("__version__") = RINGMAIN_VERSION;
  m.attr("run_library") = RINGMAIN_RUN_FILE;  // the name by which the loader knows it
  m.attr("nccl_library") = RINGMAIN_NCCL_FILE;
  ringmain::python::bind_batch(m);
  ringmain::python::bind_channel(m);
  ringmain::python::bind_bus(m);
  ringmain::python::bind_recording(m);
  ringmain::python::bind_steps(m);
  ringmain::python::bind_collective(m);
  ringmain::python::bind_compile(m);
  ringmain::python::bind_cuda_watch(m);
  ringmain::python::bind_door(m);
  ringmain::python::bind_guard_hook(m);
  ringmain::python::bind_communicator(m);
  ringmain::python::bind_flight_recorder(m);
  ringmain::python::bind_watchdog(m);
}
