/// \file
/// The version of the library, for the preprocessor; CMake reads it from here.
#ifndef RESIDUA_VERSION_HPP
#define RESIDUA_VERSION_HPP

#define RESIDUA_VERSION_MAJOR 0
#define RESIDUA_VERSION_MINOR 1
#define RESIDUA_VERSION_PATCH 0

#endif
