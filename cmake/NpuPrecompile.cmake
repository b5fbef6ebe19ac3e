# GoogleTest's headers are half of what a compiler reads for a unit test: they are precompiled once for all tests that have the
# usual flags. Rooms and libraries read theirs as they are: with a precompiled header g++ 12 no longer knows which warnings belong
# to the system's headers.
option(NPU_PRECOMPILE "Precompile GoogleTest for unit tests" ON)

# Called when all targets are known.
function(npu_precompile_tests)
  if(NOT NPU_PRECOMPILE OR NOT NPU_TESTS)
    return()
  endif()
  # -fpch-preprocess: ccache then knows what a file has read.
  set(flags ${NPU_TEST_FLAGS} $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)
  add_executable(npu_precompiled EXCLUDE_FROM_ALL ${CMAKE_SOURCE_DIR}/cmake/precompiled/nothing.cc)
  target_compile_options(npu_precompiled PRIVATE ${flags})
  target_link_libraries(npu_precompiled PRIVATE npu_flags GTest::gtest GTest::gmock)
  target_precompile_headers(npu_precompiled PRIVATE ${CMAKE_SOURCE_DIR}/cmake/precompiled/tests.h)
  set(folders ${CMAKE_SOURCE_DIR})
  while(folders)
    list(POP_FRONT folders folder)
    get_property(below DIRECTORY ${folder} PROPERTY SUBDIRECTORIES)
    list(APPEND folders ${below})
    get_property(targets DIRECTORY ${folder} PROPERTY BUILDSYSTEM_TARGETS)
    foreach(target IN LISTS targets)
      get_target_property(options ${target} COMPILE_OPTIONS)
      if(target MATCHES "_test$" AND "${options}" STREQUAL "${NPU_TEST_FLAGS}")
        set_target_properties(${target} PROPERTIES COMPILE_OPTIONS "${flags}")
        target_precompile_headers(${target} REUSE_FROM npu_precompiled)
      endif()
    endforeach()
  endwhile()
endfunction()
