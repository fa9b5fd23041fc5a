# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0
#
# How the project's targets are defined: their flags, and which files of a folder go into which library.
find_package(Threads REQUIRED)
if(WIDE_SANITIZE STREQUAL "THREAD")
  set(WIDE_SANITIZERS thread)
else()
  set(WIDE_SANITIZERS address,undefined)
endif()
# Whether an address is null or misaligned is half of what UBSan adds to code, and takes a third of the time to compile it: with
# tests, only sources that compute check that; the fuzzers' build, whose files have any alignment, is without tests and checks all.
set(WIDE_SANITIZE_ADDRESSES $<$<AND:$<STREQUAL:${WIDE_SANITIZE},ON>,$<BOOL:${WIDE_TESTS}>>:null,alignment>)

# Warnings and sanitizers: the same for every target of the project. Warnings with false positives in g++ are off:
# -Wmaybe-uninitialized in a std::variant with a std::string, -Wrestrict in string concatenation (PR105651), and
# 13's -Wdangling-reference in a function that takes a temporary and returns a reference to something else (PR107532).
# Kernels' line tables compress well: libwide.a takes 46 MB with them instead of 163. The smallest
# mode would make it 37, but takes another sixth of nvcc's time. Spills are warnings for 8.0 and 9.0, by whose registers
# launch bounds were chosen: for 8.9 and 12.0 ptxas spills a few in some kernels.
set(WIDE_WARN_SPILLS -Xptxas=-warn-spills)
foreach(architecture ${CMAKE_CUDA_ARCHITECTURES})
  if(NOT architecture MATCHES "^(80|90a?)(-real|-virtual)?$")
    set(WIDE_WARN_SPILLS "")
  endif()
endforeach()
function(wide_target target)
  target_compile_options(${target} PRIVATE
    "$<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wconversion;-Wshadow>"
    "$<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-maybe-uninitialized;-Wno-restrict>"
    $<$<AND:$<COMPILE_LANG_AND_ID:CXX,GNU>,$<VERSION_GREATER_EQUAL:$<CXX_COMPILER_VERSION>,13>>:-Wno-dangling-reference>
    "$<$<COMPILE_LANGUAGE:CUDA>:-lineinfo;--compress-mode=balance;-Xfatbin=-compress-all;--expt-relaxed-constexpr;-Xcompiler=-Wall,-Wextra;${WIDE_WARN_SPILLS}>")
  if(WIDE_WERROR)
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Werror> $<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings>)
  endif()
  if(WIDE_SANITIZE)  # host code only: nvcc's objects stay as they are
    set(flags -fsanitize=${WIDE_SANITIZERS} -fno-sanitize-recover=all -fno-omit-frame-pointer)
    target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:${flags}>")
    target_link_options(${target} PRIVATE ${flags})
    target_compile_options(${target} PRIVATE $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<BOOL:${WIDE_SANITIZE_ADDRESSES}>>:-fno-sanitize=${WIDE_SANITIZE_ADDRESSES}>)
  endif()
endfunction()

# Most of the compile time of a source is that of headers which all include, so eight of a folder are compiled as one, except
# those with options of their own. Folders that are named are excluded: their files have helpers of the same names.
# -Wsubobject-linkage takes included sources for headers.
function(wide_unite target)
  if(NOT WIDE_UNITY)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "\\.cpp$")
  foreach(source ${sources})
    get_filename_component(path ${source} ABSOLUTE)
    cmake_path(GET path PARENT_PATH folder)
    cmake_path(GET folder FILENAME folder)
    get_source_file_property(options ${path} COMPILE_OPTIONS)
    if(options OR folder IN_LIST ARGN)
      continue()
    endif()
    list(APPEND ${folder}_sources ${source})
    list(LENGTH ${folder}_sources count)
    math(EXPR group "(${count} - 1) / 8")
    set_property(SOURCE ${source} PROPERTY UNITY_GROUP ${folder}_${group})
  endforeach()
endfunction()

# Missing includes are hidden here and in united sources: scripts/check_includes finds them.
function(wide_precompile target)
  if(WIDE_SANITIZE)
    set(headers algorithm array cmath functional limits map memory optional span string string_view utility vector)
    list(TRANSFORM headers REPLACE "(.+)" "$<$<COMPILE_LANGUAGE:CXX>:<\\1$<ANGLE-R>>")
    target_precompile_headers(${target} PRIVATE ${headers})
  endif()
