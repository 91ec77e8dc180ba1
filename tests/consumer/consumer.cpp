// A program of somebody who uses residua: normalises one row and checks a number that is known from the formula.
#ifdef CONSUMER_DISPATCH
#include <residua/dispatch.hpp>
namespace library = residua::dispatch;
#else
#include <residua/residua.hpp>
namespace library = residua;
#endif

#include <cmath>
#include <cstdio>
#include <vector>

int main()
{
    const std::vector<double> x{1, 2, 3, 4}, w(4, 0.5);
    std::vector<double> y(4);
    library::rms_norm(y, x, library::zero_centered(w), {.eps = 0.5});
    const double expected = 4 / std::sqrt(7.5 + 0.5) * 1.5;
    std::printf("residua %d.%d.%d: %.17g, expected %.17g\n", RESIDUA_VERSION_MAJOR, RESIDUA_VERSION_MINOR,
                RESIDUA_VERSION_PATCH, y[3], expected);
    return std::abs(y[3] - expected) < 1e-15 ? 0 : 1;
}
