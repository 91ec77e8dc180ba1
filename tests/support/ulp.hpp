// The distance of a result from the exact value, in units of the last place.
#ifndef RESIDUA_TESTS_SUPPORT_ULP_HPP
#define RESIDUA_TESTS_SUPPORT_ULP_HPP

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <span>
#include <string>
#include <type_traits>

#include "support/record.hpp"
#include "support/reference.hpp"

namespace ulp {

using reference::wide;

template <class T>
using bits_of = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;

template <class T>
bits_of<T> bits(T x)
{
    return std::bit_cast<bits_of<T>>(x);
}

/// Equal bit for bit; any NaN equals any other.
template <class T>
bool same_bits(T a, T b)
{
    return bits(a) == bits(b) || (std::isnan(a) && std::isnan(b));
}

/// The unit in the last place of `exact` rounded to T; below the normal numbers, the smallest subnormal.
template <class T>
wide unit(wide exact)
{
    using limits = std::numeric_limits<T>;
    const T rounded = std::abs(static_cast<T>(exact));
    if (!(rounded >= limits::min())) return wide(limits::denorm_min());
    const int exponent = std::isinf(rounded) ? limits::max_exponent - 1 : std::ilogb(rounded);
    return std::ldexp(wide(1), exponent - limits::digits + 1);
}

/// |got - exact| in units of the last place. An infinity counts as the power of two after the largest number; a NaN is
/// right only where NaN is.
template <class T>
double error(T got, wide exact)
{
    using limits = std::numeric_limits<T>;
    if (std::isnan(got) || std::isnan(exact)) {
        return std::isnan(got) && std::isnan(exact) ? 0 : std::numeric_limits<double>::infinity();
    }
    const auto finite = [](wide x) {
        const wide beyond = std::ldexp(wide(1), limits::max_exponent);
        return std::abs(x) > beyond ? std::copysign(beyond, x) : x;
    };
    return static_cast<double>(std::abs(finite(wide(got)) - finite(exact)) / unit<T>(exact));
}

/// The largest error seen, and where.
struct worst {
    double ulp = 0;
    wide at = 0;
    wide with = 0;

    template <class T>
    void see(T got, wide exact, wide input, wide second_input = 0)
    {
        const double e = error(got, exact);
        see_error(e, input, second_input);
    }
    /// An error that is NaN stays, and is within no bound.
    void see_error(double e, wide input, wide second_input = 0)
    {
        if (!(e <= ulp) && !std::isnan(ulp)) *this = {e, input, second_input};
    }
};

/// Requires the bound, and prints the figure.
inline void expect_at_most(const worst& seen, double bound, const std::string& what, const char* type,
                           const std::string& unit)
{
    EXPECT_LE(seen.ulp, bound) << what << "(" << static_cast<double>(seen.at) << ", "
                               << static_cast<double>(seen.with) << ")";
    std::printf("  worst of %-36s %-8s %8.4g %s at %.9g\n", what.c_str(), type, seen.ulp, unit.c_str(),
                static_cast<double>(seen.at));
}
/// The same of an operation, by name, for the documentation's table (support/record.hpp says what a unit is).
template <class T>
void expect_within(const worst& seen, double bound, const std::string& what, const std::string& unit = "ulp")
{
    expect_at_most(seen, bound, what, sizeof(T) == 4 ? "float" : "double", unit);
    record::bound(what, record::type_name<T>(), unit, bound, seen.ulp);
}

template <class A, class B>
testing::AssertionResult all_same_bits(const A& a, const B& b)
{
    if (std::size(a) != std::size(b)) return testing::AssertionFailure() << "sizes differ";
    for (std::size_t i = 0; i < std::size(a); ++i) {
        if (!same_bits(a[i], b[i]))
            return testing::AssertionFailure() << "element " << i << ": " << a[i] << ", " << b[i];
    }
    return testing::AssertionSuccess();
}

}  // namespace ulp

#endif
