# Settings that every target of this project shares: language, warnings, sanitizers, precompiled headers, and how tests
# are found.
include(GNUInstallDirs)

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

find_program(REMATCH_CCACHE ccache)
if(REMATCH_CCACHE)
  # These settings let ccache cache sources that use a precompiled header.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
      CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${REMATCH_CCACHE})
endif()

# GCC's garbage collector starts by default when the heap reaches 128 MB, and then takes up to a tenth of the compile
# time. With this setting it starts later.
add_compile_options("$<$<COMPILE_LANG_AND_ID:CXX,GNU>:SHELL:--param ggc-min-heapsize=1000000>")

# valijson validates JSON Schemas, and has only headers. If the system has none, scripts/setup unpacks them into the
# checkout. The headers are SYSTEM, so that their warnings are not shown.
macro(rematch_find_valijson)
  find_path(VALIJSON_INCLUDE_DIR valijson/schema.hpp HINTS ${CMAKE_SOURCE_DIR}/.valijson/include)
  if(NOT VALIJSON_INCLUDE_DIR)
    message(FATAL_ERROR "no valijson headers: run scripts/setup, or pass -DVALIJSON_INCLUDE_DIR=DIR")
  endif()
  add_library(valijson::valijson INTERFACE IMPORTED)
  target_include_directories(valijson::valijson INTERFACE ${VALIJSON_INCLUDE_DIR})
endmacro()

# Returns the LibTorch versions that the sources build against. scripts/setup can fetch each of them.
function(rematch_libtorch_versions out)
  file(GLOB versions RELATIVE ${CMAKE_SOURCE_DIR}/scripts/libtorch CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/scripts/libtorch/2.*)
  list(SORT versions COMPARE NATURAL)
  set(${out} ${versions} PARENT_SCOPE)
endfunction()

# Sets LIBTORCH_ROOT and REMATCH_DRY_ROOT. By default these are the folders into which scripts/setup unpacks LibTorch.
# The version is REMATCH_TORCH or, if that is empty, the version that scripts/setup --torch has chosen. The user can set
# LIBTORCH_ROOT by -D or in the environment.
macro(rematch_choose_libtorch)
  set(REMATCH_TORCH "" CACHE STRING "LibTorch version; empty: the one that scripts/setup --torch has chosen")
  file(STRINGS ${CMAKE_SOURCE_DIR}/scripts/libtorch/default.txt rematch_default_version)
  set(rematch_chosen_version ${rematch_default_version})
  if(REMATCH_TORCH)
    set(rematch_chosen_version ${REMATCH_TORCH})
  elseif(EXISTS ${CMAKE_SOURCE_DIR}/.libtorch-version)
    file(STRINGS ${CMAKE_SOURCE_DIR}/.libtorch-version rematch_chosen_version)
  endif()
  set(rematch_suffix "")
  if(NOT rematch_chosen_version STREQUAL rematch_default_version)
    set(rematch_suffix -${rematch_chosen_version})
  endif()
  set(rematch_cuda_suffix "")
  if(REMATCH_CUDA)
    set(rematch_cuda_suffix -cuda)
  endif()
  if(DEFINED ENV{LIBTORCH_ROOT} AND NOT REMATCH_TORCH)
    set(rematch_root $ENV{LIBTORCH_ROOT})
  else()
    set(rematch_root ${CMAKE_SOURCE_DIR}/.libtorch${rematch_cuda_suffix}${rematch_suffix})
  endif()
  rematch_default_path(LIBTORCH_ROOT ${rematch_root} "Folder that holds torch/ and nvidia/ side by side")
  rematch_default_path(REMATCH_DRY_ROOT ${CMAKE_SOURCE_DIR}/.libtorch-dry${rematch_suffix} "What scripts/setup dry has unpacked")
endmacro()

