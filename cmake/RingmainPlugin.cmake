# How is a plugin built, so that it can be found, loaded and unloaded?
#
#   ringmain_add_plugin(NAME SOURCES file… MANIFEST NAME.ringmain-plugin [DESTINATION folder])
#
# Makes NAME.so and, beside it, the manifest with the library's name and its SHA-256. Installed below
# DESTINATION (lib/ringmain/plugins), where ringmain of the same prefix finds it. The sum is that of the
# installed file; if you strip or edit that later, write the manifest again, or leave sha256 out.
set(RINGMAIN_PLUGIN_MANIFEST_SCRIPT "${CMAKE_CURRENT_LIST_DIR}/WritePluginManifest.cmake")

function(ringmain_add_plugin name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "NO_INSTALL" "MANIFEST;DESTINATION" "SOURCES")
  if(NOT arg_SOURCES OR NOT arg_MANIFEST OR arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR
      "ringmain_add_plugin(${name}) needs SOURCES and MANIFEST, and knows DESTINATION and NO_INSTALL.")
  endif()
  include(GNUInstallDirs)
  if(NOT arg_DESTINATION)
    set(arg_DESTINATION "${CMAKE_INSTALL_LIBDIR}/ringmain/plugins")
  endif()
  cmake_path(ABSOLUTE_PATH arg_MANIFEST)

  add_library(${name} MODULE ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ringmain::registry)
  # Hidden, and without unique symbols: one of those would keep the library loaded for ever.
  set_target_properties(${name} PROPERTIES PREFIX "" CXX_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON LIBRARY_OUTPUT_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/plugins")
  target_compile_options(${name} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fno-gnu-unique>)
  add_custom_command(TARGET ${name} POST_BUILD VERBATIM COMMAND "${CMAKE_COMMAND}"
    "-DLIBRARY=$<TARGET_FILE:${name}>" "-DMANIFEST=${arg_MANIFEST}" -P "${RINGMAIN_PLUGIN_MANIFEST_SCRIPT}")
  if(arg_NO_INSTALL)
    return()
  endif()
  install(TARGETS ${name} LIBRARY DESTINATION "${arg_DESTINATION}")
  install(CODE "
    set(LIBRARY \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${arg_DESTINATION}/$<TARGET_FILE_NAME:${name}>\")
    set(MANIFEST [==[${arg_MANIFEST}]==])
    include([==[${RINGMAIN_PLUGIN_MANIFEST_SCRIPT}]==])")
endfunction()
