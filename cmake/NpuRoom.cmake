# npu_room(NAME DEPS rooms... LIBS libraries... EXCLUDE folders...): one room as an object library npu_NAME, and NAME_test from the *_test.cc
# beside the code. Sources are collected, so adding a file edits no list.
include(CheckCXXCompilerFlag)
find_package(fmt REQUIRED)
find_package(Python3 3.8 REQUIRED COMPONENTS Interpreter)
find_package(Threads REQUIRED)

# Highway: the name of its CMake package differs between versions, so header and library are looked for.
find_path(NPU_HWY_INCLUDE hwy/highway.h)
find_library(NPU_HWY hwy)
if(NOT NPU_HWY_INCLUDE OR NOT NPU_HWY)
  message(FATAL_ERROR "Highway (hwy/highway.h, libhwy) was not found. Debian and Ubuntu: apt-get install libhwy-dev")
endif()
file(STRINGS ${NPU_HWY_INCLUDE}/hwy/highway.h hwy_version REGEX "^#define HWY_(MAJOR|MINOR) ")
string(REGEX REPLACE "[^0-9;]" "" hwy_version "${hwy_version}")
string(REPLACE ";" "." hwy_version "${hwy_version}")
if(hwy_version VERSION_LESS 1.0)
  message(FATAL_ERROR "Highway ${hwy_version} in ${NPU_HWY_INCLUDE} is too old, 1.0 or newer is needed (Ubuntu 22.04 has 0.16). "
    "Build a newer one and name its prefix in CMAKE_PREFIX_PATH; docs/guide/install.md shows how.")
endif()

find_program(CCACHE ccache)
if(CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_C_COMPILER_LAUNCHER ${CCACHE})
  # Files with precompiled headers are kept only when ccache may overlook time stamps and macros of time (NpuPrecompile.cmake).
  set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_SLOPPINESS=pch_defines,time_macros ${CCACHE})
endif()

# What every target is compiled with. The x86 baseline is the one Highway's dynamic dispatch wants (SSE4 and up).
add_library(npu_flags INTERFACE)
target_include_directories(npu_flags INTERFACE ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR})
if(NOT NPU_HWY_INCLUDE STREQUAL /usr/include)
  target_include_directories(npu_flags INTERFACE ${NPU_HWY_INCLUDE})
endif()
target_compile_options(npu_flags INTERFACE -Wall -Wextra -Wshadow -Wno-missing-field-initializers)
# A product and a sum are joined into one rounding where a kernel says MulAdd, nowhere else: results then do not depend on what
# a compiler joins, and a difference of two equal products is 0.
target_compile_options(npu_flags INTERFACE -ffp-contract=off)
if(NPU_WERROR)
  target_compile_options(npu_flags INTERFACE -Werror)
endif()
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  target_compile_options(npu_flags INTERFACE -march=x86-64-v2 -maes -mpclmul)
endif()
if(NPU_SANITIZE)
  target_compile_options(npu_flags INTERFACE -fsanitize=${NPU_SANITIZE} -fno-omit-frame-pointer)
  target_link_options(npu_flags INTERFACE -fsanitize=${NPU_SANITIZE})
endif()
# The C++ library is linked statically and hidden: torch's libraries export newer pieces of it (std::filesystem,
# __throw_bad_array_new_length), and a shared one would let them take the place of ours. Parts that nobody uses are dropped,
# and with them what they want of glibc. The unwinder stays shared, since exceptions pass between our libraries.
if(NOT NPU_SANITIZE)
  target_link_options(npu_flags INTERFACE -static-libstdc++ -Wl,--gc-sections)
endif()
# fmt is linked statically and hidden: our shared libraries then need no libfmt at run time and clash with no other copy.
if(fmt_VERSION VERSION_GREATER_EQUAL 9 AND fmt_VERSION VERSION_LESS 10)
  add_library(npu_fmt STATIC ${CMAKE_SOURCE_DIR}/cmake/fmt/fmt.cc)
  target_include_directories(npu_fmt PUBLIC $<TARGET_PROPERTY:fmt::fmt,INTERFACE_INCLUDE_DIRECTORIES>)
  set(NPU_FMT npu_fmt)
else()
  set(NPU_FMT fmt::fmt-header-only)  # other versions leave other instantiations to a library
