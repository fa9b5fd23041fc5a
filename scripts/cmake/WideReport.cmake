# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0
#
# What `wbench report` writes into its page: styles, and the script that draws charts with Observable Plot, which
# npm fetches and esbuild bundles while the rest compiles. A page without the script has the same numbers in tables
# and in charts that wbench draws, so without npm, or without a network, only convenience is missing.
set(WIDE_REPORT AUTO CACHE STRING "Bundle the script of report pages by npm: AUTO (if that works), ON, OFF")
set_property(CACHE WIDE_REPORT PROPERTY STRINGS AUTO ON OFF)

# Sets `output` in the caller to a C++ source that defines bench/page/assets.hpp.
function(wide_report_assets output)
  set(page ${PROJECT_SOURCE_DIR}/bench/page/script)
  set(script ${PROJECT_SOURCE_DIR}/scripts/cmake/WriteReportAssets.cmake)
  set(assets ${CMAKE_CURRENT_BINARY_DIR}/generated/wide_report_assets.cpp)
  set(npm "")
  if(NOT WIDE_REPORT STREQUAL "OFF")
    find_program(npm_in_path npm NO_CACHE)
    if(npm_in_path)
      set(npm ${npm_in_path})
    elseif(WIDE_REPORT STREQUAL "ON")
      message(FATAL_ERROR "wide: WIDE_REPORT=ON, but no npm was found")
    else()
      message(STATUS "wide: reports have static charts only: no npm was found")
    endif()
  endif()
  file(GLOB sources CONFIGURE_DEPENDS ${page}/*.js ${page}/*.mjs ${page}/*.css ${page}/*.json ${page}/.npmrc)
  add_custom_command(OUTPUT ${assets}
    COMMAND ${CMAKE_COMMAND} -DPAGE=${page} -DWORK=${CMAKE_CURRENT_BINARY_DIR}/report_page -DOUTPUT=${assets}
            -DNPM=${npm} -DWIDE_REPORT=${WIDE_REPORT} -P ${script}
    DEPENDS ${sources} ${script} ${script}.in COMMENT "Bundling the script of reports" VERBATIM)
  set(${output} ${assets} PARENT_SCOPE)
endfunction()
