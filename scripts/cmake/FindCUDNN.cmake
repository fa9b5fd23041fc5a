# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0
#
# cuDNN 9, from a system package, the toolkit's folder or a pip wheel. Wheels and runtime packages
# carry only versioned names (libcudnn.so.9), so these are searched, too. Defines CUDNN::cudnn,
# CUDNN_FOUND, CUDNN_VERSION. CUDNN_PATH or CUDNN_ROOT, as variable or in the environment, comes first.
set(cudnn_places ${CUDNN_PATH} ${CUDNN_ROOT} $ENV{CUDNN_PATH} $ENV{CUDNN_ROOT} ${CUDAToolkit_TARGET_DIR}
    ${CUDAToolkit_LIBRARY_ROOT} ${CUDAToolkit_BIN_DIR}/..)
include(${CMAKE_CURRENT_LIST_DIR}/WideWheels.cmake)
wide_wheel_folders(cudnn_wheels)
list(APPEND cudnn_places ${cudnn_wheels})

find_path(CUDNN_INCLUDE_DIR cudnn_version.h HINTS ${cudnn_places} PATH_SUFFIXES include)
find_library(CUDNN_LIBRARY NAMES cudnn libcudnn.so.9 HINTS ${cudnn_places} PATH_SUFFIXES lib64 lib lib/x64)

if(CUDNN_INCLUDE_DIR)
  file(STRINGS ${CUDNN_INCLUDE_DIR}/cudnn_version.h cudnn_defines REGEX "#define CUDNN_(MAJOR|MINOR|PATCHLEVEL) ")
  string(REGEX REPLACE "[^;]*MAJOR ([0-9]+);[^;]*MINOR ([0-9]+);[^;]*PATCHLEVEL ([0-9]+).*" "\\1.\\2.\\3" CUDNN_VERSION "${cudnn_defines}")
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(CUDNN REQUIRED_VARS CUDNN_LIBRARY CUDNN_INCLUDE_DIR VERSION_VAR CUDNN_VERSION)
if(CUDNN_FOUND AND NOT TARGET CUDNN::cudnn)
  add_library(CUDNN::cudnn UNKNOWN IMPORTED)
  set_target_properties(CUDNN::cudnn PROPERTIES IMPORTED_LOCATION ${CUDNN_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${CUDNN_INCLUDE_DIR})
endif()
mark_as_advanced(CUDNN_INCLUDE_DIR CUDNN_LIBRARY)
