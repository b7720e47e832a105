# What does an installed copy hold, and how do other build systems find it?
#
# The library, the registry with what it needs, their headers below include/ringmain, a CMake package and a pkg-config file. Without
# adapters (RINGMAIN_BUILD_ADAPTERS) the library, its headers and what C and Fortran need.
include(CMakePackageConfigHelpers)

# What a rule names no component for is for who compiles.
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME development)

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/ringmain")
set(namelink "")
if(RINGMAIN_FOR_WHEEL)
  # A wheel holds no links: each library is there once, by the name that the loader wants.
  set_property(TARGET ${libraries} PROPERTY VERSION)
  set(namelink NAMELINK_SKIP)
  install(TARGETS ringmain_python LIBRARY DESTINATION .)
  # What pyproject.toml has built: what the wheel holds, and no more.
  add_custom_target(ringmain_wheel)
  add_dependencies(ringmain_wheel ringmain_python ${libraries})
endif()

install(TARGETS ${libraries} ringmain_headers EXPORT ringmainTargets
  LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT library NAMELINK_COMPONENT development ${namelink}
  ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}"
  RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
if(NOT RINGMAIN_FOR_WHEEL)  # Python has a loopback of its own, and links nothing
  set(archives "")
  if(RINGMAIN_BUILD_ADAPTERS)
    list(APPEND archives ringmain_loopback)
  endif()
  if(RINGMAIN_BUILD_STATIC)
    list(APPEND archives ringmain_static)
  endif()
  if(archives)
    install(TARGETS ${archives} EXPORT ringmainTargets ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
  endif()
endif()
if(RINGMAIN_BUILD_ADAPTERS)
  include(PackagingAdapters)
endif()
install(EXPORT ringmainTargets NAMESPACE ringmain:: DESTINATION "${package_dir}")
# All headers of these rooms but the one that needs moodycamel's.
install(DIRECTORY "${PROJECT_SOURCE_DIR}/engine" "${PROJECT_SOURCE_DIR}/bus" "${PROJECT_SOURCE_DIR}/events"
  DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/ringmain" FILES_MATCHING PATTERN "*.hpp" PATTERN "mpmc_queue.hpp" EXCLUDE)

# For C, and for Fortran, whose module users compile themselves.
install(TARGETS ringmain_c EXPORT ringmainTargets)
install(FILES "${PROJECT_SOURCE_DIR}/bindings/c/ringmain.h" "${PROJECT_SOURCE_DIR}/bindings/c/ringmain_record.h"
  "${PROJECT_SOURCE_DIR}/bindings/c/ringmain_visit.h"
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
  "${PROJECT_SOURCE_DIR}/cmake/RingmainPlugin.cmake"
  "${PROJECT_SOURCE_DIR}/cmake/WritePluginManifest.cmake"
  DESTINATION "${package_dir}")

if(RINGMAIN_FOR_WHEEL)
  return()  # a compiler finds no library there by -lringmain, and the licence lies in the wheel's own folder
endif()

# The paths of the pkg-config file follow the file, so that a moved prefix still works.
file(RELATIVE_PATH pc_to_prefix "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
cmake_path(SET pc_to_prefix NORMALIZE "${pc_to_prefix}")
configure_file("${PROJECT_SOURCE_DIR}/cmake/ringmain.pc.in"
  "${PROJECT_BINARY_DIR}/package/ringmain.pc" @ONLY)
configure_file("${PROJECT_SOURCE_DIR}/cmake/ringmain-c.pc.in"
  "${PROJECT_BINARY_DIR}/package/ringmain-c.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/package/ringmain.pc" "${PROJECT_BINARY_DIR}/package/ringmain-c.pc"
  DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
if(RINGMAIN_DEBIAN)
  include(Debian)
  return()  # a Debian package says the licence in its file copyright
endif()
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DOCDIR}")