endif()
target_link_libraries(npu_flags INTERFACE ${NPU_FMT} Threads::Threads ${CMAKE_DL_LIBS})

if(NPU_TESTS)
  enable_testing()
  find_package(GTest REQUIRED)
  set(NPU_TEST_TIMEOUT_S 300 CACHE STRING "Longest time of one unit test; a hang, not a measure of speed")
  set(NPU_TEST_FLAGS "" CACHE STRING "Further flags of unit tests; ./test says -O0, which compiles in two thirds of the time")
  separate_arguments(NPU_TEST_FLAGS)
  include(GoogleTest)
endif()

# Rooms of libnpu_core.so: its version script, not the compiler, decides what other libraries of ours see.
set(NPU_CORE_ROOMS base tensor device runtime ops_core)

function(npu_room name)
  cmake_parse_arguments(ARG "" "" "DEPS;LIBS;GENERATED;EXCLUDE" ${ARGN})
  file(GLOB_RECURSE all CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  foreach(folder IN LISTS ARG_EXCLUDE)
    list(FILTER all EXCLUDE REGEX "^${CMAKE_CURRENT_SOURCE_DIR}/${folder}/")
  endforeach()
  set(sources ${all})
  list(FILTER sources EXCLUDE REGEX "_(test|bench)\\.cc$")
  set(tests ${all})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  # Reading a command line takes no time that a compiler could save; compiling CLI11 with optimisation takes 20 s a file.
  foreach(source IN LISTS sources)
    file(STRINGS ${source} reads_words REGEX "^#include [<\"]CLI/" LIMIT_COUNT 1)
    if(reads_words)
      set_property(SOURCE ${source} APPEND PROPERTY COMPILE_OPTIONS -O0)
    endif()
  endforeach()
  add_library(npu_${name} OBJECT ${sources} ${ARG_GENERATED})
  target_link_libraries(npu_${name} PUBLIC npu_flags ${ARG_LIBS})
  add_dependencies(npu_${name} npu_generated)
  if(name IN_LIST NPU_CORE_ROOMS)
    set_target_properties(npu_${name} PROPERTIES CXX_VISIBILITY_PRESET default)
  endif()
  set_property(GLOBAL PROPERTY NPU_DEPS_${name} "${ARG_DEPS}")
  foreach(dep IN LISTS ARG_DEPS)
    # Usage requirements only: CMake does not hand objects on. They are named where something is linked (npu_objects).
    target_link_libraries(npu_${name} PUBLIC npu_${dep})
  endforeach()
  if(NPU_TESTS AND tests)
    add_executable(${name}_test ${tests})
    target_compile_options(${name}_test PRIVATE ${NPU_TEST_FLAGS})
    npu_objects(${name}_test ${name} ${ARG_DEPS})
    target_link_libraries(${name}_test PRIVATE GTest::gtest GTest::gmock GTest::gtest_main)
    add_dependencies(${name}_test npu_generated)
    gtest_discover_tests(${name}_test TEST_PREFIX "${name}." DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT ${NPU_TEST_TIMEOUT_S})
  endif()
endfunction()

# Links the objects of the named rooms (list every room wanted; each once) into a library or program.
function(npu_objects target)
  foreach(room IN LISTS ARGN)
    target_link_libraries(${target} PRIVATE npu_${room})
  endforeach()
endfunction()

# All generators hang on this target.
add_custom_target(npu_generated)

# npu_generate(NAME OUTPUTS files... COMMAND args... DEPENDS files...): runs a generator of gen/ at build time; its outputs
# are under the build tree in gen/.
function(npu_generate name)
  cmake_parse_arguments(ARG "" "" "OUTPUTS;COMMAND;DEPENDS" ${ARGN})
  add_custom_command(OUTPUT ${ARG_OUTPUTS} COMMAND ${Python3_EXECUTABLE} ${ARG_COMMAND}
                     DEPENDS ${ARG_DEPENDS} ${CMAKE_SOURCE_DIR}/gen/tables.py WORKING_DIRECTORY ${CMAKE_SOURCE_DIR} VERBATIM)
  add_custom_target(npu_generated_${name} DEPENDS ${ARG_OUTPUTS})
  add_dependencies(npu_generated npu_generated_${name})
endfunction()
