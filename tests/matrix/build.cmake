# Builds PROGRAM with COMMAND; LOG is what the compiler said, and is there afterwards even if there is no program.
# With UNFUSED, the program of -ffp-contract=off, COMMAND is Clang's with -ffp-contract=on: that lets the front end alone fuse,
# so if the front end makes the same of both, to the byte, UNFUSED is the program, and the rest is not compiled again.
cmake_minimum_required(VERSION 3.25)
get_filename_component(folder ${LOG} DIRECTORY)
file(MAKE_DIRECTORY ${folder})
file(REMOVE ${PROGRAM})
list(JOIN COMMAND " " command)

if(UNFUSED AND EXISTS ${UNFUSED})
    set(fused_code ${PROGRAM}.on.ll)
    set(unfused_code ${PROGRAM}.off.ll)
    set(front_end_alone -S -emit-llvm -Xclang -disable-llvm-passes)
    string(REPLACE "-ffp-contract=on" "-ffp-contract=off" unfused_command "${COMMAND}")
    execute_process(
        COMMAND ${COMMAND} ${front_end_alone} -o ${fused_code}
        COMMAND ${unfused_command} ${front_end_alone} -o ${unfused_code}
        OUTPUT_QUIET ERROR_QUIET RESULTS_VARIABLE statuses)
    set(same 1)
    if(statuses STREQUAL "0;0")
        execute_process(COMMAND ${CMAKE_COMMAND} -E compare_files ${fused_code} ${unfused_code} RESULT_VARIABLE same ERROR_QUIET)
    endif()
    file(REMOVE ${fused_code} ${unfused_code})
    if(same EQUAL 0)
        file(COPY_FILE ${UNFUSED} ${PROGRAM})
        file(WRITE ${LOG} "${command}\nthe front end makes of this what it makes of -ffp-contract=off: the program is ${UNFUSED}\n")
        return()
    endif()
endif()

execute_process(COMMAND ${COMMAND} -o ${PROGRAM} OUTPUT_VARIABLE said ERROR_VARIABLE said RESULT_VARIABLE status)
file(WRITE ${LOG} "${command}\n${said}")
if(NOT status EQUAL 0)
    file(REMOVE ${PROGRAM})
    message("not built: ${PROGRAM}, see ${LOG}")
endif()
