# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0

# The compute capabilities that kernels are compiled for, in CMAKE_CUDA_ARCHITECTURES: by default real code and PTX for 8.0 and 9.0a,
# never "native", which fails without a GPU. cp.async and bf16 came with 8.0: of an engine's list, what is earlier is left out, and
# Context::cuda refuses such devices. A list of nothing else is an error: CMake's own default is nvcc's, 75.
function(wide_architectures)
  if(NOT CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES "80;90a" CACHE STRING "" FORCE)
    return()
  endif()
  set(expected "expected compute capabilities from 8.0 on, such as 80;90a")
  if(CMAKE_CUDA_ARCHITECTURES MATCHES "^all(-major)?$")
    message(FATAL_ERROR "wide: CMAKE_CUDA_ARCHITECTURES is ${CMAKE_CUDA_ARCHITECTURES}, which includes 75, ${expected}")
  endif()
  set(taken ${CMAKE_CUDA_ARCHITECTURES})
  list(FILTER taken EXCLUDE REGEX "^[1-7][0-9](-real|-virtual)?$")
  if(NOT taken)
    message(FATAL_ERROR "wide: CMAKE_CUDA_ARCHITECTURES is ${CMAKE_CUDA_ARCHITECTURES}, ${expected}")
  endif()
  if(NOT taken STREQUAL CMAKE_CUDA_ARCHITECTURES)
    message(STATUS "wide: of architectures ${CMAKE_CUDA_ARCHITECTURES} those from 8.0 on are taken")
  endif()
  set(CMAKE_CUDA_ARCHITECTURES ${taken} PARENT_SCOPE)
endfunction()
