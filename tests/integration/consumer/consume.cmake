# Installs the library into a folder of its own, moves that folder (a package must not know where it
# was made), then configures, builds and runs the stranger's project there.
function(run what)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE text ERROR_VARIABLE text)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${what} failed (${status}):\n${text}")
  endif()
  message(STATUS "${what}: done")
endfunction()

file(REMOVE_RECURSE ${WORK})
file(MAKE_DIRECTORY ${WORK})
run("install" ${CMAKE_COMMAND} --install ${BUILD} --component library --prefix ${WORK}/first)
if(EXISTS ${WORK}/first/include/shm OR EXISTS ${WORK}/first/include/wire)
  message(FATAL_ERROR "private headers were installed")
endif()
file(RENAME ${WORK}/first ${WORK}/prefix)

set(sanitize "")
if(SANITIZE)
  set(sanitize "-fsanitize=${SANITIZE}")
endif()
run("configure" ${CMAKE_COMMAND} -S ${PROJECT} -B ${WORK}/build -DCMAKE_PREFIX_PATH=${WORK}/prefix
    -DCMAKE_CXX_COMPILER=${COMPILER} "-DCMAKE_CXX_FLAGS=${sanitize}")
run("build" ${CMAKE_COMMAND} --build ${WORK}/build)
run("run, shared" ${WORK}/build/stranger)
run("run, static" ${WORK}/build/stranger_static)

find_program(PKG_CONFIG pkg-config REQUIRED)
set(ENV{PKG_CONFIG_PATH} ${WORK}/prefix/${LIBDIR}/pkgconfig)
execute_process(
  COMMAND ${PKG_CONFIG} --define-variable=prefix=${WORK}/prefix --cflags --libs cutwater
  OUTPUT_VARIABLE flags OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
separate_arguments(flags UNIX_COMMAND "${flags}")
run("build with pkg-config" ${COMPILER} -std=c++20 ${sanitize} ${PROJECT}/main.cpp ${flags}
    -Wl,-rpath,${WORK}/prefix/${LIBDIR} -o ${WORK}/by_pkg_config)
run("run, pkg-config" ${WORK}/by_pkg_config)
