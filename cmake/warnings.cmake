# residua_warnings: what residua's own code compiles without. Never installed and never passed on to users.
add_library(residua_warnings INTERFACE)

if(CMAKE_CXX_COMPILER_ID MATCHES "GNU|Clang")
    target_compile_options(
        residua_warnings
        INTERFACE -Wall
                  -Wextra
                  -Wpedantic
                  -Wconversion
                  -Wsign-conversion
                  -Wfloat-conversion
                  -Wdouble-promotion
                  -Wshadow
                  -Wold-style-cast
                  -Wcast-align
                  -Wundef
                  $<$<CXX_COMPILER_ID:GNU>:-Wuseless-cast>
                  $<$<BOOL:${RESIDUA_WARNINGS_AS_ERRORS}>:-Werror>)
endif()
