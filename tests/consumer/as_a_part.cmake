# What both kinds of consumer that build residua themselves do with it.
foreach(target IN ITEMS lesson require_isa)
    if(TARGET ${target})
        message(FATAL_ERROR "residua adds the target '${target}' to a project that only uses residua")
    endif()
endforeach()

set(components "")
foreach(component IN ITEMS xsimd highway dispatch)
    if(TARGET residua::${component})
        list(APPEND components ${component})
    endif()
endforeach()

include(${CMAKE_CURRENT_LIST_DIR}/programs.cmake)
residua_programs(${components})
