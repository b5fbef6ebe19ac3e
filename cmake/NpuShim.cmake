# npu_shim(SHORT OBJECTS rooms... LIBS libraries...): the imitated library that abi/libraries.tsv calls SHORT, from its
# generated entries, the adapters beside the CMakeLists.txt and the objects of the named rooms. Everything but the names of
# its table is hidden. The library appears in the install tree ${NPU_TREE}/lib64 with the vendor's soname.
set(NPU_TREE ${CMAKE_BINARY_DIR}/tree)
set(NPU_ABI ${CMAKE_SOURCE_DIR}/abi)

file(STRINGS ${NPU_ABI}/libraries.tsv npu_library_rows)
list(POP_FRONT npu_library_rows)
set(NPU_SHIMS)
foreach(row IN LISTS npu_library_rows)
  string(REPLACE "\t" ";" cells "${row};")
  list(GET cells 0 library)
  list(GET cells 1 short)
  list(GET cells 2 needs)
  string(REGEX REPLACE "^lib(.*)\\.so$" "\\1" output "${library}")
  string(REPLACE "," ";" needs "${needs}")
  list(APPEND NPU_SHIMS ${short})
  set(NPU_SHIM_OUTPUT_${short} ${output})
  set(NPU_SHIM_NEEDS_${short} ${needs})
  set(NPU_SHIM_OF_${library} ${short})
  list(APPEND npu_entry_files ${CMAKE_BINARY_DIR}/gen/calls/${short}.h ${CMAKE_BINARY_DIR}/gen/entries/${short}.cc
       ${CMAKE_BINARY_DIR}/gen/entries/${short}_owed.cc ${CMAKE_BINARY_DIR}/gen/entries/${short}.map)
endforeach()
foreach(file calls/dcmi950.h entries/dcmi950.cc entries/dcmi950_owed.cc entries/dcmi950_as.cc entries/dcmi950.map)
  list(APPEND npu_entry_files ${CMAKE_BINARY_DIR}/gen/${file})
endforeach()
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${NPU_ABI}/libraries.tsv)

file(GLOB npu_tables CONFIGURE_DEPENDS ${NPU_ABI}/*.tsv)
npu_generate(entries OUTPUTS ${npu_entry_files}
  COMMAND gen/entries.py ${NPU_ABI} ${CMAKE_BINARY_DIR}/gen
  DEPENDS ${CMAKE_SOURCE_DIR}/gen/entries.py ${CMAKE_SOURCE_DIR}/gen/prototypes.py ${npu_tables})
npu_generate(headers OUTPUTS ${CMAKE_BINARY_DIR}/gen/abi_check.c
  COMMAND gen/headers.py ${NPU_ABI} ${NPU_TREE}/include ${CMAKE_BINARY_DIR}/gen/abi_check.c
  DEPENDS ${CMAKE_SOURCE_DIR}/gen/headers.py ${CMAKE_SOURCE_DIR}/gen/prototypes.py ${npu_tables})

# The public headers, for adapters and tests.
add_library(npu_abi INTERFACE)
target_include_directories(npu_abi INTERFACE ${NPU_TREE}/include)
target_link_libraries(npu_abi INTERFACE npu_flags)
add_dependencies(npu_abi npu_generated)

# What every shared library of ours is linked with.
function(npu_shared target map)
  set_target_properties(${target} PROPERTIES BUILD_WITH_INSTALL_RPATH ON LINK_DEPENDS ${map})
  target_link_options(${target} PRIVATE -Wl,--version-script=${map} -Wl,-z,now -Wl,-Bsymbolic-functions -Wl,--no-as-needed)
  if(NOT NPU_SANITIZE)
    target_link_options(${target} PRIVATE -Wl,-z,defs)
  endif()
endfunction()

# A library with a vendor's name: lib64 of the tree, private libraries found by RUNPATH.
function(npu_vendor_library target output map)
  npu_shared(${target} ${map})
  set_target_properties(${target} PROPERTIES OUTPUT_NAME ${output} LIBRARY_OUTPUT_DIRECTORY ${NPU_TREE}/lib64
    INSTALL_RPATH "$ORIGIN/../anynpu/lib:$ORIGIN")
  set_property(GLOBAL APPEND PROPERTY NPU_VENDOR_LIBRARIES ${target})
endfunction()

function(npu_shim short)
  cmake_parse_arguments(ARG "" "" "OBJECTS;LIBS" ${ARGN})
  set(adapters)
  if(EXISTS ${CMAKE_SOURCE_DIR}/shim/${short})
    file(GLOB_RECURSE adapters CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/shim/${short}/*.cc)
    list(FILTER adapters EXCLUDE REGEX "_test\\.cc$")
  endif()
  add_library(lib_${short} SHARED ${adapters} ${CMAKE_BINARY_DIR}/gen/entries/${short}.cc
              ${CMAKE_BINARY_DIR}/gen/entries/${short}_owed.cc)
  add_dependencies(lib_${short} npu_generated)
  npu_vendor_library(lib_${short} ${NPU_SHIM_OUTPUT_${short}} ${CMAKE_BINARY_DIR}/gen/entries/${short}.map)
  npu_objects(lib_${short} ${ARG_OBJECTS})
  target_link_libraries(lib_${short} PRIVATE npu_abi npu_core ${ARG_LIBS})
  foreach(library IN LISTS NPU_SHIM_NEEDS_${short})
    target_link_libraries(lib_${short} PRIVATE lib_${NPU_SHIM_OF_${library}})
  endforeach()
  # Tests beside the adapters are clients: they see the C interface only.
  file(GLOB_RECURSE tests CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/shim/${short}/*_test.cc)
  if(NPU_TESTS AND tests)
    add_executable(shim_${short}_test ${tests})
    target_compile_options(shim_${short}_test PRIVATE ${NPU_TEST_FLAGS})
    target_link_libraries(shim_${short}_test PRIVATE lib_${short} lib_acl npu_abi GTest::gtest GTest::gmock GTest::gtest_main)
    gtest_discover_tests(shim_${short}_test TEST_PREFIX "shim_${short}." DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT ${NPU_TEST_TIMEOUT_S})
  endif()
endfunction()

npu_generate(cxx_exports
  OUTPUTS ${CMAKE_BINARY_DIR}/gen/cxx/libgraph.so.map ${CMAKE_BINARY_DIR}/gen/cxx/libge_runner.so.map
          ${CMAKE_BINARY_DIR}/gen/cxx/libge_compiler.so.map ${CMAKE_BINARY_DIR}/gen/cxx/libfmk_onnx_parser.so.map
          ${CMAKE_BINARY_DIR}/gen/cxx/libatb.so.map
  COMMAND gen/cxx_exports.py ${NPU_ABI} ${CMAKE_BINARY_DIR}/gen/cxx
  DEPENDS ${CMAKE_SOURCE_DIR}/gen/cxx_exports.py ${NPU_ABI}/ge.tsv ${NPU_ABI}/atb.tsv)
npu_generate(tree OUTPUTS ${NPU_TREE}/set_env.sh COMMAND gen/tree.py ${NPU_TREE} 9.1.0 ${CMAKE_SYSTEM_PROCESSOR}
  DEPENDS ${CMAKE_SOURCE_DIR}/gen/tree.py)
