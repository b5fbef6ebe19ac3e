# What `cmake --install` and the wheel hold: the install tree under share/anynpu, and the programs beside the others of the
# environment. Libraries that no plain system has (Highway when it is shared) go beside our private ones, where our
# RUNPATH finds them; the C and C++ runtimes stay the system's, since Python and torch use them too.
if(SKBUILD)
  set(data ${SKBUILD_DATA_DIR})
  set(programs ${SKBUILD_SCRIPTS_DIR})
else()
  set(data .)
  set(programs bin)
endif()
install(DIRECTORY ${CMAKE_BINARY_DIR}/tree/ DESTINATION ${data}/share/anynpu USE_SOURCE_PERMISSIONS)
install(PROGRAMS ${CMAKE_BINARY_DIR}/tree/bin/anynpu ${CMAKE_BINARY_DIR}/tree/bin/npu-smi ${CMAKE_BINARY_DIR}/tree/bin/hccn_tool DESTINATION ${programs})
install(CODE "set(tree \"${CMAKE_BINARY_DIR}/tree\")\nset(share \"${data}/share/anynpu\")\nset(programs \"${programs}\")\nset(strip \"${CMAKE_STRIP}\")")
install(CODE [[
  file(GLOB libraries ${tree}/lib64/*.so ${tree}/anynpu/lib/*.so)
  file(GLOB monitor ${tree}/bin/anynpu-monitor)
  # OpenSSL and what every system has for logins and packages stay the system's, with its security updates.
  file(GET_RUNTIME_DEPENDENCIES LIBRARIES ${libraries} EXECUTABLES ${monitor} RESOLVED_DEPENDENCIES_VAR found
       PRE_EXCLUDE_REGEXES "^lib(c|m|dl|rt|pthread|stdc\\+\\+|gcc_s|ssl|crypto|crypt|z)\\.so" "^ld-linux"
       POST_EXCLUDE_REGEXES "^${tree}/")
  foreach(folder share programs)
    if(NOT IS_ABSOLUTE "${${folder}}")
      set(${folder} ${CMAKE_INSTALL_PREFIX}/${${folder}})
    endif()
  endforeach()
  foreach(library IN LISTS found)
    # Under the name it is asked for; wheels hold no links.
    get_filename_component(name ${library} NAME)
    file(REAL_PATH ${library} real)
    configure_file(${real} ${share}/anynpu/lib/${name} COPYONLY)
  endforeach()
  if(CMAKE_INSTALL_DO_STRIP)
    file(GLOB stripped ${share}/lib64/*.so ${share}/lib64-950/*.so ${share}/anynpu/lib/*.so ${share}/bin/anynpu ${share}/bin/npu-smi ${share}/bin/hccn_tool ${share}/bin/anynpu-monitor ${share}/anynpu/bench/bin/* ${programs}/anynpu ${programs}/npu-smi ${programs}/hccn_tool)
    execute_process(COMMAND ${strip} --strip-unneeded ${stripped} COMMAND_ERROR_IS_FATAL ANY)
  endif()
]])
