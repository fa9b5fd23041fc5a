# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0
#
# Locations of pip's wheels of NVIDIA's libraries: a machine may have nvcc, but cuBLAS only with torch.

# Sets `result` to the folders with lib/ and include/ in them: nvidia/cu13 of several wheels, nvidia/cudnn of one.
function(wide_wheel_folders result)
  find_program(python python3 NO_CACHE)
  execute_process(
    COMMAND ${python} -c "import glob, importlib.util as u; print(';'.join(f for p in u.find_spec('nvidia').submodule_search_locations for f in sorted(glob.glob(p + '/*/'))))"
    OUTPUT_VARIABLE folders OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  set(${result} "${folders}" PARENT_SCOPE)
endfunction()

# Sets `library` and `headers` to the paths of a wheel's libNAME and of the folder with NAME's headers; both are
# false if there is none. Wheels carry only versioned names.
function(wide_find_in_wheels name version header library headers)
  wide_wheel_folders(folders)
  set(found "")
  foreach(folder ${folders})
    if(EXISTS ${folder}/lib/lib${name}.so.${version} AND EXISTS ${folder}/include/${header})
      string(REGEX REPLACE "/$" "" found ${folder})
      break()
    endif()
  endforeach()
  if(found)
    set(${library} ${found}/lib/lib${name}.so.${version} PARENT_SCOPE)
    set(${headers} ${found}/include PARENT_SCOPE)
  else()
    set(${library} ${name}-NOTFOUND PARENT_SCOPE)
    set(${headers} ${name}-NOTFOUND PARENT_SCOPE)
  endif()
endfunction()

# CUDA::NAME, from a wheel of the toolkit's release if the toolkit itself lacks it; nothing if neither has it.
function(wide_cuda_library name header)
  if(TARGET CUDA::${name})
    return()
  endif()
  wide_find_in_wheels(${name} ${CUDAToolkit_VERSION_MAJOR} ${header} library headers)
  if(library)
    message(STATUS "wide: lib${name} is ${library}, a wheel's: the toolkit has none")
    add_library(CUDA::${name} UNKNOWN IMPORTED GLOBAL)
    # After the toolkit's own: the folder may hold another patch's cuda_runtime.h.
    set_target_properties(CUDA::${name} PROPERTIES IMPORTED_LOCATION ${library}
      INTERFACE_INCLUDE_DIRECTORIES "${CUDAToolkit_INCLUDE_DIRS};${headers}")
  endif()
endfunction()
