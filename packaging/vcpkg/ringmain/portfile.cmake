# An overlay port: it builds the tree that it lies in. What C++ and C programs link; the program `ringmain` is not in it.
#   vcpkg install ringmain --overlay-ports=packaging/vcpkg
get_filename_component(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)

# The shared library is always built: what several libraries of a process publish to is one bus.
vcpkg_check_linkage(ONLY_DYNAMIC_LIBRARY)
vcpkg_check_features(OUT_FEATURE_OPTIONS FEATURE_OPTIONS
  FEATURES
    adapters RINGMAIN_BUILD_ADAPTERS
    static RINGMAIN_BUILD_STATIC
)
vcpkg_cmake_configure(
  SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS
    ${FEATURE_OPTIONS}
    -DRINGMAIN_BUILD_CLI=OFF
    -DRINGMAIN_BUILD_EXAMPLES=OFF
    -DRINGMAIN_BUILD_TESTS=OFF
    -DRINGMAIN_INSTALL=ON
    -DRINGMAIN_LIBRARY_ONLY=ON
)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/ringmain)
vcpkg_fixup_pkgconfig()

file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share" "${CURRENT_PACKAGES_DIR}/share/doc")
file(INSTALL "${CMAKE_CURRENT_LIST_DIR}/usage" DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
