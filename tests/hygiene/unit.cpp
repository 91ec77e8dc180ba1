// One of two units of a program that include everything, each after macros that other people's headers define. (The
// standard library's headers come first, since they take min and max away; xsimd's do not compile with such macros.)
#include <algorithm>
#include <atomic>
#include <cmath>
#include <complex.h>
#include <complex>
#include <functional>
#include <limits>
#include <memory>
#include <ostream>
#include <random>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#define min(a, b) ((a) < (b) ? (a) : (b))
#define max(a, b) ((a) > (b) ? (a) : (b))
#define small char
#define near
#define far
#include <residua/residua.hpp>

#include <residua/dispatch.hpp>
#undef small
#undef near
#undef far

#if !defined(min) || !defined(max)
#error "a header of residua has taken a macro of its user away"
#endif

float ENTRY(float a)
{
    float x[3] = {a, 2, 3};
    residua::rms_norm(x, x, residua::no_weight, {.eps = 1e-6f});
    residua::dispatch::swiglu(x, x, x);
    return min(x[0], max(x[1], x[2]));
}
