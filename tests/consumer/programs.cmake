enable_testing()

# residua_programs(<component>...)
#
# A program with residua::residua, and one with each of the components (no unit has two static backends); each is a test.
function(residua_programs)
    foreach(name IN ITEMS residua ${ARGN})
        add_executable(consumer_${name} ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/consumer.cpp)
        target_link_libraries(consumer_${name} PRIVATE residua::${name})
        if(name STREQUAL "dispatch")
            target_compile_definitions(consumer_${name} PRIVATE CONSUMER_DISPATCH)
        endif()
        add_test(NAME consumer_${name} COMMAND consumer_${name})
    endforeach()
endfunction()
