# How is a build with RINGMAIN_SANITIZE different?
#
# Every target below the root file is instrumented; the first finding ends the program.
if(RINGMAIN_SANITIZE)
  if(NOT RINGMAIN_SANITIZE MATCHES "^(thread|address|undefined|address,undefined)$")
    message(FATAL_ERROR "RINGMAIN_SANITIZE is '${RINGMAIN_SANITIZE}'; give address,undefined or thread.")
  endif()
  add_compile_options(-fsanitize=${RINGMAIN_SANITIZE} -fno-sanitize-recover=all
    -fno-omit-frame-pointer -g1)  # line tables are all that a report needs
  add_link_options(-fsanitize=${RINGMAIN_SANITIZE})
  # Several files of a target are compiled at once, because most of the time goes into the headers that they share. So two
  # files of a target must not use the same name in their unnamed namespaces. The other builds compile each file of the
  # library by itself, as it must stand.
  if(NOT DEFINED CMAKE_UNITY_BUILD)
    set(CMAKE_UNITY_BUILD ON)
  endif()
  if(RINGMAIN_SANITIZE STREQUAL "thread" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # GCC says at every stand-alone fence that it is not modelled; the queue's are edited away.
    add_compile_options(-Wno-tsan)
  endif()
endif()
