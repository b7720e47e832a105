# Where is moodycamel::ConcurrentQueue?
#
# Each packager puts the header in another place, and a CMake package's version says nothing, so this
# module looks for the file itself. Installed with ringmain, whose public headers include the queue.
#
# Defines the target concurrentqueue::concurrentqueue, concurrentqueue_INCLUDE_DIR and
# concurrentqueue_HEADER, the header's path below it.
set(_concurrentqueue_headers  # in the order of engine/publish/mpmc_queue.hpp
  concurrentqueue/moodycamel/concurrentqueue.h  # its own install rules
  concurrentqueue/concurrentqueue.h             # Debian, Fedora
  moodycamel/concurrentqueue.h                  # Conan, older vcpkg
  concurrentqueue.h)                            # a bare checkout

find_path(concurrentqueue_INCLUDE_DIR NAMES ${_concurrentqueue_headers})
mark_as_advanced(concurrentqueue_INCLUDE_DIR)

unset(concurrentqueue_HEADER)
foreach(_concurrentqueue_header IN LISTS _concurrentqueue_headers)
  if(NOT concurrentqueue_HEADER
      AND EXISTS "${concurrentqueue_INCLUDE_DIR}/${_concurrentqueue_header}")
    set(concurrentqueue_HEADER "${_concurrentqueue_header}")
  endif()
endforeach()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(concurrentqueue
  REQUIRED_VARS concurrentqueue_INCLUDE_DIR concurrentqueue_HEADER
  REASON_FAILURE_MESSAGE
    "moodycamel's concurrentqueue.h was not found. On Debian and Ubuntu: apt install libconcurrentqueue-dev. Elsewhere set concurrentqueue_INCLUDE_DIR to the folder that holds it.")

if(concurrentqueue_FOUND AND NOT TARGET concurrentqueue::concurrentqueue)
  add_library(concurrentqueue::concurrentqueue INTERFACE IMPORTED)
  set_target_properties(concurrentqueue::concurrentqueue PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${concurrentqueue_INCLUDE_DIR}")  # SYSTEM, as of all imported targets
endif()