# Defines a cached path that follows its default until the user sets another path. Older build folders do not store the
# default, which was the path of LibTorch's default version.
macro(rematch_default_path variable default help)
  if(NOT DEFINED ${variable}_DEFAULT)
    string(REGEX REPLACE "-2\\.[0-9]+$" "" ${variable}_DEFAULT ${default})
  endif()
  if("${${variable}}" STREQUAL "${${variable}_DEFAULT}")
    set(${variable} ${default} CACHE PATH ${help} FORCE)
  endif()
  set(${variable} ${default} CACHE PATH ${help})
  set(${variable}_DEFAULT ${default} CACHE INTERNAL "The default at the last configuration")
endmacro()

# Finds LibTorch of one of these versions, or stops with one line that says what to do.
macro(rematch_find_libtorch)
  rematch_libtorch_versions(rematch_versions)
  list(JOIN rematch_versions ", " rematch_versions_text)
  set(rematch_components "")
  if(REMATCH_CUDA)
    set(rematch_components COMPONENTS CUDA CUPTI NVTX)
  endif()
  if(NOT EXISTS ${LIBTORCH_ROOT}/torch/include)
    message(FATAL_ERROR "no LibTorch in LIBTORCH_ROOT=${LIBTORCH_ROOT}: run scripts/setup, or pass "
      "-DLIBTORCH_ROOT=DIR where DIR holds torch/ of LibTorch ${rematch_versions_text}, or -DREMATCH_LIBTORCH=OFF")
  endif()
  find_package(LibTorch REQUIRED ${rematch_components})
  # Makes an installed binary find the LibTorch with which it was built.
  set(CMAKE_INSTALL_RPATH ${LIBTORCH_ROOT}/torch/lib ${LIBTORCH_ROOT}/nvidia/cu13/lib)
  string(REGEX MATCH "^[0-9]+\\.[0-9]+" rematch_libtorch_version "${LibTorch_VERSION}")
  if(NOT rematch_libtorch_version IN_LIST rematch_versions)
    message(FATAL_ERROR "LIBTORCH_ROOT=${LIBTORCH_ROOT} holds LibTorch ${LibTorch_VERSION}; supported are "
      "${rematch_versions_text}: run scripts/setup --torch VERSION to get one of them")
  endif()
endmacro()

# Sets REMATCH_DRY_DEVICE if the dry CUDA device and its programs are built. Sets REMATCH_HAS_CUDA if code that needs
# CUDA is built, either for a GPU or for the dry device.
macro(rematch_decide_on_cuda)
  if(REMATCH_CUDA AND NOT REMATCH_LIBTORCH)
    message(FATAL_ERROR "REMATCH_CUDA=ON needs REMATCH_LIBTORCH=ON")
  endif()
  set(REMATCH_DRY_DEVICE ${REMATCH_DRY})
  file(GLOB rematch_same_version ${REMATCH_DRY_ROOT}/torch-${LibTorch_VERSION}.dist-info)
  if(REMATCH_DRY STREQUAL AUTO)
    set(REMATCH_DRY_DEVICE OFF)
    if(REMATCH_LIBTORCH AND NOT REMATCH_CUDA AND NOT REMATCH_SANITIZE AND EXISTS ${REMATCH_DRY_ROOT}/stamp
        AND rematch_same_version)
      set(REMATCH_DRY_DEVICE ON)
    endif()
  elseif(REMATCH_DRY AND NOT EXISTS ${REMATCH_DRY_ROOT}/stamp)
    message(FATAL_ERROR "REMATCH_DRY=ON needs LibTorch's CUDA libraries in ${REMATCH_DRY_ROOT}: run scripts/setup dry")
  elseif(REMATCH_DRY AND (REMATCH_CUDA OR NOT REMATCH_LIBTORCH))
    message(FATAL_ERROR "REMATCH_DRY=ON needs REMATCH_LIBTORCH=ON and REMATCH_CUDA=OFF: a program has one CUDA")
  elseif(REMATCH_DRY AND NOT rematch_same_version)
    message(FATAL_ERROR "REMATCH_DRY=ON: the CUDA libraries in ${REMATCH_DRY_ROOT} are not of LibTorch ${LibTorch_VERSION}: "
      "run scripts/setup dry for the same version")
  endif()
  set(REMATCH_HAS_CUDA OFF)
  if(REMATCH_CUDA)
    rematch_enable_cuda(${LIBTORCH_ROOT})
    set(REMATCH_HAS_CUDA ON)
  elseif(REMATCH_DRY_DEVICE)
    rematch_enable_cuda(${REMATCH_DRY_ROOT})
    set(REMATCH_HAS_CUDA ON)
  endif()