endfunction()

# From a list of sources, those that this build needs: x_cuda.cpp and x.cu need CUDA, x_no_cuda.cpp is
# x_cuda.cpp's twin for builds without. A second argument overrides whether there is CUDA.
function(wide_select_cuda list_name)
  set(has_cuda ${WIDE_HAS_CUDA} ${ARGN})
  list(GET has_cuda -1 has_cuda)
  set(kept ${${list_name}})
  set(twins ${kept})
  list(FILTER twins INCLUDE REGEX "_no_cuda\\.cpp$")
  list(FILTER kept EXCLUDE REGEX "_no_cuda\\.cpp$")
  if(NOT has_cuda)
    list(FILTER kept EXCLUDE REGEX "(_cuda\\.cpp|\\.cu)$")
    list(APPEND kept ${twins})
  endif()
  set(${list_name} ${kept} PARENT_SCOPE)
endfunction()

# Sources that compute, while others of their target decide: these are optimised, each on its own, since a set of vector
# instructions applies to one file.
function(wide_computes)
  set_property(SOURCE ${ARGV} APPEND PROPERTY COMPILE_OPTIONS $<$<CONFIG:Release>:-O3> $<$<BOOL:${WIDE_SANITIZE}>:-O1>
               $<$<BOOL:${WIDE_SANITIZE_ADDRESSES}>:-fsanitize=${WIDE_SANITIZE_ADDRESSES}>)
  set_source_files_properties(${ARGV} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
endfunction()

# Adds kernels/F and host/F of every folder F: *_reference.cpp, *_spec.cpp and *_workload.cpp describe it
# to bench and verify, the rest is the library.
function(wide_sources)
  foreach(folder ${ARGV})
    file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/kernels/${folder}/*.cu ${PROJECT_SOURCE_DIR}/host/${folder}/*.cpp)
    if(folder STREQUAL "cudnn")
      wide_select_cuda(sources ${WIDE_HAS_CUDNN})
    else()
      wide_select_cuda(sources)
    endif()
    set(catalog ${sources})
    list(FILTER catalog INCLUDE REGEX "_(reference|spec|workload)\\.cpp$")
    list(FILTER sources EXCLUDE REGEX "_(reference|spec|workload)\\.cpp$")
    target_sources(wide PRIVATE ${sources})
    target_sources(wide_catalog PRIVATE ${catalog})
    set(specs ${catalog})
    list(FILTER specs INCLUDE REGEX "_(spec|workload)\\.cpp$")
    set_property(SOURCE ${specs} APPEND PROPERTY COMPILE_OPTIONS $<$<BOOL:${WIDE_SANITIZE}>:-fno-sanitize=undefined>)
    list(FILTER sources INCLUDE REGEX "(_cpu(_[a-z0-9_]+)?|/quantized?(_codes)?)\\.cpp$")
    list(FILTER catalog INCLUDE REGEX "_reference\\.cpp$")
    wide_computes(${sources} ${catalog})
  endforeach()
endfunction()

# wide_primitive(norm): everything of one family of primitives.
function(wide_primitive family)
  if(NOT IS_DIRECTORY ${PROJECT_SOURCE_DIR}/host/${family})
    message(FATAL_ERROR "wide_primitive(${family}): there is no host/${family}")
  endif()
  wide_sources(${family})
endfunction()

# Creates libwide and wide_catalog, with the files that all primitives need.
function(wide_libraries)
  add_library(wide)
  add_library(wide::wide ALIAS wide)
  target_include_directories(wide PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                             PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_features(wide PUBLIC cxx_std_20)
  # Its floating-point exceptions and errno are never read: loops with choices in them become vector instructions.
  target_compile_options(wide PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fno-trapping-math> $<$<COMPILE_LANGUAGE:CXX>:-fno-math-errno>)
  target_compile_definitions(wide PRIVATE WIDE_HAS_CUDA=$<BOOL:${WIDE_HAS_CUDA}> WIDE_HAS_NVTX=$<AND:$<BOOL:${WIDE_HAS_CUDA}>,$<BOOL:${WIDE_NVTX}>>
                             WIDE_PROGRAMMATIC_LAUNCH=$<BOOL:${WIDE_PROGRAMMATIC_LAUNCH}>
                             WIDE_LACKS_SM90A=$<AND:$<BOOL:${WIDE_HAS_CUDA}>,$<NOT:$<BOOL:${WIDE_HAS_SM90A}>>>
                             $<$<COMPILE_LANGUAGE:CXX>:WIDE_BUILDS_LIBRARY>)
  list(JOIN CMAKE_CUDA_ARCHITECTURES "," architectures)
  set_property(SOURCE ${PROJECT_SOURCE_DIR}/host/core/device_code.cpp APPEND PROPERTY COMPILE_DEFINITIONS WIDE_CUDA_ARCHITECTURES="${architectures}")
  # An installed library does not need these headers.
  target_link_libraries(wide PRIVATE Threads::Threads $<BUILD_INTERFACE:nlohmann_json::nlohmann_json> ZLIB::ZLIB)
  if(WIDE_HAS_CUDA)
    target_link_libraries(wide PRIVATE $<BUILD_INTERFACE:wide_cudart> $<INSTALL_INTERFACE:CUDA::cudart> CUDA::cublas CUDA::cublasLt ${CMAKE_DL_LIBS})
    target_include_directories(wide SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
  endif()
  if(WIDE_HAS_CUDNN)
    target_link_libraries(wide PRIVATE CUDNN::cudnn)
  endif()
  wide_target(wide)
  wide_precompile(wide)
  # Tests under sanitizers compute little; fuzzers run this code for hours.
  set(is_sanitized_test $<AND:$<BOOL:${WIDE_SANITIZE}>,$<BOOL:${WIDE_TESTS}>>)
  target_compile_options(wide PRIVATE $<$<AND:${is_sanitized_test},$<COMPILE_LANGUAGE:CXX>>:-O0>)

  add_library(wide_catalog STATIC ${PROJECT_SOURCE_DIR}/host/catalog.cpp ${PROJECT_SOURCE_DIR}/host/case.cpp
              ${PROJECT_SOURCE_DIR}/host/operand.cpp ${PROJECT_SOURCE_DIR}/host/packed_workload.cpp
              ${PROJECT_SOURCE_DIR}/host/compare.cpp)
  if(NOT WIDE_BENCH AND NOT WIDE_TESTS)
    set_target_properties(wide_catalog PROPERTIES EXCLUDE_FROM_ALL ON)
  endif()
  target_include_directories(wide_catalog PUBLIC ${PROJECT_SOURCE_DIR})
  target_link_libraries(wide_catalog PUBLIC wide)
  wide_target(wide_catalog)
  # What nearly all of it includes; that hides missing includes, too.
  target_precompile_headers(wide_catalog PRIVATE ${PROJECT_SOURCE_DIR}/host/plan_workload.hpp ${PROJECT_SOURCE_DIR}/host/specs.hpp)
  # It describes, once, what is then run.
  target_compile_options(wide_catalog PRIVATE $<$<CONFIG:Release>:-O1> $<${is_sanitized_test}:-O0>)
  wide_computes(${PROJECT_SOURCE_DIR}/host/operand.cpp ${PROJECT_SOURCE_DIR}/host/compare.cpp)

  wide_sources(core cudnn import model pack c_api)
endfunction()

# Creates wide_onnx, the importer: a separate library beside libwide; shared if libwide is.
function(wide_onnx_library)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/host/import/onnx/*.cpp)
  add_library(wide_onnx ${sources})
  add_library(wide::onnx ALIAS wide_onnx)
  target_include_directories(wide_onnx PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(wide_onnx PUBLIC wide)
  target_compile_definitions(wide_onnx PRIVATE WIDE_BUILDS_LIBRARY)
  wide_target(wide_onnx)
  target_compile_options(wide_onnx PRIVATE $<$<AND:$<BOOL:${WIDE_SANITIZE}>,$<BOOL:${WIDE_TESTS}>>:-O0>)  # as libwide
  wide_precompile(wide_onnx)
  wide_unite(wide_onnx)
endfunction()
