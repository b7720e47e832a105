# What does an installed copy hold of the adapters?
if(NOT RINGMAIN_LIBRARY_ONLY)
  get_property(injected GLOBAL PROPERTY RINGMAIN_INJECTED_LIBRARIES)
  list(APPEND injected ringmain_probe)
  if(RINGMAIN_FOR_WHEEL AND RINGMAIN_BUILD_CLI)
    add_dependencies(ringmain_wheel ${injected} ringmain_cli)
  elseif(RINGMAIN_FOR_WHEEL)  # for Python only: what the package loads itself, and not what `ringmain run` does
    set(injected ringmain_nccl_profiler ringmain_wait_counter ringmain_waits)
    add_dependencies(ringmain_wheel ${injected})
  endif()
  install(TARGETS ${injected}
    RUNTIME DESTINATION "${CMAKE_INSTALL_LIBDIR}/ringmain" COMPONENT tools
    LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}/ringmain" COMPONENT tools)
endif()

# Public headers are those directly in a folder of this list, and a few by name. An adapter's private headers lie in a folder of their
# own below, or beside those few (tools/check_layers.py: no public header includes a private one).
foreach(place IN ITEMS adapters adapters/formats adapters/sinks adapters/sources adapters/sources/compile)
  file(GLOB headers CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${place}/*.h" "${PROJECT_SOURCE_DIR}/${place}/*.hpp")
  install(FILES ${headers} DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/ringmain/${place}")
endforeach()

# Of the source of CUDA's calls those that a program uses; the folder holds private ones, too.
set(cuda_headers completions.hpp cuda_alarm_options.hpp cuda_alarms.hpp cuda_hazards.hpp cuda_options.hpp cuda_source.hpp
  traced.hpp traced_call.hpp traced_types.hpp)
list(TRANSFORM cuda_headers PREPEND "${PROJECT_SOURCE_DIR}/adapters/sources/cuda/")
install(FILES ${cuda_headers} DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/ringmain/adapters/sources/cuda")

# The same of collective operations.
set(collective_headers collective_arguments.hpp collective_current.hpp collective_hook.hpp collective_ledger.hpp collective_watchdog.hpp communicator.hpp
  communicator_gate.hpp communicator_mark.hpp flight_recorder_hook.hpp loopback.hpp torchcomms.hpp torchcomms_arguments.hpp torchcomms_calls.hpp)
list(TRANSFORM collective_headers PREPEND "${PROJECT_SOURCE_DIR}/adapters/sources/collective/")
install(FILES ${collective_headers}
  DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/ringmain/adapters/sources/collective")

# And of NCCL.
set(nccl_headers nccl.hpp nccl_call.hpp nccl_calls.hpp nccl_functions.hpp nccl_options.hpp nccl_source.hpp nccl_types.hpp)
list(TRANSFORM nccl_headers PREPEND "${PROJECT_SOURCE_DIR}/adapters/sources/nccl/")
install(FILES ${nccl_headers} DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/ringmain/adapters/sources/nccl")
