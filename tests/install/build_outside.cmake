# Installs BUILD into WORK and builds the example SOURCE against the installation. Runs the installed rematch and the
# example from a separate folder. Any failure ends the script with an error.
file(REMOVE_RECURSE ${WORK})
file(MAKE_DIRECTORY ${WORK}/elsewhere)

function(run)
  execute_process(COMMAND ${ARGN} WORKING_DIRECTORY ${WORK}/elsewhere COMMAND_ERROR_IS_FATAL ANY)
endfunction()

run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix)
run(${WORK}/prefix/bin/rematch list)
run(${CMAKE_COMMAND} -S ${SOURCE} -B ${WORK}/build -G Ninja -DCMAKE_BUILD_TYPE=Release
  -DCMAKE_PREFIX_PATH=${WORK}/prefix)
run(${CMAKE_COMMAND} --build ${WORK}/build)
execute_process(COMMAND ${WORK}/build/train WORKING_DIRECTORY ${WORK}/elsewhere OUTPUT_VARIABLE printed
  COMMAND_ERROR_IS_FATAL ANY)
if(NOT printed STREQUAL "loss and 2 gradients are bit-equal; plan of 2 regions\n")
  message(FATAL_ERROR "train printed: ${printed}")
endif()
if(NOT EXISTS ${WORK}/prefix/share/doc/rematch/LICENSE)
  message(FATAL_ERROR "the installed package has no LICENSE")
endif()
