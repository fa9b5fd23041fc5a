# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0
#
# Finds a CUDA toolkit that can build wide and enables the language. With WIDE_CUDA=AUTO a missing
# or too old toolkit is a message and a build without CUDA; with ON it is an error.
set(WIDE_CUDA_MINIMUM 13.0)  # what wide is built and tested with; Debian 12's own package is 11.8
set(WIDE_HAS_CUDA OFF)
set(WIDE_HAS_CUDNN OFF)

function(wide_cuda_unusable reason)
  if(WIDE_CUDA STREQUAL "ON")
    message(FATAL_ERROR "wide: WIDE_CUDA=ON, but ${reason}")
  endif()
  message(STATUS "wide: building without CUDA: ${reason}")
endfunction()

# The language must not be enabled before the version is known: an 11.8 nvcc fails CMake's own
# compiler check with a message that helps nobody.
if(NOT WIDE_CUDA STREQUAL "OFF")
  if(CMAKE_CUDA_COMPILER)
    set(wide_nvcc ${CMAKE_CUDA_COMPILER})
  else()
    find_program(wide_nvcc nvcc HINTS ENV CUDACXX ENV CUDA_HOME ENV CUDA_PATH PATHS /usr/local/cuda PATH_SUFFIXES bin NO_CACHE)
  endif()
  if(NOT wide_nvcc)
    wide_cuda_unusable("no nvcc was found (looked at CUDACXX, CUDA_HOME, CUDA_PATH, PATH and /usr/local/cuda)")
  else()
    execute_process(COMMAND ${wide_nvcc} --version OUTPUT_VARIABLE wide_nvcc_says ERROR_QUIET)
    string(REGEX MATCH "release ([0-9]+\\.[0-9]+)" _ "${wide_nvcc_says}")
    if(NOT CMAKE_MATCH_1 OR CMAKE_MATCH_1 VERSION_LESS WIDE_CUDA_MINIMUM)
      wide_cuda_unusable("${wide_nvcc} is CUDA ${CMAKE_MATCH_1}, expected ${WIDE_CUDA_MINIMUM} or newer")
    else()
      set(WIDE_HAS_CUDA ON)
    endif()
  endif()
endif()

if(WIDE_HAS_CUDA)
  # Never "native": it fails where there is no GPU. Real code and PTX for both.
  if(NOT CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES "80;90a" CACHE STRING "" FORCE)
  endif()
  set(CMAKE_CUDA_COMPILER ${wide_nvcc})
  # Shared, so that another runtime can stand in its place (the simulated GPU does).
  set(CMAKE_CUDA_RUNTIME_LIBRARY Shared)
  enable_language(CUDA)
  find_package(CUDAToolkit ${WIDE_CUDA_MINIMUM} REQUIRED)
  foreach(library cudart cublas)
    if(NOT TARGET CUDA::${library})
      message(FATAL_ERROR "wide: the CUDA toolkit in ${CUDAToolkit_ROOT_DIR} lacks lib${library}")
    endif()
  endforeach()
  # CMake 3.25 does not know that nvcc 12 and newer speak C++20: it fails on cuda_std_20 and silently
  # ignores CUDA_STANDARD 20. Later versions know, and the flag is there already.
  if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
    list(APPEND CMAKE_CUDA_COMPILE_FEATURES cuda_std_20)
  endif()
  set(CMAKE_CUDA_STANDARD 20)
  set(CMAKE_CUDA_STANDARD_REQUIRED ON)
  set(CMAKE_CUDA_EXTENSIONS OFF)
  set(WIDE_CUDA_FLAGS $<$<COMPILE_LANGUAGE:CUDA>:-lineinfo> $<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr>)
  if(NOT WIDE_CUDNN STREQUAL "OFF")
    find_package(CUDNN)
    if(CUDNN_FOUND)
      set(WIDE_HAS_CUDNN ON)
    elseif(WIDE_CUDNN STREQUAL "ON")
      message(FATAL_ERROR "wide: WIDE_CUDNN=ON, but cuDNN was not found (looked at CUDNN_PATH, CUDNN_ROOT, the toolkit and pip's nvidia/cudnn)")
    endif()
  endif()
  message(STATUS "wide: CUDA ${CUDAToolkit_VERSION}, architectures ${CMAKE_CUDA_ARCHITECTURES}, cuDNN ${CUDNN_VERSION}")
endif()
