# What does the Debian package of the Python module hold? The module, and links to what it loads, which other packages hold.
#
# It is for the one Python 3 that the system has: pip's is not looked into by Debian's own programs.
find_package(Python 3.11 REQUIRED COMPONENTS Interpreter)
execute_process(COMMAND /usr/bin/python3 -c "import sys; print('%d.%d' % sys.version_info[:2])"
  OUTPUT_VARIABLE system_python OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
set(python "${Python_VERSION_MAJOR}.${Python_VERSION_MINOR}")
if(NOT system_python STREQUAL python)
  message(FATAL_ERROR "python3-ringmain is for the system's Python, /usr/bin/python3 (${system_python}), and ${Python_EXECUTABLE} is ${python}: "
    "name an interpreter of that version by -DPython_EXECUTABLE, or leave RINGMAIN_BUILD_PYTHON off.")
endif()
math(EXPR next "${Python_VERSION_MINOR} + 1")

list(APPEND CPACK_COMPONENTS_ALL python)
set(CPACK_DEBIAN_PYTHON_PACKAGE_NAME python3-ringmain)
set(CPACK_DEBIAN_PYTHON_PACKAGE_SECTION python)
set(CPACK_DEBIAN_PYTHON_PACKAGE_DEPENDS "${library} (= ${release}), ringmain (= ${release}), python3 (>= ${python}), python3 (<< ${Python_VERSION_MAJOR}.${next}), python3-numpy (>= 1:1.24)")
set(CPACK_DEBIAN_PYTHON_DESCRIPTION "${about}\n
This package has the module for Python 3: events as NumPy arrays, and as
callbacks, one call for each batch.")
file(WRITE "${texts}/postinst" "#!/bin/sh\nset -e\nif command -v py3compile >/dev/null 2>&1; then py3compile -p python3-ringmain; fi\n")
file(WRITE "${texts}/prerm" "#!/bin/sh\nset -e\nif command -v py3clean >/dev/null 2>&1; then py3clean -p python3-ringmain; fi\n")
set(CPACK_DEBIAN_PYTHON_PACKAGE_CONTROL_EXTRA "${texts}/postinst" "${texts}/prerm")

set(dist_packages lib/python3/dist-packages)
install(TARGETS ringmain_python LIBRARY DESTINATION "${dist_packages}/ringmain" COMPONENT python)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/bindings/python/ringmain" "${PROJECT_SOURCE_DIR}/bindings/python/ringmain_autoload"
  "${PROJECT_BINARY_DIR}/python/ringmain-${PROJECT_VERSION}.dist-info"
  DESTINATION "${dist_packages}" COMPONENT python PATTERN __pycache__ EXCLUDE)
# The module looks for libraries and program below itself, where a wheel carries them.
set(links "${texts}/links")
file(REMOVE_RECURSE "${links}")  # those of an earlier version would be installed, too
file(MAKE_DIRECTORY "${links}/lib" "${links}/bin")
set(to_libraries "../../../../${CMAKE_LIBRARY_ARCHITECTURE}")
foreach(one IN LISTS libraries)
  file(CREATE_LINK "${to_libraries}/lib${one}.so.${soversion}" "${links}/lib/lib${one}.so.${soversion}" SYMBOLIC)
endforeach()
file(CREATE_LINK "${to_libraries}/ringmain" "${links}/lib/ringmain" SYMBOLIC)
file(CREATE_LINK ../../../../../bin/ringmain "${links}/bin/ringmain" SYMBOLIC)
install(DIRECTORY "${links}/" DESTINATION "${dist_packages}/ringmain" COMPONENT python)
