# Which flags make a fault in this library harder to exploit in the process that loads it?
#
# Set for the directories below the root file, so that no target of ours can forget them; a project that
# adds ringmain as a subdirectory is not touched. tools/check_hardening.py looks for the result in the
# built files.
include(CheckCXXCompilerFlag)
include(CheckPIESupported)
check_pie_supported(LANGUAGES CXX)

if(RINGMAIN_HARDENING AND NOT RINGMAIN_SANITIZE)
  add_compile_options(-fstack-protector-strong)
  # Some distributions define another level; the fortified calls need an optimising build.
  set(optimised "$<CONFIG:Release,RelWithDebInfo,MinSizeRel>")
  add_compile_options("$<${optimised}:-U_FORTIFY_SOURCE>" "$<${optimised}:-D_FORTIFY_SOURCE=2>")
  check_cxx_compiler_flag(-fcf-protection RINGMAIN_HAS_CF_PROTECTION)  # x86 only
  if(RINGMAIN_HAS_CF_PROTECTION)
    add_compile_options(-fcf-protection)
  endif()
  add_link_options(-Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack)
endif()