endmacro()

# Enables the CUDA language for kernels. Generates code for sm_89 (L40S) and sm_90 (H100, H200), and PTX for any other
# card from sm_80 (A100) on. The compiler is the one that scripts/setup put into `root`, unless CMAKE_CUDA_COMPILER or
# CUDACXX names another.
macro(rematch_enable_cuda root)
  set(rematch_own_nvcc ${root}/nvidia/cu13/bin/nvcc)
  if(NOT DEFINED CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX} AND EXISTS ${rematch_own_nvcc})
    set(CMAKE_CUDA_COMPILER ${rematch_own_nvcc} CACHE FILEPATH "CUDA compiler")
  endif()
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES 80-virtual 89-real 90-real)
  endif()
  set(CMAKE_CUDA_RUNTIME_LIBRARY None)  # torch::cudart is the one of the process
  enable_language(CUDA)
  if(NOT DEFINED CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
    # CMake 3.25 does not know that nvcc supports C++20 from version 12 on.
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
  endif()
  set(CMAKE_CUDA_STANDARD 20)
  set(CMAKE_CUDA_STANDARD_REQUIRED ON)
endmacro()

function(rematch_target_defaults target)
  target_compile_features(${target} PUBLIC cxx_std_20)
  # nvcc passes generated code to the host compiler, and -Wpedantic would warn about that code.
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:
    -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Wno-missing-field-initializers -Werror>)
  target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/rematch>)
  if(REMATCH_FUZZ)
    # Warnings of other compilers are not errors. For example, clang, which the fuzzer needs, has other warnings.
    target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link -Wno-error)
  endif()
  if(REMATCH_SANITIZE)
    # GCC 12 wrongly reports uninitialised reads when a sanitizer instruments moves of std::function (GCC bug 105562).
    target_compile_options(${target} PRIVATE -fsanitize=${REMATCH_SANITIZE} -fno-omit-frame-pointer -g1
      -Wno-maybe-uninitialized)
    target_link_options(${target} PUBLIC -fsanitize=${REMATCH_SANITIZE})
  endif()
endfunction()

# The headers that most sources include: those of the standard library and JSON, and those of LibTorch.
set(rematch_standard_headers <nlohmann/json.hpp> <algorithm> <array> <charconv> <chrono> <filesystem> <fstream> <functional> <map>
    <optional> <set> <sstream> <string> <string_view> <utility> <variant> <vector>)
set(rematch_torch_headers <ATen/core/Tensor.h> <ATen/core/dispatch/Dispatcher.h> <torch/csrc/autograd/saved_variable.h>
    <torch/library.h>)

# Makes `target` use the precompiled header `name`, which consists of HEADERS. All targets that use the same name must
# have the same OPTIONS and LINKS. Executables are compiled with -fPIC too, because one precompiled header cannot serve
# both -fPIC and CMake's -fPIE.
function(rematch_share_pch target name)
  cmake_parse_arguments(arg "" "" "OPTIONS;LINKS;HEADERS" ${ARGN})
  if(NOT TARGET ${name})
    file(WRITE ${CMAKE_BINARY_DIR}/${name}.cpp "")
    add_library(${name} OBJECT ${CMAKE_BINARY_DIR}/${name}.cpp)
    target_link_libraries(${name} PUBLIC nlohmann_json::nlohmann_json ${arg_LINKS})
    rematch_target_defaults(${name})
    target_compile_options(${name} PRIVATE ${arg_OPTIONS})
    target_precompile_headers(${name} PRIVATE ${arg_HEADERS} ${rematch_standard_headers})
  endif()
  target_compile_options(${target} PRIVATE -fPIC ${arg_OPTIONS})
  target_precompile_headers(${target} REUSE_FROM ${name})
