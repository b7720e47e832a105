# How is a library built that is loaded into programs which know nothing of ringmain?
#
#   ringmain_add_injected_library(NAME SOURCES file… [LINK target…] [C_ONLY])
#
# It lies in the folder ringmain/ beside ringmain's libraries, in the build tree and where it is installed. It is
# linked only with what it uses, and a program sees only what it exports. With C_ONLY it needs the C library alone:
# for a preload, which the loader puts into every program.
function(ringmain_add_injected_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "C_ONLY" "" "SOURCES;LINK")
  add_library(${name} MODULE ${arg_SOURCES})
  if(arg_C_ONLY)
    target_compile_options(${name} PRIVATE -fno-exceptions -fno-rtti)
    list(APPEND arg_LINK ringmain::headers)
  else()
    list(APPEND arg_LINK ringmain::run)
  endif()
  target_link_libraries(${name} PRIVATE ${arg_LINK} ringmain::warnings ${CMAKE_DL_LIBS})
  # It stays once it is loaded: other code keeps pointers into it, and threads that end run code of it.
  target_link_options(${name} PRIVATE LINKER:-z,nodelete "LINKER:--exclude-libs,ALL" LINKER:--as-needed)
  set_target_properties(${name} PROPERTIES CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
    INSTALL_RPATH "$ORIGIN/..")
  if(PROJECT_IS_TOP_LEVEL)
    set_target_properties(${name} PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/ringmain")
  endif()
  set_property(GLOBAL APPEND PROPERTY RINGMAIN_INJECTED_LIBRARIES ${name})
endfunction()
