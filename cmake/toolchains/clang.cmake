# Clang, if there is one; else what CMake takes by itself.
find_program(RESIDUA_CLANG clang++)
mark_as_advanced(RESIDUA_CLANG)
if(RESIDUA_CLANG)
    set(CMAKE_CXX_COMPILER ${RESIDUA_CLANG})
endif()
