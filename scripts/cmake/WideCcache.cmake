# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0
# ccache, if found, launches the compilers of every language without a launcher of the user's: it saves most of the time of a
# second build, and is never required.
find_program(WIDE_CCACHE ccache)
mark_as_advanced(WIDE_CCACHE)
foreach(language CXX CUDA)
  if(WIDE_CCACHE AND NOT CMAKE_${language}_COMPILER_LAUNCHER)
    set(CMAKE_${language}_COMPILER_LAUNCHER ${WIDE_CCACHE})
  endif()
endforeach()