endfunction()

# Makes `target` use the precompiled header for sources without LibTorch.
function(rematch_use_pch target)
  rematch_share_pch(${target} rematch_pch)
endfunction()

# Makes `target` use the precompiled header for sources with LibTorch. Without -fopenmp, at::parallel_for would be
# serial.
function(rematch_use_torch_pch target)
  rematch_share_pch(${target} rematch_torch_pch OPTIONS -fopenmp LINKS torch::cpu HEADERS ${rematch_torch_headers})
endfunction()

# Makes `target` use the precompiled header for tests without LibTorch. In release builds these tests are compiled with
# -O0.
function(rematch_use_test_pch target)
  rematch_share_pch(${target} rematch_test_pch OPTIONS $<$<CONFIG:Release>:-O0> LINKS Catch2::Catch2
    HEADERS ${CMAKE_SOURCE_DIR}/tests/support/catch.h)
endfunction()

# Makes `target` use the precompiled header for tests with LibTorch. Catch2 is included after LibTorch, because both
# define the macro CHECK.
function(rematch_use_torch_test_pch target)
  rematch_share_pch(${target} rematch_torch_test_pch OPTIONS -fopenmp LINKS torch::cpu Catch2::Catch2
    HEADERS ${rematch_torch_headers} <ATen/Functions.h> <torch/csrc/autograd/custom_function.h>
      ${CMAKE_SOURCE_DIR}/tests/support/catch.h)
endfunction()

# Joins several sources into one compilation unit, which reads their headers once. Names in anonymous namespaces must
# therefore be unique within the target.
function(rematch_use_unity target sources_of_unit)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${REMATCH_UNITY} UNITY_BUILD_BATCH_SIZE ${sources_of_unit})
endfunction()

# Lists the headers of the current folder that other folders may include, and checks that they exist. scripts/check
# layers compares every include with this list.
function(rematch_public_headers)
  foreach(header IN LISTS ARGN)
    if(NOT EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${header})
      message(FATAL_ERROR "rematch_public_headers: there is no ${CMAKE_CURRENT_SOURCE_DIR}/${header}")
    endif()
  endforeach()
endfunction()

# Compiling with -O1 takes a third less time than with -O3, Release's default. -O1 suits code that runs only briefly:
# code that reads, writes and formats files, tests with LibTorch, and tests with brute-force oracles.
function(rematch_compile_lightly target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
endfunction()

# Stops programs that link the library from exporting its symbols. Otherwise LibTorch would use the program's copy of
# std::regex, which is compiled with -O1. LibTorch uses std::regex in every deterministic matmul on CUDA.
function(rematch_keep_symbols target)
  target_link_options(${target} INTERFACE LINKER:--exclude-libs=lib${target}.a)
endfunction()

# rematch_add_library(NAME SOURCES ... DEPENDS ... [OBJECT] [LIGHT]) adds target rematch_NAME, alias rematch::NAME.
# - DEPENDS lists everything that the library may include.
# - OBJECT is for sources whose static initialisers register ops. A static archive would drop them.
# - LIGHT compiles the library with -O1, for code whose speed does not matter.
# - A NAME that begins with test_ is a library that tests share.
function(rematch_add_library name)
  cmake_parse_arguments(arg "OBJECT;LIGHT" "" "SOURCES;DEPENDS" ${ARGN})
  set(target rematch_${name})
  if(NOT arg_SOURCES)
    add_library(${target} INTERFACE)
    target_include_directories(${target} INTERFACE $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}>
      $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/rematch>)
    target_compile_features(${target} INTERFACE cxx_std_20)
    target_link_libraries(${target} INTERFACE ${arg_DEPENDS})
  else()
    if(arg_OBJECT)
      add_library(${target} OBJECT ${arg_SOURCES})
    else()
      add_library(${target} STATIC ${arg_SOURCES})
    endif()
    rematch_target_defaults(${target})
    target_link_libraries(${target} PUBLIC ${arg_DEPENDS})
    if(torch::cpu IN_LIST arg_DEPENDS AND name MATCHES "^test_")
      rematch_use_torch_test_pch(${target})
    elseif(torch::cpu IN_LIST arg_DEPENDS)
      rematch_use_torch_pch(${target})
    elseif(NOT "${arg_DEPENDS}" MATCHES "torch::")  # LibTorch's CUDA parts bring its definitions
      rematch_use_pch(${target})
    endif()
    if(arg_LIGHT OR name MATCHES "^test_")
      rematch_compile_lightly(${target})
    endif()
    rematch_use_unity(${target} 16)
  endif()
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  add_library(rematch::${name} ALIAS ${target})
endfunction()

