# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0
#
# wide_verified_table.inc: the strategies for which verify/evidence/ is valid; wide_kernel_hashes.inc: the
# kernels of this build. Regenerated whenever the evidence or a kernel changes. Only host/core/verified.cpp sees them. Without
# Python nothing is verified, which is the safe side: the automatic choice then does not use hand-written kernels.
function(wide_verified_table)
  set(source ${PROJECT_SOURCE_DIR}/host/core/verified.cpp)
  set(folder ${PROJECT_BINARY_DIR}/generated)
  set(table ${folder}/wide_verified_table.inc)
  set(hashes ${folder}/wide_kernel_hashes.inc)
  find_package(Python3 QUIET COMPONENTS Interpreter)
  if(Python3_Interpreter_FOUND)
    set(script ${PROJECT_SOURCE_DIR}/scripts/evidence.py)
    file(GLOB_RECURSE inputs CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/verify/evidence/*.json
         ${PROJECT_SOURCE_DIR}/kernels/* ${PROJECT_SOURCE_DIR}/include/* ${PROJECT_SOURCE_DIR}/host/*_spec.cpp)
    # The output keeps its time while its content is the same, so that an edited kernel does not recompile
    # verified.cpp; the stamp tells Ninja that the table was checked.
    add_custom_command(OUTPUT ${folder}/wide_verified_table.stamp BYPRODUCTS ${table} ${hashes}
      COMMAND ${Python3_EXECUTABLE} ${script} table ${PROJECT_SOURCE_DIR}/verify/evidence ${table}
      COMMAND ${Python3_EXECUTABLE} ${script} hashes ${hashes}
      COMMAND ${CMAKE_COMMAND} -E touch ${folder}/wide_verified_table.stamp
      DEPENDS ${script} ${PROJECT_SOURCE_DIR}/scripts/vendor_error.py ${inputs} COMMENT "Looking which strategies are verified" VERBATIM)
    add_custom_target(wide_verified_table DEPENDS ${folder}/wide_verified_table.stamp)
    add_dependencies(wide wide_verified_table)
  else()
    message(STATUS "wide: no Python 3 found: no hand-written CUDA strategy counts as verified")
    file(CONFIGURE OUTPUT ${table} CONTENT "")
    file(CONFIGURE OUTPUT ${hashes} CONTENT "")
  endif()
  set_source_files_properties(${source} PROPERTIES INCLUDE_DIRECTORIES ${folder} OBJECT_DEPENDS "${table};${hashes}")
endfunction()
