# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0
#
# Run at every build, so that results name the commit they were made from; touches its output only
# when something changed.
set(WIDE_GIT_SHA "")
set(WIDE_GIT_DIRTY false)
execute_process(COMMAND git -C ${SOURCE_DIR} rev-parse HEAD OUTPUT_VARIABLE WIDE_GIT_SHA
                OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT WIDE_GIT_SHA AND EXISTS ${SOURCE_DIR}/carry/commit)  # sources without their history; gpu_check writes it
  file(STRINGS ${SOURCE_DIR}/carry/commit commit REGEX "^[0-9a-f]+ (clean|dirty)$")
  string(REGEX REPLACE " .*" "" WIDE_GIT_SHA "${commit}")
  if(commit MATCHES " dirty$")
    set(WIDE_GIT_DIRTY true)
  endif()
endif()
execute_process(COMMAND git -C ${SOURCE_DIR} status --porcelain -uno OUTPUT_VARIABLE changes ERROR_QUIET)
if(changes)
  set(WIDE_GIT_DIRTY true)
endif()
foreach(flags IN ITEMS WIDE_CXX_FLAGS WIDE_CUDA_FLAGS)  # as text of a C string
  string(STRIP "${${flags}}" ${flags})
  string(REGEX REPLACE "([\\\"])" "\\\\\\1" ${flags} "${${flags}}")
endforeach()
configure_file(${SOURCE_DIR}/scripts/cmake/wide_build_info.hpp.in ${OUTPUT} @ONLY)
