// The functions under test, as `api::`: those of a static unit, or, with RESIDUA_TEST_DISPATCH, those that choose the
// instruction set at run time; then the environment variable RESIDUA_TEST_TARGET names the one to use.
#ifndef RESIDUA_TESTS_SUPPORT_API_HPP
#define RESIDUA_TESTS_SUPPORT_API_HPP

#ifdef RESIDUA_TEST_DISPATCH

#include <residua/dispatch.hpp>

namespace api {
using namespace residua;
using namespace residua::dispatch;
}  // namespace api

#else

#include <residua/residua.hpp>

namespace api {
using namespace residua;
}

#endif

#endif