# Adds target rematch_NAME, alias rematch::NAME, where NAME is WHICH_on_cuda. A program that links
# this target gets rematch::WHICH_with_cuda if the program uses CUDA, and
# rematch::WHICH_without_cuda otherwise. So programs with and without CUDA share all other objects.
function(rematch_add_choice name)
  string(REGEX REPLACE "_on_cuda$" "" which ${name})
  set(chosen rematch::${which}_without_cuda)
  if(REMATCH_HAS_CUDA)
    set(chosen "$<IF:$<BOOL:$<TARGET_PROPERTY:REMATCH_WITH_CUDA>>,rematch::${which}_with_cuda,${chosen}>")
  endif()
  rematch_add_library(${name} DEPENDS ${chosen})
endfunction()

# Links a program with CUDA: a build for a GPU uses the real CUDA, any other build uses the dry device.
function(rematch_link_with_cuda program)
  set_target_properties(${program} PROPERTIES REMATCH_WITH_CUDA ON)
  target_link_libraries(${program} PRIVATE torch::cuda)
  if(REMATCH_DRY_DEVICE)
    # LibTorch searches for CUDA's libraries next to the folder from which it is loaded. It must find the dry device's
    # stand-ins there.
    set_target_properties(${program} PROPERTIES BUILD_RPATH
      "${REMATCH_DRY_DEVICE_ROOT}/torch/lib;${REMATCH_DRY_DEVICE_ROOT}/nvidia/cu13/lib")
    add_dependencies(${program} dry_cuda)
  endif()
endfunction()

# A test that runs longer is considered hung. The limit is long, because on a busy machine a test may get only a
# fifteenth of a core.
set(REMATCH_HANG_SECONDS 1800)

# rematch_add_test(NAME SOURCES ... DEPENDS ... [TORCH] [CUDA] [ORACLES] [TIMEOUT SECONDS]) adds one Catch2 binary. The
# test cases of a source that have the same label form one ctest test. The labels are the Catch2 tags [property]
# [golden] [parity] [device] [gpu]; test cases without a tag have the label `unit`.
# - CUDA links the binary with CUDA.
# - ORACLES compiles the tests with -O1, because their brute-force oracles would be slow with -O0.
# - TIMEOUT is for tests that take long under scripts/test --deep. The default is REMATCH_HANG_SECONDS.
function(rematch_add_test name)
  cmake_parse_arguments(arg "TORCH;CUDA;ORACLES" "TIMEOUT" "SOURCES;DEPENDS" ${ARGN})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT ${REMATCH_HANG_SECONDS})
  endif()
  add_executable(${name} ${arg_SOURCES})
  rematch_target_defaults(${name})
  rematch_use_unity(${name} 8)
  target_link_libraries(${name} PRIVATE ${arg_DEPENDS} rematch_test_main)
  if(arg_TORCH)
    rematch_use_torch_test_pch(${name})
    rematch_compile_lightly(${name})
  elseif(arg_ORACLES OR arg_CUDA OR REMATCH_CUDA)  # the CUDA libraries are LibTorch's, and so are their definitions
    rematch_compile_lightly(${name})
  else()
    rematch_use_test_pch(${name})
  endif()
  if(arg_CUDA)
    rematch_link_with_cuda(${name})
  elseif(REMATCH_CUDA)
    set_target_properties(${name} PROPERTIES REMATCH_WITH_CUDA ON)
  endif()
  rematch_register_tests(${name} ${arg_TIMEOUT} ${arg_SOURCES})
