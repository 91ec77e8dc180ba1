# Every contender computes what it should and can be measured; what bench_report and compare make of that; and what compare
# says of a file that is no report.
cmake_minimum_required(VERSION 3.25)

# run(<exit status> <argument>...): sets `output` and `errors`.
function(run wanted)
    execute_process(
        COMMAND ${ARGN}
        RESULT_VARIABLE status
        OUTPUT_VARIABLE output
        ERROR_VARIABLE errors)
    if(NOT status STREQUAL wanted)
        list(JOIN ARGN " " call)
        message(FATAL_ERROR "${call}\nended with ${status} instead of ${wanted}\n${output}${errors}")
    endif()
    set(output "${output}" PARENT_SCOPE)
    set(errors "${errors}" PARENT_SCOPE)
endfunction()

file(MAKE_DIRECTORY ${FOLDER})
run(0 ${BENCH} --set smoke --seconds 1 --repetitions 1 --output ${FOLDER}/bench.json)
run(0 ${REPORT} --output ${FOLDER} ${FOLDER}/bench.json)
foreach(wanted IN ITEMS "CPU: " "rms_norm +f32 +standard" "## The goals")
    if(NOT output MATCHES "${wanted}")
        message(FATAL_ERROR "the report lacks '${wanted}':\n${output}")
    endif()
endforeach()
run(0 ${COMPARE} ${FOLDER}/report.csv ${FOLDER}/report.csv)
if(NOT output MATCHES "  1\\.000  all")
    message(FATAL_ERROR "a report is not as fast as itself:\n${output}")
endif()
foreach(bad IN ITEMS ${FOLDER}/bench.json ${FOLDER}/none.csv ${FOLDER})
    run(2 ${COMPARE} ${bad} ${FOLDER}/report.csv)
    if(NOT errors MATCHES "^compare: [^\n]+\n$")
        message(FATAL_ERROR "not one line: '${errors}'")
    endif()
endforeach()
run(2 ${COMPARE} ${FOLDER}/report.csv)
run(2 ${REPORT} ${FOLDER}/report.csv)
run(2 ${BENCH} --no-such-option)
