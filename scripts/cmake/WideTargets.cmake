# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0
find_package(Threads REQUIRED)

# Warnings and sanitizers: the same for every target of the project. Two warnings are off because g++ 12 sees
# ghosts: -Wmaybe-uninitialized in a std::variant with a std::string, -Wrestrict in string concatenation (PR105651).
function(wide_target target)
  target_compile_options(${target} PRIVATE ${WIDE_CUDA_FLAGS}
    $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wconversion -Wshadow -Wno-maybe-uninitialized -Wno-restrict>
    $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra -Xptxas=-warn-spills>)
  if(WIDE_WERROR)
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Werror> $<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings>)
  endif()
  if(WIDE_SANITIZE)
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer>)
    target_link_options(${target} PRIVATE $<$<LINK_LANGUAGE:CXX>:-fsanitize=address,undefined> $<$<LINK_LANGUAGE:CUDA>:-Xcompiler=-fsanitize=address,-fsanitize=undefined>)
  endif()
endfunction()

function(wide_setup_libraries)
  target_include_directories(wide PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:include>
                             PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_features(wide PUBLIC cxx_std_20)
  target_compile_definitions(wide PRIVATE WIDE_HAS_CUDA=$<BOOL:${WIDE_HAS_CUDA}> WIDE_HAS_NVTX=$<AND:$<BOOL:${WIDE_HAS_CUDA}>,$<BOOL:${WIDE_NVTX}>>)
  target_link_libraries(wide PRIVATE Threads::Threads)
  if(WIDE_HAS_CUDA)
    target_link_libraries(wide PRIVATE CUDA::cudart CUDA::cublas ${CMAKE_DL_LIBS})
    target_include_directories(wide SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
  endif()
  wide_target(wide)

  target_sources(wide_catalog PRIVATE host/catalog.cpp host/case.cpp host/operand.cpp host/compare.cpp)
  target_include_directories(wide_catalog PUBLIC ${PROJECT_SOURCE_DIR})
  target_link_libraries(wide_catalog PUBLIC wide)
  wide_target(wide_catalog)
endfunction()

# Of a list of sources, those that this build wants: x_cuda.cpp needs CUDA, x_no_cuda.cpp is its twin.
function(wide_select_cuda list_name)
  set(selected ${${list_name}})
  set(twins ${selected})
  list(FILTER twins INCLUDE REGEX "_no_cuda\\.cpp$")
  list(REMOVE_ITEM selected ${twins})
  if(NOT WIDE_HAS_CUDA)
    list(FILTER selected EXCLUDE REGEX "_cuda\\.cpp$")
    list(APPEND selected ${twins})
  endif()
  set(${list_name} ${selected} PARENT_SCOPE)
endfunction()

# wide_primitive(norm): everything of one family. kernels/norm/*.cu and host/norm/*_cuda.cpp need
# CUDA; host/norm/*_{reference,spec}.cpp describe it to bench and verify; the rest is the library.
function(wide_primitive family)
  file(GLOB kernels CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/kernels/${family}/*.cu)
  file(GLOB hosts CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/host/${family}/*.cpp)
  set(catalog ${hosts})
  list(FILTER catalog INCLUDE REGEX "_(reference|spec)\\.cpp$")
  list(FILTER hosts EXCLUDE REGEX "_(reference|spec)\\.cpp$")
  wide_select_cuda(hosts)
  if(WIDE_HAS_CUDA)
    target_sources(wide PRIVATE ${kernels})
  endif()
  target_sources(wide PRIVATE ${hosts})
  target_sources(wide_catalog PRIVATE ${catalog})
endfunction()
