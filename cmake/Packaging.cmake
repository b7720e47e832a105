# What does an installed copy hold, and how do other build systems find it?
#
# The library, the registry with what it needs, their headers below include/ringmain, a CMake package (with the module that finds the queue,
# which the public headers include) and a pkg-config file.
include(CMakePackageConfigHelpers)

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/ringmain")
set(libraries ringmain ringmain_registry ringmain_collective ringmain_compile ringmain_cuda ringmain_nccl ringmain_run)
set(namelink "")
if(RINGMAIN_FOR_WHEEL)
  # A wheel holds no links: each library is there once, by the name that the loader wants.
  set_property(TARGET ${libraries} PROPERTY VERSION)
  set(namelink NAMELINK_SKIP)
  install(TARGETS ringmain_python LIBRARY DESTINATION .)
endif()

install(TARGETS ${libraries} ringmain_headers EXPORT ringmainTargets
  LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" ${namelink}
  ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}"
  RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
if(NOT RINGMAIN_FOR_WHEEL)  # Python has a loopback of its own
  install(TARGETS ringmain_loopback EXPORT ringmainTargets ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
endif()
get_property(injected GLOBAL PROPERTY RINGMAIN_INJECTED_LIBRARIES)
install(TARGETS ringmain_probe ${injected}
  RUNTIME DESTINATION "${CMAKE_INSTALL_LIBDIR}/ringmain"
  LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}/ringmain")
install(EXPORT ringmainTargets NAMESPACE ringmain:: DESTINATION "${package_dir}")
# Public headers are those in these places: all of the first three, and of the adapters those directly in a folder of
# the list, and a few by name. An adapter's private headers lie in a folder of their own below, or beside those few
# (tools/check_layers.py: no public header includes a private one).
install(DIRECTORY "${PROJECT_SOURCE_DIR}/engine" "${PROJECT_SOURCE_DIR}/bus" "${PROJECT_SOURCE_DIR}/events"
  DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/ringmain" FILES_MATCHING PATTERN "*.hpp")
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
  communicator_gate.hpp flight_recorder_hook.hpp loopback.hpp torchcomms.hpp torchcomms_arguments.hpp torchcomms_calls.hpp)
list(TRANSFORM collective_headers PREPEND "${PROJECT_SOURCE_DIR}/adapters/sources/collective/")
install(FILES ${collective_headers}
  DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/ringmain/adapters/sources/collective")

# And of NCCL.
set(nccl_headers nccl.hpp nccl_call.hpp nccl_calls.hpp nccl_functions.hpp nccl_options.hpp nccl_source.hpp nccl_types.hpp)
list(TRANSFORM nccl_headers PREPEND "${PROJECT_SOURCE_DIR}/adapters/sources/nccl/")
install(FILES ${nccl_headers} DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/ringmain/adapters/sources/nccl")

# For C, and for Fortran, whose module users compile themselves.
install(TARGETS ringmain_c EXPORT ringmainTargets)
install(FILES "${PROJECT_SOURCE_DIR}/bindings/c/ringmain.h" "${PROJECT_SOURCE_DIR}/bindings/c/ringmain_record.h"
  "${PROJECT_SOURCE_DIR}/bindings/c/ringmain.f90"
  DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/ringmain/c")

configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/ringmainConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/package/ringmainConfig.cmake" INSTALL_DESTINATION "${package_dir}")
set(compatibility SameMajorVersion)
if(PROJECT_VERSION_MAJOR EQUAL 0)
  set(compatibility SameMinorVersion)  # before 1.0 a minor version may change the interface
endif()
write_basic_package_version_file("${PROJECT_BINARY_DIR}/package/ringmainConfigVersion.cmake"
  COMPATIBILITY ${compatibility})
install(FILES
  "${PROJECT_BINARY_DIR}/package/ringmainConfig.cmake"
  "${PROJECT_BINARY_DIR}/package/ringmainConfigVersion.cmake"
  "${PROJECT_SOURCE_DIR}/cmake/Findconcurrentqueue.cmake"
  "${PROJECT_SOURCE_DIR}/cmake/RingmainPlugin.cmake"
  "${PROJECT_SOURCE_DIR}/cmake/WritePluginManifest.cmake"
  DESTINATION "${package_dir}")

if(RINGMAIN_FOR_WHEEL)
  return()  # a compiler finds no library there by -lringmain, and the licence lies in the wheel's own folder
endif()

# The paths of the pkg-config file follow the file, so that a moved prefix still works.
file(RELATIVE_PATH pc_to_prefix "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
cmake_path(SET pc_to_prefix NORMALIZE "${pc_to_prefix}")
set(pc_queue_cflags "")
if(NOT concurrentqueue_INCLUDE_DIR IN_LIST CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES)
  set(pc_queue_cflags " -I${concurrentqueue_INCLUDE_DIR}")
endif()
configure_file("${PROJECT_SOURCE_DIR}/cmake/ringmain.pc.in"
  "${PROJECT_BINARY_DIR}/package/ringmain.pc" @ONLY)
configure_file("${PROJECT_SOURCE_DIR}/cmake/ringmain-c.pc.in"
  "${PROJECT_BINARY_DIR}/package/ringmain-c.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/package/ringmain.pc" "${PROJECT_BINARY_DIR}/package/ringmain-c.pc"
  DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DOCDIR}")
