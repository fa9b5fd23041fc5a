# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0
#
# What an engine gets: headers, the library, its CMake package, its pkg-config file, the licence. All of it is of
# the install component `wide`. A parent project installs it where it says WIDE_INSTALL=ON.
option(WIDE_INSTALL "Install the library" ${PROJECT_IS_TOP_LEVEL})

# Shared libraries' names; see host/libwide.map. The tests and the benchmark look inside, so with them all stay visible.
function(wide_hide_insides)
  if(WIDE_BENCH OR WIDE_TESTS)
    message(STATUS "wide: a shared library with WIDE_BENCH or WIDE_TESTS: its insides stay visible")
    return()
  endif()
  foreach(library ${ARGV})
    set(map ${PROJECT_SOURCE_DIR}/host/lib${library}.map)
    target_link_options(${library} PRIVATE -Wl,--version-script=${map})
    set_property(TARGET ${library} APPEND PROPERTY LINK_DEPENDS ${map})
  endforeach()
endfunction()

# What the linker needs beside -lwide: for a static library all that it was built with.
function(wide_pkg_config_libraries variable)
  get_target_property(type wide TYPE)
  set(libraries "")
  if(NOT type STREQUAL "SHARED_LIBRARY")
    set(targets "")
    if(WIDE_HAS_CUDA)
      list(APPEND targets CUDA::cublas CUDA::cublasLt CUDA::cudart)
    endif()
    if(WIDE_HAS_CUDNN)
      list(APPEND targets CUDNN::cudnn)
    endif()
    foreach(target ${targets})
      get_target_property(file ${target} IMPORTED_LOCATION)
      list(APPEND libraries ${file})
    endforeach()
    list(APPEND libraries -lz -lstdc++ -lm -pthread ${CMAKE_DL_LIBS})
    list(TRANSFORM libraries REPLACE "^dl$" "-ldl")
    if(WIDE_SANITIZE)
      list(APPEND libraries -fsanitize=address,undefined)
    endif()
  endif()
  list(JOIN libraries " " libraries)
  set(${variable} "${libraries}" PARENT_SCOPE)
endfunction()

function(wide_install)
  set(libraries wide)
  set(not_installed PATTERN catalog.hpp EXCLUDE)  # a vocabulary for wbench and the tests
  if(TARGET wide_onnx)
    set_target_properties(wide_onnx PROPERTIES EXPORT_NAME onnx INSTALL_RPATH "\$ORIGIN")  # libwide lies beside it
    list(APPEND libraries wide_onnx)
  else()
    list(APPEND not_installed PATTERN onnx.hpp EXCLUDE PATTERN wide_onnx.h EXCLUDE)
  endif()
  set_target_properties(${libraries} PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  get_target_property(type wide TYPE)
  if(type STREQUAL "SHARED_LIBRARY")
    wide_hide_insides(${libraries})
  endif()
  if(NOT WIDE_INSTALL)
    return()
  endif()
  if(WIDE_SIM)
    message(STATUS "wide: WIDE_SIM=ON: a library for the simulated GPU is not installed")
    return()
  endif()
  include(GNUInstallDirs)
  include(CMakePackageConfigHelpers)
  set(package ${CMAKE_INSTALL_LIBDIR}/cmake/wide)
  set(generated ${PROJECT_BINARY_DIR}/package)
  install(TARGETS ${libraries} EXPORT wide-targets COMPONENT wide ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/wide DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT wide
    ${not_installed})
  install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/licenses/wide COMPONENT wide)

  install(EXPORT wide-targets NAMESPACE wide:: DESTINATION ${package} COMPONENT wide)
  configure_package_config_file(${PROJECT_SOURCE_DIR}/scripts/cmake/wide-config.cmake.in ${generated}/wide-config.cmake
    INSTALL_DESTINATION ${package} NO_SET_AND_CHECK_MACRO)
  write_basic_package_version_file(${generated}/wide-config-version.cmake COMPATIBILITY SameMinorVersion)
  install(FILES ${generated}/wide-config.cmake ${generated}/wide-config-version.cmake
    ${PROJECT_SOURCE_DIR}/scripts/cmake/FindCUDNN.cmake ${PROJECT_SOURCE_DIR}/scripts/cmake/WideWheels.cmake DESTINATION ${package} COMPONENT wide)

  wide_pkg_config_libraries(WIDE_PKG_CONFIG_LIBRARIES)
  file(RELATIVE_PATH WIDE_PKG_CONFIG_PREFIX /root/${CMAKE_INSTALL_LIBDIR}/pkgconfig /root)
  configure_file(${PROJECT_SOURCE_DIR}/scripts/cmake/wide.pc.in ${generated}/wide.pc @ONLY)
  if(TARGET wide_onnx)
    configure_file(${PROJECT_SOURCE_DIR}/scripts/cmake/wide_onnx.pc.in ${generated}/wide_onnx.pc @ONLY)
    install(FILES ${generated}/wide_onnx.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT wide)
  endif()
  install(FILES ${generated}/wide.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT wide)
endfunction()
