# Where the headers of the SIMD libraries are. Used by the build of residua and, installed next to residuaConfig.cmake,
# by the projects that use it: the answer belongs to the machine that compiles, so no path is baked into the package.

# residua_find_backend(<xsimd|highway> <variable>)
#
# Sets <variable> to the include directories of the library, or to a false value. A target that the project has already
# (from add_subdirectory, FetchContent or find_package) comes first, under either spelling of its name. Only its include
# directories are taken: residua needs the headers, and some packages' targets also link to things which are not there.
function(residua_find_backend backend variable)
    if(backend STREQUAL "xsimd")
        set(targets xsimd xsimd::xsimd)
        set(header xsimd/xsimd.hpp)
        set(cache_entry RESIDUA_XSIMD_INCLUDE_DIR)
    elseif(backend STREQUAL "highway")
        set(targets hwy hwy::hwy)
        set(header hwy/highway.h)
        set(cache_entry RESIDUA_HIGHWAY_INCLUDE_DIR)
    else()
        message(FATAL_ERROR "residua_find_backend: no backend is called '${backend}'")
    endif()

    foreach(target IN LISTS targets)
        if(TARGET ${target})
            get_target_property(directories ${target} INTERFACE_INCLUDE_DIRECTORIES)
            if(directories)
                set(${variable} "${directories}" PARENT_SCOPE)
                return()
            endif()
        endif()
    endforeach()

    find_path(${cache_entry} NAMES ${header} DOC "The folder that contains ${header}")
    mark_as_advanced(${cache_entry})
    set(${variable} "${${cache_entry}}" PARENT_SCOPE)
endfunction()
