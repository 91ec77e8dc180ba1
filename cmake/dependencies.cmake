# How the build finds what it needs: header-only libraries and GoogleTest, for this machine or for another one.
include_guard(GLOBAL)

# residua_find_headers(<variable> <header>)
#
# Caches in <variable> the folder to put on the include path for <header>, e.g. fmt/format.h. A cross build takes
# header-only libraries from the building machine when its own root has none. The folder they are in (/usr/include) must
# then stay off the include path, since the headers of the building machine's C library are there too: the one folder of
# the library is linked into the build tree.
function(residua_find_headers variable header)
    find_path(${variable} NAMES ${header} DOC "The folder that contains ${header}")
    if(NOT ${variable} AND CMAKE_CROSSCOMPILING)
        find_path(
            residua_host_directory
            NAMES ${header}
            PATHS /usr/local/include /usr/include
            NO_CACHE NO_DEFAULT_PATH NO_CMAKE_FIND_ROOT_PATH)
        if(residua_host_directory)
            string(REGEX REPLACE "/.*" "" folder ${header})
            set(links ${PROJECT_BINARY_DIR}/host-headers/${folder})
            file(MAKE_DIRECTORY ${links})
            file(CREATE_LINK ${residua_host_directory}/${folder} ${links}/${folder} SYMBOLIC)
            set(${variable} ${links} CACHE PATH "The folder that contains ${header}" FORCE)
        endif()
    endif()
    mark_as_advanced(${variable})
endfunction()

# residua_header_library(<target> <header>)
#
# Makes the INTERFACE target <target> with the include path of a header-only library that examples, tests and benchmarks
# need. One that is not there stops the configuration.
function(residua_header_library target header)
    if(TARGET ${target})
        return()
    endif()
    string(TOUPPER ${target}_INCLUDE_DIR variable)
    residua_find_headers(${variable} ${header})
    if(NOT ${variable})
        message(FATAL_ERROR "residua: <${header}> not found; cmake/bootstrap.sh installs it on Debian and Ubuntu")
    endif()
    add_library(${target} INTERFACE)
    target_include_directories(${target} SYSTEM INTERFACE ${${variable}})
endfunction()

# residua_find_googletest()
#
# Makes sure that GTest::gtest and GTest::gtest_main exist: the system's, or built from the sources which Debian's package
# googletest installs. A cross build has only the sources. (A macro: targets of find_package belong to a folder.)
macro(residua_find_googletest)
    if(NOT TARGET GTest::gtest_main AND NOT CMAKE_CROSSCOMPILING)
        find_package(GTest QUIET)
    endif()
    if(NOT TARGET GTest::gtest_main)
        find_path(
            RESIDUA_GOOGLETEST_SOURCE_DIR
            NAMES googletest/CMakeLists.txt
            PATHS /usr/src/googletest
            NO_CMAKE_FIND_ROOT_PATH
            DOC "The source tree of GoogleTest")
        mark_as_advanced(RESIDUA_GOOGLETEST_SOURCE_DIR)
        if(NOT RESIDUA_GOOGLETEST_SOURCE_DIR)
            message(FATAL_ERROR "residua: GoogleTest not found; cmake/bootstrap.sh installs it on Debian and Ubuntu")
        endif()
        set(BUILD_GMOCK OFF CACHE INTERNAL "")
        set(INSTALL_GTEST OFF CACHE INTERNAL "")
        add_subdirectory(${RESIDUA_GOOGLETEST_SOURCE_DIR} ${PROJECT_BINARY_DIR}/googletest EXCLUDE_FROM_ALL)
    endif()
endmacro()