endfunction()

# Registers one ctest test for each pair of source and label, not for each test case, because LibTorch takes 0.4 s to
# start. Catch2 tags each test case with # and the name of its source without the suffix.
# - Each test has one OpenMP thread, because ctest runs as many tests as there are cores, and waiting threads spin.
# - A test that asserts nothing, for example without a GPU, counts as skipped.
# - Tests with a long time limit start first.
function(rematch_register_tests name timeout)
  foreach(source IN LISTS ARGN)
    rematch_labels_of(labels ${source})
    get_filename_component(stem ${source} NAME_WE)
    foreach(label IN LISTS labels)
      set(test ${name}/${stem})
      set(which "[#${stem}][${label}]~[.]")
      if(label STREQUAL unit)
        list(TRANSFORM labels REPLACE "(.+)" "~[\\1]" OUTPUT_VARIABLE others)
        list(JOIN others "" others)
        set(which "[#${stem}]~[.]${others}")
      else()
        string(APPEND test "/${label}")
      endif()
      add_test(NAME ${test} COMMAND ${name} --filenames-as-tags --warn NoTests ${which})
      set_tests_properties(${test} PROPERTIES SKIP_REGULAR_EXPRESSION "assertions: - none -" PROCESSORS 1
        TIMEOUT ${timeout} COST ${timeout} ENVIRONMENT OMP_NUM_THREADS=1 LABELS ${label})
    endforeach()
  endforeach()
endfunction()

# Returns the labels of the source's test cases: `unit` for test cases without a tag. The source is read when the build
# is configured, and again when it changes.
function(rematch_labels_of variable source)
  file(READ ${source} text)
  # Replaces brackets and semicolons, because CMake would join or split list elements at these characters.
  string(REPLACE "[" "<" text "${text}")
  string(REPLACE "]" ">" text "${text}")
  string(REPLACE ";" "," text "${text}")
  string(REGEX MATCHALL "TEST_CASE\\(" cases "${text}")
  list(LENGTH cases num_unlabelled)
  if(num_unlabelled GREATER 0)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
  endif()
  set(labels "")
  foreach(label property golden parity device gpu hidden)
    set(tag ${label})
    if(label STREQUAL hidden)
      set(tag "\\.[a-z]*")
    endif()
    string(REGEX MATCHALL "\"[^\"\n]*<${tag}>[^\"\n]*\"\\) *{" tagged "${text}")
    list(LENGTH tagged num_tagged)
    math(EXPR num_unlabelled "${num_unlabelled} - ${num_tagged}")
    if(num_tagged GREATER 0 AND NOT label STREQUAL hidden)
      list(APPEND labels ${label})
    endif()
  endforeach()
  if(num_unlabelled GREATER 0)
    list(PREPEND labels unit)
  endif()
  set(${variable} ${labels} PARENT_SCOPE)
endfunction()

# Generates a source file and stores its path in `variable`. The source defines FUNCTION, which HEADER declares.
# FUNCTION returns the text of each file in FILES, so an installed binary needs no data folder.
function(rematch_embed variable)
  cmake_parse_arguments(arg "" "HEADER;FUNCTION" "FILES" ${ARGN})
  set(output ${CMAKE_CURRENT_BINARY_DIR}/${arg_FUNCTION}.cpp)
  set(script ${CMAKE_SOURCE_DIR}/scripts/cmake/embed.cmake)
  add_custom_command(OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DOUTPUT=${output} -DHEADER=${arg_HEADER} -DFUNCTION=${arg_FUNCTION}
      "-DFILES=${arg_FILES}" -P ${script}
    DEPENDS ${arg_FILES} ${script}
    VERBATIM)
  set(${variable} ${output} PARENT_SCOPE)
endfunction()
