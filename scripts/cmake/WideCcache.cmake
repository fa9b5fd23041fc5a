# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0
# ccache, where it is found, in front of the compilers of every language that has no launcher of the user's: it spares most of a second
# build's time, and is never needed.
find_program(WIDE_CCACHE ccache)
mark_as_advanced(WIDE_CCACHE)
foreach(language CXX CUDA)
  if(WIDE_CCACHE AND NOT CMAKE_${language}_COMPILER_LAUNCHER)
    set(CMAKE_${language}_COMPILER_LAUNCHER ${WIDE_CCACHE})
  endif()
endforeach()
