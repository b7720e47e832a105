# Where are NVIDIA's headers of CUPTI, which tests compare ours with, if they are here at all?
#
# RINGMAIN_CUDA_HEADERS is the folder that ./dev test fills (13.0/include/cupti.h and those of other versions), or the
# include folder of a toolkit. Where it is found, there are two targets, whose users see the headers as those of a system:
#   cuda_headers         CUDA 13.0's, or the toolkit's
#   cuda_headers_newest  the newest that are complete, or the toolkit's
find_path(RINGMAIN_CUDA_HEADERS NAMES 13.0/include/cupti.h cupti.h
  HINTS "${PROJECT_SOURCE_DIR}/build/cuda-headers" ENV CUDA_HOME ENV CUDA_PATH PATHS /usr/local/cuda
  PATH_SUFFIXES include extras/CUPTI/include
  DOC "folder of CUPTI's headers, of CUDA's toolkit or as ./dev test makes it; without it ours are compared with none")

# ringmain_cuda_headers(TARGET folder…)
function(ringmain_cuda_headers target)
  add_library(${target} INTERFACE)
  target_include_directories(${target} SYSTEM INTERFACE ${ARGN})
endfunction()

if(EXISTS "${RINGMAIN_CUDA_HEADERS}/13.0/include/cupti.h")
  ringmain_cuda_headers(cuda_headers "${RINGMAIN_CUDA_HEADERS}/13.0/include")
  ringmain_cuda_headers(cuda_headers_newest "${RINGMAIN_CUDA_HEADERS}/13.5/include")
elseif(EXISTS "${RINGMAIN_CUDA_HEADERS}/cupti.h")
  # CUPTI's may lie apart from the toolkit's, in extras/CUPTI/include.
  find_path(RINGMAIN_CUDA_TOOLKIT_HEADERS cuda_runtime_api.h
    HINTS "${RINGMAIN_CUDA_HEADERS}" "${RINGMAIN_CUDA_HEADERS}/../../../include" ENV CUDA_HOME ENV CUDA_PATH PATHS /usr/local/cuda
    PATH_SUFFIXES include DOC "folder with cuda_runtime_api.h, beside CUPTI's headers")
  if(RINGMAIN_CUDA_TOOLKIT_HEADERS)
    foreach(target IN ITEMS cuda_headers cuda_headers_newest)
      ringmain_cuda_headers(${target} "${RINGMAIN_CUDA_HEADERS}" "${RINGMAIN_CUDA_TOOLKIT_HEADERS}")
    endforeach()
  endif()
endif()
