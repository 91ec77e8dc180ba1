/// \file
/// Everything, for static use: the widest instruction set that this unit's own compiler flags allow.
///
/// For an instruction set that is chosen at run time include residua/dispatch.hpp instead, or besides.
#ifndef RESIDUA_RESIDUA_HPP
#define RESIDUA_RESIDUA_HPP

#include <residua/operations.hpp>

#endif
