# What do Debian packages of this tree hold, and what do they say of themselves? `cpack -G DEB` makes three:
#
# the libraries (component library), what compiles against them (development), and the program (tools). With RINGMAIN_BUILD_PYTHON
# also the module (python), which loads the libraries and the program of the others.
set(library "lib${PROJECT_NAME}${soversion}")
set(release "${PROJECT_VERSION}-1")
# Nobody is named here: who hands packages out says who they are, as Debian's own tools are told.
set(maintainer "ringmain developers <noreply@ringmain.invalid>")
if(NOT "$ENV{DEBEMAIL}" STREQUAL "")
  set(maintainer "$ENV{DEBEMAIL}")
  if(NOT "$ENV{DEBFULLNAME}" STREQUAL "")
    set(maintainer "$ENV{DEBFULLNAME} <$ENV{DEBEMAIL}>")
  endif()
endif()

# The same tree gives the same changelog: its date is that of what it tells.
set(texts "${PROJECT_BINARY_DIR}/package/debian")
file(TIMESTAMP "${PROJECT_SOURCE_DIR}/CHANGELOG.md" date "%a, %d %b %Y %H:%M:%S +0000" UTC)
file(TIMESTAMP "${PROJECT_SOURCE_DIR}/CHANGELOG.md" year "%Y" UTC)
file(WRITE "${texts}/changelog.Debian" "ringmain (${release}) unstable; urgency=medium\n
  * Packages made by CPack; CHANGELOG.md of the source says what changed.\n
 -- ${maintainer}  ${date}\n")
file(WRITE "${texts}/copyright" "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: ringmain\n
Files: *
Copyright: ${year} the ringmain developers
License: Apache-2.0\n
License: Apache-2.0
 On Debian systems the text of the Apache License, version 2.0, is in
 /usr/share/common-licenses/Apache-2.0.\n")
find_program(GZIP_PROGRAM gzip REQUIRED)
execute_process(COMMAND "${GZIP_PROGRAM}" -9nf "${texts}/changelog.Debian" COMMAND_ERROR_IS_FATAL ANY)

set(CPACK_PACKAGE_NAME ringmain)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "event plane of a GPU training process")
set(about "Typed events of a training process, published without locks and heard by
subscribers in the same process: collective operations, CUDA and NCCL.")
set(CPACK_PACKAGE_VERSION "${PROJECT_VERSION}")
set(CPACK_PACKAGE_DIRECTORY "${PROJECT_BINARY_DIR}/packages")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_COMPONENTS_ALL library development tools)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "${maintainer}")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS "${CMAKE_LIBRARY_OUTPUT_DIRECTORY}")

set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME "${library}")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libs)
file(WRITE "${texts}/triggers" "activate-noawait ldconfig\n")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA "${texts}/triggers")
set(CPACK_DEBIAN_LIBRARY_DESCRIPTION "${about}\n
This package has the shared libraries.")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libringmain-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "${library} (= ${release})")
set(CPACK_DEBIAN_DEVELOPMENT_DESCRIPTION "${about}\n
This package has headers for C++, C and Fortran, static libraries, and what
CMake and pkg-config find ringmain by.")
set(CPACK_DEBIAN_TOOLS_PACKAGE_NAME ringmain)
set(CPACK_DEBIAN_TOOLS_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_TOOLS_PACKAGE_DEPENDS "${library} (= ${release})")
set(CPACK_DEBIAN_TOOLS_DESCRIPTION "${about}\n
This package has the program, which runs a command with events switched on,
replays, summarises and merges them, its manual, and completion for shells.")
if(RINGMAIN_BUILD_PYTHON)
  include(DebianPython)
endif()

foreach(component IN LISTS CPACK_COMPONENTS_ALL)
  string(TOUPPER "${component}" upper)
  set(package "${CPACK_DEBIAN_${upper}_PACKAGE_NAME}")
  install(FILES "${texts}/copyright" "${texts}/changelog.Debian.gz" DESTINATION "share/doc/${package}" COMPONENT ${component})
endforeach()
# The program's folder wrote the pages before this rule compresses them.
install(CODE "file(GLOB pages \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_MANDIR}/man1/*.1\")
  execute_process(COMMAND \"${GZIP_PROGRAM}\" -9nf \${pages} COMMAND_ERROR_IS_FATAL ANY)" COMPONENT tools)
include(CPack)
