# Calls LESSON rightly and wrongly. A wrong call prints nothing, says what is wrong in one line on stderr, and exits with
# status 2.
function(call)
    execute_process(
        COMMAND ${EMULATOR} ${LESSON} ${ARGN}
        RESULT_VARIABLE status
        OUTPUT_VARIABLE output
        ERROR_VARIABLE error)
    set(status "${status}" PARENT_SCOPE)
    set(output "${output}" PARENT_SCOPE)
    set(error "${error}" PARENT_SCOPE)
endfunction()

function(refused)
    call(${ARGN})
    if(NOT status STREQUAL "2" OR NOT output STREQUAL "" OR NOT error MATCHES "^lesson: [^\n]+\n$")
        message(SEND_ERROR "lesson ${ARGN}\nstatus ${status}\nstdout: ${output}\nstderr: ${error}")
    endif()
endfunction()

function(prints pattern)
    call(${ARGN})
    if(NOT status STREQUAL "0" OR NOT error STREQUAL "" OR NOT output MATCHES "${pattern}")
        message(SEND_ERROR "lesson ${ARGN}\nstatus ${status}\nexpected: ${pattern}\nstdout: ${output}\nstderr: ${error}")
    endif()
endfunction()

refused(nonsense)
refused(--nonsense)
refused(table --format xml)
refused(gradient --layers 0)
refused(gradient --layers -3)
refused(gradient --layers 1.5)
refused(gradient --layers 1000000000)
refused(gradient --gain nan)
refused(gradient --gain inf)
refused(gradient --gain 0)
refused(gradient --gain one)
refused(gradient --width 0)
refused(gradient --type f16)
refused(gradient --target pdp11)
refused(gradient --seed -1)
refused(tokens --tokens 0)
refused(tokens --layers)
refused(sweep --step 0)
refused(sweep --from 2 --to 1)
refused(sweep --from 0.5 --to 2 --step 1e-300)
refused(population --seeds 0)
refused(plot)
refused(plot --out ${LESSON}/folder)

# The page's sliders, by the page's numbers; a stack so deep that only the logarithm can say how small its gradient is.
prints("^layer,stream_rms,gradient_ratio,gradient_log10\n0,1,1\\.4038152223957[0-9]*e-20,-19\\.85" #
       gradient --gain 0.5 --layers 32 --format csv)
prints("\n0,1,0,-123[01]\\." gradient --gain 0.5 --layers 2000 --format csv)
prints("^layer,relative_distance,mean_cosine\n0,0\\.924158815" tokens --layers 8 --format csv)
prints("\n8,0\\.0058371909" tokens --layers 8 --format csv)
prints("\n32,0\\.8278409982[0-9]*,0\\.16192571" tokens --residual --pre-norm --scale-writes --format csv)
prints("^gain,gradient_ratio,gradient_log10,stream_rms\n0\\.5,1\\.40381.*\n2,2894\\.354" #
       sweep --from 0.5 --to 2.0 --step 0.5 --format csv)
prints("^id,printed,class,target,value,shown,match\n" table --format csv)
prints("L11" population --seeds 5)
